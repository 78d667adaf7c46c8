import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { percentile } from './statistics.ts'

export interface FsyncLatency {
  p50: number
  p99: number
}

const writes = 200

/** Milliseconds to write and sync 8 kB on the disk of the databases. Every commit waits for this. */
export async function measureFsync(): Promise<FsyncLatency> {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-bench-fsync-'))
  const file = await open(join(folder, 'log'), 'w')
  try {
    // Like a write-ahead log, the file has its final size before it is written.
    await file.write(Buffer.alloc(writes * 8192))
    await file.sync()
    const took: number[] = []
    for (let index = 0; index < writes; index++) {
      const began = performance.now()
      await file.write(Buffer.alloc(8192, index), 0, 8192, index * 8192)
      await file.datasync()
      took.push(performance.now() - began)
    }
    return { p50: percentile(took, 0.5), p99: percentile(took, 0.99) }
  } finally {
    await file.close()
    await rm(folder, { recursive: true, force: true })
  }
}
