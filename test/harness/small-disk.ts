/** A small file system in memory, which a test can fill. Mounting one needs root on Linux. */
import { execFileSync } from 'node:child_process'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { type Cluster, startCluster } from './cluster.ts'

export interface SmallDisk {
  readonly folder: string
  /** Leaves no space free, whatever other processes write or delete meanwhile. */
  fill(): void
  empty(): void
  remove(): void
}

/** Undefined where this process may not mount anything. */
function smallDisk(megabytes: number): SmallDisk | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return undefined
  const folder = mkdtempSync(join(tmpdir(), 'pawl-small-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'none', folder], { stdio: 'ignore' })
  } catch {
    rmdirSync(folder)
    return undefined
  }
  const ballast = join(folder, 'ballast')
  const page = Buffer.alloc(4096)
  return {
    folder,
    fill() {
      const file = openSync(ballast, 'w')
      try {
        // The free space changes while PostgreSQL works, so it is not read first. The disk says when it is full.
        for (;;) writeSync(file, page)
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
      } finally {
        closeSync(file)
      }
    },
    empty: () => rmSync(ballast),
    remove() {
      execFileSync('umount', ['-l', folder], { stdio: 'ignore' })
      rmdirSync(folder)
    },
  }
}

/** A PostgreSQL server on a small disk, which ends with the test. Undefined where none can be mounted. */
export async function smallDiskCluster(
  t: TestContext,
  megabytes: number,
): Promise<{ disk: SmallDisk; cluster: Cluster } | undefined> {
  const disk = smallDisk(megabytes)
  if (disk === undefined) return undefined
  const folder = join(disk.folder, 'cluster')
  mkdirSync(folder)
  const cluster = await startCluster({ version: 18, folder, settings: { fsync: 'off' } })
  t.after(async () => {
    await cluster.stop()
    disk.remove()
  })
  return { disk, cluster }
}
