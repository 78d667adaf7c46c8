/** Errors with which a handler controls what happens next. Any other error is retried by the policy of the task. */
import type { ReasonCode, Report, Step, TaskError } from '../kernel/decide.ts'
import { describeError } from '../kernel/error-cause.ts'
import { Problem } from '../kernel/problem.ts'
import { mapStack } from './source-maps.ts'

/** Options of `RetryIn`. */
export interface RetryInOptions extends ErrorOptions {
  /**
   * False: the attempt is not counted as a failure, so it can be repeated without end. Set `expireInSeconds` for the
   * task, or compare `ctx.epoch`, which counts its claims. Default true.
   */
  readonly usesAttempt?: boolean
}

/**
 * Throw it to retry after a number of seconds, whatever the backoff. The attempt counts as a failure, unless
 * `usesAttempt` is false.
 *
 * @example
 * throw new RetryIn(60, 'the report is not ready', { usesAttempt: false })
 */
export class RetryIn extends Error {
  override readonly name = 'RetryIn'
  readonly seconds: number
  readonly usesAttempt: boolean

  constructor(seconds: number, options?: RetryInOptions)
  constructor(seconds: number, message?: string, options?: RetryInOptions)
  constructor(seconds: number, messageOrOptions?: string | RetryInOptions, more?: RetryInOptions) {
    const [message, options] =
      typeof messageOrOptions === 'string' ? [messageOrOptions, more] : [undefined, messageOrOptions ?? more]
    super(message ?? `The handler asked for a retry in ${seconds} s.`, options)
    this.seconds = seconds
    this.usesAttempt = options?.usesAttempt ?? true
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

  constructor(reasonCode: ReasonCode, message: string = reasonCode, options?: ErrorOptions) {
    super(message, options)
    this.reasonCode = reasonCode
  }
}

/** Throw it to move the task to the dead-letter queue, with a reason code. */
export class DeadLetter extends Error {
  override readonly name = 'DeadLetter'
  readonly reasonCode: ReasonCode
  readonly step: Step | undefined

  constructor(reasonCode: ReasonCode, message: string = reasonCode, step?: Step, options?: ErrorOptions) {
    super(message, options)
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
 * error that followed. `step`: the step that was running. Never throws, whatever was thrown.
 */
export function reportOf(thrown: unknown, interrupted: InterruptReason | undefined, step?: Step): Report {
  const error = { ...describeError(thrown, mapStack), ...(step && { step }) }
  if (interrupted === 'cancelled') return { outcome: 'cancelled', reason: error.message }
  if (interrupted === 'shutdown') return { outcome: 'released', reason: 'The worker is shutting down.' }
  // If the lease still holds after all (the store was away), nothing is charged.
  if (interrupted === 'lease-lost') return { outcome: 'released', reason: 'The worker could not renew its lease.' }
  if (interrupted === 'timeout') return { outcome: 'failed', error: { ...error, reasonCode: 'timeout' } }
  try {
    return reportByClass(thrown, error)
  } catch {
    // The class of a Proxy, and the fields of any object, may refuse to be read.
    return { outcome: 'failed', error }
  }
}

function reportByClass(thrown: unknown, error: TaskError): Report {
  if (thrown instanceof RetryIn) {
    const later = { ...error, retryInSeconds: thrown.seconds }
    if (thrown.usesAttempt) return { outcome: 'failed', error: later }
    return { outcome: 'released', reason: error.message, error: later }
  }
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
