/**
 * Classifies errors of PostgreSQL and of the connection to it, so that callers know how to react. One table, by
 * SQLSTATE class and, for mixed classes, by code.
 */
import { Problem, type ProblemCode } from '../../kernel/problem.ts'

export type StoreFault =
  /** Caused by a value: the same statement fails again, but others in its batch do not. */
  | 'data'
  /** The transaction lost a conflict and was rolled back. The same statement may succeed at once. */
  | 'conflict'
  /** Another transaction held a row for longer than the lock timeout. */
  | 'locked'
  /** The statement exceeded its timeout, or an administrator cancelled it. */
  | 'cancelled'
  | 'full'
  | 'read-only'
  | 'crowded'
  /** The server rejects the role, or its access to a table. */
  | 'refused'
  /** The connection broke, the server is starting or shutting down, or it lacks a resource. */
  | 'away'
  /** Unknown: a bug of ours, or of the server. */
  | 'bug'

const byClass: Readonly<Record<string, StoreFault>> = {
  '08': 'away',
  '22': 'data',
  '23': 'data',
  '26': 'away',
  '28': 'refused',
  '3D': 'refused',
  '40': 'conflict',
  '53': 'away',
  '54': 'data',
  '55': 'away',
  '57': 'away',
  '58': 'away',
  P0: 'data',
}

const byCode: Readonly<Record<string, StoreFault>> = {
  '25006': 'read-only',
  '25P03': 'away',
  '25P04': 'away',
  '40003': 'away',
  '42501': 'refused',
  '53100': 'full',
  '53300': 'crowded',
  '55P03': 'locked',
  '57014': 'cancelled',
}

/** Error codes of Node's sockets and resolver. */
const connectionErrorCode = /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH)/
/** node-postgres reports these without a code. */
const clientErrorMessage =
  /Connection terminated|timeout exceeded when trying to connect|not queryable|Client was closed|Query read timeout/

export function storeFault(error: unknown): StoreFault {
  if (!(error instanceof Error)) return 'bug'
  if (error instanceof Problem) return error.cause === undefined ? 'bug' : storeFault(error.cause)
  const { code } = error as { code?: unknown }
  if (typeof code !== 'string') return clientErrorMessage.test(error.message) ? 'away' : 'bug'
  if (connectionErrorCode.test(code)) return 'away'
  return byCode[code] ?? (code.length === 5 ? byClass[code.slice(0, 2)] : undefined) ?? 'bug'
}

/** The problem that callers get. All of them are temporary, so the same request may succeed later. */
const problemCodes: Partial<Record<StoreFault, ProblemCode>> = {
  locked: 'STORE_BUSY',
  cancelled: 'STORE_BUSY',
  full: 'STORE_FULL',
  'read-only': 'STORE_READ_ONLY',
  crowded: 'STORE_CROWDED',
  refused: 'STORE_REFUSED',
  away: 'STORE_UNAVAILABLE',
}

/** Converts an error of the store into a problem. Errors of the statement itself are returned unchanged. */
export function asProblem(error: unknown): unknown {
  if (error instanceof Problem) return error
  const code = problemCodes[storeFault(error)]
  return code === undefined ? error : new Problem(code, { why: (error as Error).message }, error)
}

/** Whether the connection can no longer be used. */
export function isBroken(error: unknown): boolean {
  return storeFault(error) === 'away'
}
