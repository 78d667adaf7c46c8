/** Maps errors of the file system to problems. */
import { Problem, type ProblemCode } from '../kernel/problem.ts'

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
