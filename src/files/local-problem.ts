/** What the file system said, as a problem. */
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
  // A file lies where a folder is wanted, or the other way round.
  ENOTDIR: 'NAME_REFUSED',
  EISDIR: 'NAME_REFUSED',
  EEXIST: 'NAME_REFUSED',
  ENOTEMPTY: 'NAME_REFUSED',
}

/** What is not of the file system (a bug, an abort, a problem already) stays as it is. */
export function localProblem(error: unknown, name: string): unknown {
  if (!(error instanceof Error) || error instanceof Problem || !('syscall' in error)) return error
  return new Problem(codes[codeOf(error) ?? ''] ?? 'FILES_UNAVAILABLE', { name, why: error.message }, error)
}

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined
}

/** Runs a step, and says what went wrong in our words. */
export async function withFileErrors<T>(name: string, step: () => Promise<T>): Promise<T> {
  try {
    return await step()
  } catch (error) {
    throw localProblem(error, name)
  }
}
