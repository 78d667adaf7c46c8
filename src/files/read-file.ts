/** Reads a local file in full chunks (the last may be shorter), each in its own buffer. */
import { constants, open } from 'node:fs/promises'
import { Problem } from '../kernel/problem.ts'
import { localProblem } from './local-problem.ts'

export async function* chunksOf(path: string, chunkBytes: number, signal?: AbortSignal): AsyncGenerator<Buffer> {
  try {
    // Not blocking, because opening a pipe would wait forever. No links, because a new one could lead anywhere.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    try {
      if (!(await handle.stat()).isFile()) throw new Problem('NAME_REFUSED', { name: path, why: 'it is not a file' })
      for (;;) {
        const chunk = await fill(handle, Buffer.allocUnsafeSlow(chunkBytes), signal)
        if (chunk.length > 0) yield chunk
        if (chunk.length < chunkBytes) return
      }
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw localProblem(error, path)
  }
}

/** Reads in steps, so that other work can run in between. */
async function fill(handle: Awaited<ReturnType<typeof open>>, buffer: Buffer, signal?: AbortSignal): Promise<Buffer> {
  let filled = 0
  while (filled < buffer.length) {
    signal?.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, filled, Math.min(stepBytes, buffer.length - filled), null)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return buffer.subarray(0, filled)
}

export const stepBytes = 1 << 20
