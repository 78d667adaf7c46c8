/** Maps errors of S3, the network and the credential lookup to problems. */
import { Problem, type ProblemCode } from '../kernel/problem.ts'

const names: Readonly<Record<string, ProblemCode>> = {
  NoSuchBucket: 'FILE_NOT_FOUND',
  NoSuchKey: 'FILE_NOT_FOUND',
  NotFound: 'FILE_NOT_FOUND',
  KeyTooLongError: 'NAME_REFUSED',
  InvalidObjectName: 'NAME_REFUSED',
  XMinioInvalidObjectName: 'NAME_REFUSED',
  AccessDenied: 'FILES_DENIED',
  AllAccessDisabled: 'FILES_DENIED',
  InvalidAccessKeyId: 'FILES_DENIED',
  SignatureDoesNotMatch: 'FILES_DENIED',
  ExpiredToken: 'FILES_DENIED',
  ExpiredTokenException: 'FILES_DENIED',
  InvalidToken: 'FILES_DENIED',
  TokenRefreshRequired: 'FILES_DENIED',
  CredentialsProviderError: 'FILES_DENIED',
  AuthorizationHeaderMalformed: 'FILES_DENIED',
  XMinioStorageFull: 'DISK_FULL',
  QuotaExceeded: 'DISK_FULL',
  InsufficientCapacity: 'DISK_FULL',
}

/** Returns the reason of an abort, and leaves problems unchanged. */
export function s3Problem(error: unknown, uri: string, signal?: AbortSignal): unknown {
  if (signal?.aborted) return signal.reason
  if (!(error instanceof Error) || error instanceof Problem) return error
  const reason = isUnnamed(error) ? `HTTP ${statusOf(error)}` : `${error.name}: ${error.message}`
  return new Problem(codeFor(error), { uri, why: reason }, error)
}

function codeFor(error: Error): ProblemCode {
  if (Object.hasOwn(names, error.name)) return names[error.name]!
  const status = statusOf(error)
  if (status === 401 || status === 403) return 'FILES_DENIED'
  return status === 507 ? 'DISK_FULL' : 'FILES_UNAVAILABLE'
}

/** Responses to HEAD have no body with an error name. */
function isUnnamed(error: Error): boolean {
  return error.name === 'Unknown' || error.name === 'UnknownError' || error.message === 'UnknownError'
}

function statusOf(error: Error): number | undefined {
  return (error as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode
}
