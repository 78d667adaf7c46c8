/** The temporary folder of one attempt: created for it and removed after it, or by the next worker if this one dies. */
import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, mkdtemp, readdir, realpath, rm, rmdir, unlink } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import { beganAt } from '../machine/processes.ts'

export interface AttemptFolder {
  readonly path: string
  readonly in: string
  readonly out: string
  readonly scratch: string
}

/** Works for users without a passwd entry, as in many containers. Windows has no user ids. */
const ownUid = () => process.geteuid?.() ?? -1

/**
 * One folder per user in the system's temp directory, so that no other user can prepare the folder that we write to.
 */
export const defaultFolder = () => join(tmpdir(), `pawl-${ownUid()}`)

/**
 * Creates the folder for all attempts, and removes what dead workers left in it. Returns its real path, so that a link
 * that is put in its place later is detected, because it leads elsewhere.
 */
export async function openFolder(folder: string): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new Problem('FILE_INVALID', { file: folder, why: `the folder cannot be created: ${error.message}` })
  })
  const { uid } = await lstat(folder)
  if (folder === defaultFolder() && ownUid() >= 0 && uid !== ownUid()) {
    throw new Problem('FILE_INVALID', {
      file: folder,
      why: 'it belongs to another user; choose another folder with --folder',
    })
  }
  for (const name of await readdir(folder)) {
    const [, owner] = /^attempt\.([^.]+)\./.exec(name) ?? []
    if (owner !== undefined && isOwnerDead(owner)) await removeFolder(join(folder, name)).catch(() => {})
  }
  return realpath(folder)
}

/**
 * Accessible only to its owner. Its name identifies its owner from the moment it exists. `folder`: a result of
 * `openFolder`.
 */
export async function makeAttemptFolder(folder: string): Promise<AttemptFolder> {
  const path = await mkdtemp(join(folder, `attempt.${ownerToken()}.`))
  const made = { path, in: join(path, 'in'), out: join(path, 'out'), scratch: join(path, 'scratch') }
  await Promise.all([made.in, made.out, made.scratch].map(part => mkdir(part)))
  return made
}

/**
 * Removes the folder and everything that a command left there, even read-only folders and names that are not UTF-8. If
 * the command has put a link in its place, only the link is removed.
 */
export async function removeFolder(path: string): Promise<void> {
  try {
    if ((await lstat(path)).isDirectory()) await removeTree(path)
    else await unlink(path)
  } catch {
    await removeAnything(path)
  }
}

/** With one call per entry. `rm` makes several. */
async function removeTree(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    await (entry.isDirectory() ? removeTree(path) : unlink(path))
  }
  await rmdir(folder)
}

async function removeAnything(path: string): Promise<void> {
  const rest = { recursive: true, force: true, maxRetries: 2 }
  try {
    await rm(path, rest)
  } catch {
    await unlock(path)
    await rm(path, rest)
  }
}

async function unlock(folder: string): Promise<void> {
  await chmod(folder, 0o700)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await unlock(join(folder, entry.name))
  }
}

/** Processes of other hosts, and of containers with their own host name, cannot be checked from here. */
const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8)

/**
 * Identifies this process on this machine, in a form that fits into a file name: by its id and its start, because
 * process ids are reused.
 */
export const ownerToken = () => {
  ownToken ??= `${host}-${process.pid}-${beganAt(process.pid)}`
  return ownToken
}
let ownToken: string | undefined

/** Whether the owner is known to be dead. */
export function isOwnerDead(owner: string): boolean {
  const [where, pid, began] = owner.split('-')
  return where === host && beganAt(Number(pid)) !== began
}
