import { constants, open } from 'node:fs/promises'
import { Problem, type ProblemCode } from '../kernel/problem.ts'

/** Reads a local file in full chunks (the last may be shorter), each in its own buffer. */
export async function* chunksOf(path: string, chunkBytes: number, signal?: AbortSignal): AsyncGenerator<Buffer> {
  try {
    // Not blocking, because opening a pipe would wait forever. No links, because a new one could lead anywhere.
    await using handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    if (!(await handle.stat()).isFile()) throw new Problem('NAME_REFUSED', { name: path, why: 'it is not a file' })
    for (;;) {
      const chunk = await fill(handle, Buffer.allocUnsafeSlow(chunkBytes), signal)
      if (chunk.length > 0) yield chunk
      if (chunk.length < chunkBytes) return
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

/** The problems of file system errors. */
const codes: Readonly<Record<string, ProblemCode>> = {
  ENOENT: 'FILE_NOT_FOUND',
  EACCES: 'FILES_DENIED',
  EPERM: 'FILES_DENIED',
  EROFS: 'FILES_DENIED',
  ENOSPC: 'DISK_FULL',
  EDQUOT: 'DISK_FULL',
  EFBIG: 'DISK_FULL',
  ENAMETOOLONG: 'NAME_REFUSED',
  EILSEQ: 'NAME_REFUSED',
  ELOOP: 'NAME_REFUSED',
  // There is a file where a folder is needed, or the reverse.
  ENOTDIR: 'NAME_REFUSED',
  EISDIR: 'NAME_REFUSED',
  EEXIST: 'NAME_REFUSED',
  ENOTEMPTY: 'NAME_REFUSED',
}

/** Other errors (a bug, an abort, a Problem) stay as they are. */
export function localProblem(error: unknown, name: string): unknown {
  if (!(error instanceof Error) || error instanceof Problem || !('syscall' in error)) return error
  return new Problem(codes[codeOf(error) ?? ''] ?? 'FILES_UNAVAILABLE', { name, why: error.message }, error)
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** Runs a step and maps its file system errors to problems. */
export async function withFileErrors<T>(name: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    throw localProblem(error, name)
  }
}
