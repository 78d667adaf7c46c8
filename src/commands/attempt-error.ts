import { isWorthRetry, Problem } from '../kernel/problem.ts'
import { Failed, GiveUp } from '../worker/errors.ts'

const full: readonly unknown[] = ['ENOSPC', 'EDQUOT', 'DISK_FULL']

/** What went wrong with a file, as an attempt tells it: whether trying again can help, and what was being done. */
export function toAttemptError(error: unknown, doing: string): unknown {
  if (error instanceof GiveUp || error instanceof Failed || !(error instanceof Error)) return error
  const message = `${doing} failed: ${error.message}`
  // Nobody's fault for good: there may be room the next time, or elsewhere.
  if ('code' in error && full.includes(error.code)) return new Failed('infrastructure_failure', `DISK_FULL: ${message}`)
  if (error instanceof Problem && !isWorthRetry(error)) return new GiveUp(message, { cause: error })
  return error instanceof Problem ? new Error(message, { cause: error }) : error
}
