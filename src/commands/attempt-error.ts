import { isWorthRetry, Problem } from '../kernel/problem.ts'
import { Failed, GiveUp } from '../worker/errors.ts'

const full: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'DISK_FULL']

/**
 * Turns a file error into the error that ends the attempt: it says what was being done and whether a retry can help.
 */
export function toAttemptError(error: unknown, doing: string): unknown {
  if (error instanceof GiveUp || error instanceof Failed || !(error instanceof Error)) return error
  const message = `${doing} failed: ${error.message}`
  // A full disk is temporary: there may be space the next time, or on another machine.
  if ('code' in error && full.includes(error.code)) return new Failed('infrastructure_failure', `DISK_FULL: ${message}`)
  if (error instanceof Problem && !isWorthRetry(error)) return new GiveUp(message, { cause: error })
  return error instanceof Problem ? new Error(message, { cause: error }) : error
}

/** Quotes a name for a message, with invisible characters escaped, and truncates it. */
export function quote(name: string): string {
  const text = JSON.stringify(name)
  return text.length > 300 ? `${text.slice(0, 300)}…"` : text
}
