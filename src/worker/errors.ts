/** Errors with which a handler controls what happens next. Any other error is retried by the policy of the task. */
import type { ReasonCode, Report, Step, TaskError } from '../kernel/decide.ts'
import { storableText } from '../kernel/json.ts'
import { Problem } from '../kernel/problem.ts'

/** Throw it to retry after a number of seconds, whatever the backoff. The attempt counts as a failure. */
export class RetryIn extends Error {
  override readonly name = 'RetryIn'
  readonly seconds: number

  constructor(seconds: number, message = `The handler asked for a retry in ${seconds} s.`) {
    super(message)
    this.seconds = seconds
  }
}

/** Throw it to fail the task at once, without further attempts. */
export class GiveUp extends Error {
  override readonly name = 'GiveUp'
}

/** Throw it to fail the attempt with a reason code, which is recorded if this was the last attempt. */
export class Failed extends Error {
  override readonly name = 'Failed'
  readonly reasonCode: ReasonCode

  constructor(reasonCode: ReasonCode, message: string = reasonCode) {
    super(message)
    this.reasonCode = reasonCode
  }
}

/** Throw it to move the task to the dead-letter queue, with a reason code. */
export class DeadLetter extends Error {
  override readonly name = 'DeadLetter'
  readonly reasonCode: ReasonCode
  readonly step: Step | undefined

  constructor(reasonCode: ReasonCode, message: string = reasonCode, step?: Step) {
    super(message)
    this.reasonCode = reasonCode
    this.step = step
  }
}

/** Throw it when there is nothing to do. The task ends well, as skipped. */
export class Skip extends Error {
  override readonly name = 'Skip'
}

/** Why a handler is interrupted. */
export type InterruptReason = 'cancelled' | 'lease-lost' | 'timeout' | 'shutdown'

/** Why a handler's signal was aborted: `signal.reason.reason`. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  readonly reason: InterruptReason

  constructor(reason: InterruptReason) {
    super(`The task must stop: ${reason}.`)
    this.reason = reason
  }
}

/**
 * Turns an error thrown by a handler into a report. If the attempt was interrupted, the interruption counts and not the
 * error that followed. `step`: the step that was running.
 */
export function reportOf(thrown: unknown, interrupted: InterruptReason | undefined, step?: Step): Report {
  const error = { ...describe(thrown), ...(step && { step }) }
  if (interrupted === 'cancelled') return { outcome: 'cancelled', reason: error.message }
  if (interrupted === 'shutdown') return { outcome: 'released', reason: 'The worker is shutting down.' }
  // If the lease still holds after all (the store was away), nothing is charged.
  if (interrupted === 'lease-lost') return { outcome: 'released', reason: 'The worker could not renew its lease.' }
  if (interrupted === 'timeout') return { outcome: 'failed', error: { ...error, reasonCode: 'timeout' } }
  if (thrown instanceof RetryIn) return { outcome: 'failed', error: { ...error, retryInSeconds: thrown.seconds } }
  if (thrown instanceof Failed) return { outcome: 'failed', error: { ...error, reasonCode: thrown.reasonCode } }
  if (thrown instanceof GiveUp) return { outcome: 'failed', error: { ...error, permanent: true } }
  if (thrown instanceof Skip) return { outcome: 'skipped', reason: error.message }
  if (thrown instanceof DeadLetter) {
    const { reasonCode, step: own } = thrown
    return { outcome: 'dead_lettered', error: { ...error, reasonCode, ...(own && { step: own }) } }
  }
  // The payload of this task. Another payload that the handler enqueues has a longer place.
  if (thrown instanceof Problem && thrown.code === 'PAYLOAD_REFUSED' && thrown.details.at === 'payload') {
    return { outcome: 'dead_lettered', error: { ...error, reasonCode: 'validation_failed', step: 'input' } }
  }
  return { outcome: 'failed', error }
}

const longest = 10_000

function describe(thrown: unknown): TaskError {
  if (!(thrown instanceof Error)) return { message: clean(String(thrown)) }
  const message = clean(thrown.message || thrown.name)
  return { message, ...(thrown.stack !== undefined && { stack: clean(thrown.stack) }) }
}

function clean(text: string): string {
  return storableText(text, longest)
}
