/**
 * Keeps a second process out of a data folder; two would destroy it.
 *
 * The lock is held by the kernel for the lifetime of the process, on a file inside the folder. So it goes when the
 * process dies, however it dies; it holds between containers that share a volume, where process ids and names of hosts
 * say nothing; and no link or other name of the folder leads around it. Machines that share a folder over a network
 * (NFS, SMB) are not covered: whether their locks reach one another depends on the file system.
 */
import { closeSync, mkdirSync, openSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { Problem } from '../../kernel/problem.ts'

/** Files of ours in the folder of the store. PGlite ignores them. */
export const lockFiles = { lock: 'pawl.lock', holder: 'pawl.lock.json' } as const

/** The process that has the folder open. The refusal names it. */
interface Holder {
  readonly host: string
  readonly pid: number
  readonly startedAt: string
}

/** Locks the folder, which is made if it is missing. Returns a function that unlocks it. */
export function lockFolder(folder: string): () => void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const real = realpathSync(folder)
  const descriptor = openSync(join(real, lockFiles.lock), 'a+', 0o600)
  if (!tryLock(descriptor)) {
    closeSync(descriptor)
    throw new Problem('STORE_LOCKED', { folder, ...holderOf(real) })
  }
  const startedAt = new Date(Date.now() - process.uptime() * 1000).toISOString()
  const holder: Holder = { host: hostname(), pid: process.pid, startedAt }
  writeFileSync(join(real, lockFiles.holder), `${JSON.stringify(holder)}\n`, { mode: 0o600 })
  // Closing the file ends the lock.
  return () => closeSync(descriptor)
}

function tryLock(descriptor: number): boolean {
  // A native module, which is loaded only where an embedded store is opened.
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
