/** The folder of one attempt: made for it, removed after it, and after a worker that died, by the next. */
import { chmod, lstat, mkdir, mkdtemp, readdir, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import { isOwnerDead, ownerToken } from './process-owner.ts'

export interface AttemptFolder {
  readonly path: string
  readonly in: string
  readonly out: string
  readonly scratch: string
}

/** Works for users without a passwd entry, as in many containers. Windows has no user ids. */
const ownUid = () => process.geteuid?.() ?? -1

/** In the folder of the system for what passes, one for each user: others must not prepare what we write into. */
export const defaultFolder = () => join(tmpdir(), `pawl-${ownUid()}`)

/** Makes the folder of all attempts, and removes from it what dead workers left. */
export async function openFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new Problem('FILE_INVALID', { file: folder, why: `no folder can be made there: ${error.message}` })
  })
  const { uid } = await lstat(folder)
  if (folder === defaultFolder() && ownUid() >= 0 && uid !== ownUid()) {
    throw new Problem('FILE_INVALID', { file: folder, why: 'it belongs to another user: choose one with --folder' })
  }
  for (const name of await readdir(folder)) {
    const [, owner] = /^attempt\.([^.]+)\./.exec(name) ?? []
    if (owner !== undefined && isOwnerDead(owner)) await removeFolder(join(folder, name)).catch(() => {})
  }
}

/** Only its owner may look into it. Its name says whose it is from the first moment on. */
export async function makeAttemptFolder(folder: string): Promise<AttemptFolder> {
  // The real path: if a link is put in the place of a folder on the way, it leads elsewhere, and that is seen.
  const path = await realpath(await mkdtemp(join(folder, `attempt.${ownerToken()}.`)))
  const made = { path, in: join(path, 'in'), out: join(path, 'out'), scratch: join(path, 'scratch') }
  for (const part of [made.in, made.out, made.scratch]) await mkdir(part)
  return made
}

/** With whatever a command left there, read-only folders too. */
export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true, maxRetries: 2 })
  } catch {
    await unlock(path)
    await rm(path, { recursive: true, force: true, maxRetries: 2 })
  }
}

async function unlock(folder: string): Promise<void> {
  await chmod(folder, 0o700)
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) await unlock(join(folder, entry.name))
  }
}
