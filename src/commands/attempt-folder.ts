/** The temporary folder of one attempt: created for it and removed after it, or by the next worker if this one dies. */
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

/**
 * One folder per user in the system's temp directory, so that no other user can prepare the folder that we write to.
 */
export const defaultFolder = () => join(tmpdir(), `pawl-${ownUid()}`)

/** Creates the folder for all attempts, and removes what dead workers left in it. */
export async function openFolder(folder: string): Promise<void> {
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
}

/** Accessible only to its owner. Its name identifies its owner from the moment it exists. */
export async function makeAttemptFolder(folder: string): Promise<AttemptFolder> {
  // The real path, so that a link put in the place of a parent folder is detected, because it leads elsewhere.
  const path = await realpath(await mkdtemp(join(folder, `attempt.${ownerToken()}.`)))
  const made = { path, in: join(path, 'in'), out: join(path, 'out'), scratch: join(path, 'scratch') }
  for (const part of [made.in, made.out, made.scratch]) await mkdir(part)
  return made
}

/** Removes the folder and everything that a command left there, even read-only folders. */
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
