/**
 * Keeps a second process out of a data folder, because two would destroy it.
 *
 * The kernel holds the lock for the lifetime of the process, on a file inside the folder. So the lock ends when the
 * process dies, however it dies. It works between containers that share a volume, where process ids and host names mean
 * nothing, and no link or other name of the folder bypasses it. Machines that share a folder over a network (NFS, SMB)
 * are not covered: whether they see each other's locks depends on the file system.
 */
import { closeSync, mkdirSync, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Problem } from '../../kernel/problem.ts'

/** Pawl's own files in the store's folder. PGlite ignores them. */
export const lockFiles = { lock: 'pawl.lock', holder: 'pawl.lock.json' } as const

/** The process that has the folder open. It is named in the error. */
interface Holder {
  readonly host: string
  readonly pid: number
  readonly startedAt: string
}

/** Locks the folder, which is created if it is missing. Returns a function that unlocks it. */
export function lockFolder(folder: string): () => void {
  const { real, descriptor } = openLock(folder)
  if (!tryLock(descriptor)) {
    closeSync(descriptor)
    throw new Problem('STORE_LOCKED', { folder, ...holderOf(real) })
  }
  const startedAt = new Date(Date.now() - process.uptime() * 1000).toISOString()
  const holder: Holder = { host: hostname(), pid: process.pid, startedAt }
  writeFileSync(join(real, lockFiles.holder), `${JSON.stringify(holder)}\n`, { mode: 0o600 })
  // Closing the file releases the lock.
  return () => closeSync(descriptor)
}

/** Fails if nothing can be written there, as in a container with a read-only file system. */
function openLock(folder: string) {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const real = realpathSync(folder)
    return { real, descriptor: openSync(join(real, lockFiles.lock), 'a+', 0o600) }
  } catch (error) {
    const why = `the folder of the store must be writable (${(error as Error).message}); choose another one with --data`
    throw new Problem('FILE_INVALID', { file: folder, why }, error)
  }
}

function tryLock(descriptor: number): boolean {
  // A native module, loaded only when an embedded store is opened.
  const { tryLock } = createRequire(import.meta.url)('fs-native-extensions') as { tryLock(descriptor: number): boolean }
  return tryLock(descriptor)
}

/** Empty if the holder has locked the folder but has not written its name yet. */
function holderOf(folder: string): Partial<Holder> {
  try {
    const { host, pid, startedAt } = JSON.parse(readFileSync(join(folder, lockFiles.holder), 'utf8')) as Holder
    return { host, pid, startedAt }
  } catch {
    return {}
  }
}
