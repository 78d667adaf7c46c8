/**
 * Decides the next state of a task. Pure: takes facts and returns a verdict. The store writes verdicts down, and the
 * model test replays them.
 *
 * The three hot paths (enqueue, claim, and settling a success) are separate statements in store/ and must agree with
 * these functions. Everything else goes through them.
 */
import { causeLimits, causesOf, type ErrorCause, textOf } from './error-cause.ts'
import { mayMove, movesOpenTo } from './lifecycle.ts'
import type { TaskSettings } from './settings.ts'
import { type TaskMove, type TaskState, taskLifecycle } from './task.ts'

export const reasonCodes = [
  'parse_error',
  'validation_failed',
  'dependency_unavailable',
  'timeout',
  'exhausted_retries',
  'policy_violation',
  'infrastructure_failure',
  'compensation_failed',
] as const
export type ReasonCode = (typeof reasonCodes)[number]

export const steps = ['fetch', 'input', 'exec', 'output', 'commit'] as const
export type Step = (typeof steps)[number]

export const outcomes = ['succeeded', 'failed', 'skipped', 'cancelled', 'released', 'dead_lettered'] as const
export type ReportedOutcome = (typeof outcomes)[number]

/** The error of an attempt. */
export interface TaskError extends ErrorCause {
  /** The output of a failed attempt, or the end of it. A failed attempt has no result that could hold it. */
  readonly output?: string
  readonly permanent?: boolean
  readonly retryInSeconds?: number
  readonly reasonCode?: ReasonCode
  readonly step?: Step
}

export interface Report {
  readonly outcome: ReportedOutcome
  readonly output?: unknown
  readonly error?: TaskError
  readonly partial?: boolean
  readonly reason?: string
}

export interface TaskFacts {
  readonly state: TaskState
  readonly failures: number
  readonly losses: number
  /** Consecutive losses before a start, counted since the last loss that was charged. */
  readonly lostBeforeStart: number
  /** The task is held, and a soft cancel was requested. */
  readonly cancelling: boolean
  /** The task compensates another one, so its dead letters have a reason code of their own. */
  readonly undoes?: boolean
  readonly settings: TaskSettings
}

/** One transition, or a recorded request that changes no state (`to` is then the current state). */
export interface TaskStep {
  readonly to: TaskState
  /** The event type, if it differs from the default for `to`. */
  readonly type?: string
  readonly cause: string
  readonly payload?: Record<string, unknown>
}

/** Columns that change besides state, seq, round and epoch. Absent columns keep their values. */
export interface TaskPatch {
  readonly failures?: number
  readonly losses?: number
  readonly careful?: boolean
  readonly runInSeconds?: number
  readonly output?: unknown
  readonly error?: TaskError | null
  readonly partial?: boolean
  readonly deadLetter?: { reasonCode: ReasonCode; step?: Step } | null
  readonly cancelRequested?: boolean
  readonly opensRound?: boolean
}

export type Verdict =
  | { readonly ok: true; readonly steps: readonly TaskStep[]; readonly patch: TaskPatch }
  | { readonly ok: false; readonly state: TaskState; readonly move: TaskMove; readonly possible: TaskMove[] }

/** Applies a worker's report to a task that it holds. A report without a start makes both transitions. */
export function settle(facts: TaskFacts, report: Report, random: number): Verdict {
  const cause = `reported_${report.outcome}`
  const ending = decideReport(facts, report, cause, random)
  const skipsStart = facts.state === 'assigned' && report.outcome !== 'released'
  if (!ending.ok || !skipsStart) return ending
  return { ...ending, steps: [{ to: 'running', cause: 'implied' }, ...ending.steps] }
}

/**
 * The work is done, so a report is accepted whatever its error looks like: fields that should be text become text, and
 * a missing message gets a default.
 */
function errorIn({ error = {}, reason, outcome }: Omit<Report, 'error'> & { error?: Partial<TaskError> }): TaskError {
  const { message, stack, output, cause: _cause, errors: _errors, ...rest } = error
  return {
    ...rest,
    message: message == null ? (reason ?? `The worker reported ${outcome}.`) : textOf(message),
    ...('stack' in error && { stack: stack == null ? '' : textOf(stack) }),
    ...('output' in error && { output: output == null ? '' : textOf(output) }),
    ...causesOf(error, causeLimits),
  }
}

function decideReport(facts: TaskFacts, report: Report, cause: string, random: number): Verdict {
  const error = errorIn(report)
  const reason = report.reason === undefined ? {} : { reason: report.reason }
  switch (report.outcome) {
    case 'succeeded': {
      const partial = report.partial === true
      const payload = partial ? { partial } : {}
      return verdict(
        { to: 'succeeded', cause, payload },
        { partial, error: null, ...('output' in report && { output: report.output }) },
      )
    }
    case 'skipped':
      return verdict({ to: 'skipped', cause, payload: reason }, { error: null })
    case 'cancelled':
      return verdict({ to: 'cancelled', cause, payload: reason }, report.error === undefined ? {} : { error })
    case 'released':
      if (facts.cancelling) return verdict({ to: 'cancelled', cause, payload: reason }, {})
      // Only a handler asks for a delay, so the task has started and did not kill its worker.
      if (error.retryInSeconds != null) {
        const postponed = { runInSeconds: error.retryInSeconds, careful: false }
        return verdict({ to: 'retrying', cause, payload: reason }, postponed)
      }
      return verdict({ to: 'retrying', cause, payload: reason }, { runInSeconds: 0 })
    case 'failed':
      return fail(facts, error, cause, random)
    case 'dead_lettered':
      if (facts.cancelling) return cancelled(error, cause)
      return deadLettered(
        facts.undoes ? 'compensation_failed' : (error.reasonCode ?? 'policy_violation'),
        error,
        cause,
        {},
      )
  }
}

/** A failed attempt: retried, failed, or dead-lettered, depending on the budget and the policy. */
function fail(facts: TaskFacts, error: TaskError, cause: string, random: number): Verdict {
  const { settings } = facts
  const failures = facts.failures + 1
  if (facts.cancelling) return cancelled(error, cause, { failures })
  if (error.permanent === true && !facts.undoes) {
    return verdict({ to: 'failed', cause, payload: { error } }, { failures, error })
  }
  const isSpent =
    settings.losses === null ? failures + facts.losses >= settings.attempts : failures >= settings.attempts
  if (!isSpent && error.permanent !== true) {
    const runInSeconds = error.retryInSeconds ?? backoffSeconds(settings, facts.failures, random)
    return verdict({ to: 'retrying', cause, payload: { error } }, { failures, error, runInSeconds, careful: false })
  }
  if (settings.deadLetter === 'never' && !facts.undoes) {
    return verdict({ to: 'failed', cause, payload: { error } }, { failures, error })
  }
  const reasonCode = facts.undoes ? 'compensation_failed' : (error.reasonCode ?? 'exhausted_retries')
  return deadLettered(reasonCode, error, cause, { failures })
}

/** Consecutive losses before a start that are charged as one loss. */
const lossesBeforeStart = 10

/**
 * Handles an expired lease. The loss is charged if the task was running. A task that was lost before its start is
 * retried as `careful`, because it may be the one that killed its worker, or just a neighbour of that task. Such losses
 * are charged only after many in a row, so that workers that never start a task cannot claim it forever.
 */
export function loseLease(facts: TaskFacts, { charged, why }: { charged: boolean; why?: string }): Verdict {
  const cause = 'lease_lost'
  const error = { message: why ?? 'The worker stopped renewing its lease.' }
  const isLastOfRow = facts.lostBeforeStart + 1 >= lossesBeforeStart && !facts.cancelling
  const counts = facts.state === 'running' || isLastOfRow
  const losses = facts.losses + (charged && counts ? 1 : 0)
  if (facts.cancelling) return cancelled(error, cause, { losses })
  const { settings } = facts
  const isSpent = settings.losses === null ? facts.failures + losses >= settings.attempts : losses >= settings.losses
  if (losses > facts.losses && isSpent) {
    if (settings.deadLetter === 'never' && !facts.undoes) {
      return verdict({ to: 'failed', cause, payload: { error } }, { losses, error })
    }
    return deadLettered(facts.undoes ? 'compensation_failed' : 'infrastructure_failure', error, cause, { losses })
  }
  const careful = facts.state === 'assigned'
  // An expired lease alone explains nothing. An observed reason, such as a dead pod, is worth recording.
  const hasReason = why !== undefined
  return verdict(
    { to: 'retrying', cause, payload: { charged: losses > facts.losses, ...(hasReason && { error }) } },
    { losses, careful, runInSeconds: 0, ...(hasReason && { error }) },
  )
}

/** Handles an attempt that exceeded its timeout, found by the babysitter. It counts as a failure. */
export function timeOut(facts: TaskFacts, random: number): Verdict {
  const message = `The attempt ran for longer than ${facts.settings.timeoutSeconds} s.`
  return fail(facts, { message, reasonCode: 'timeout' }, 'timeout', random)
}

export function expire(facts: TaskFacts): Verdict {
  return ask(facts, 'expire', () => verdict({ to: 'expired', cause: 'time_to_live' }, {}))
}

/** Soft: tells the worker, which may still finish. Hard, or without a worker: ends the task and voids the lease. */
export function cancel(facts: TaskFacts, mode: 'soft' | 'hard', reason?: string): Verdict {
  const payload = { mode, ...(reason !== undefined && { reason }) }
  return ask(facts, 'cancel', () => {
    const held = taskLifecycle.states[facts.state].kind === 'held'
    if (!held || mode === 'hard') return verdict({ to: 'cancelled', cause: 'cancel', payload }, {})
    if (facts.cancelling) return { ok: true, steps: [], patch: {} }
    const request = { to: facts.state, type: 'task.cancel_requested', cause: 'cancel', payload }
    return verdict(request, { cancelRequested: true })
  })
}

/** Ends a task whose grace period after a soft cancel has passed. */
export function endGrace(facts: TaskFacts): Verdict {
  return ask(facts, 'cancel', () => verdict({ to: 'cancelled', cause: 'cancel_grace_passed' }, {}))
}

export function deadLetter(
  facts: TaskFacts,
  request: { reasonCode: ReasonCode; step?: Step; reason?: string },
  by: 'operator' | 'holder' = 'operator',
): Verdict {
  const { reasonCode, step, reason } = request
  const message =
    reason ??
    (by === 'operator'
      ? 'Moved to the dead-letter queue by an operator.'
      : 'Moved to the dead-letter queue by its worker.')
  return ask(facts, 'deadLetter', () => deadLettered(reasonCode, { message, ...(step && { step }) }, by, {}))
}

export type Revival = 'resume' | 'retry' | 'redrive' | 'reopen'

/** Opens the next round, with fresh budgets and time to live; `blocked` until its stage opens. */
export function revive(
  facts: TaskFacts,
  move: Revival,
  payload: Record<string, unknown>,
  to: 'queued' | 'blocked' = 'queued',
): Verdict {
  return ask(facts, move, () =>
    verdict(
      { to, cause: move, payload },
      { failures: 0, losses: 0, careful: false, runInSeconds: 0, error: null, deadLetter: null, opensRound: true },
    ),
  )
}

/** The move that brings back a task that ended in this state, or undefined if none does. */
export function revivalOf(state: TaskState): Revival | undefined {
  return (['resume', 'retry', 'redrive', 'reopen'] as const).find(move => mayMove(taskLifecycle, state, move))
}

function cancelled(error: TaskError, cause: string, patch: TaskPatch = {}): Verdict {
  return verdict({ to: 'cancelled', cause, payload: { error } }, { ...patch, error })
}

function deadLettered(reasonCode: ReasonCode, error: TaskError, cause: string, patch: TaskPatch): Verdict {
  const evidence = { reasonCode, ...(error.step && { step: error.step }) }
  return verdict(
    { to: 'dead_lettered', cause, payload: { ...evidence, error } },
    { ...patch, error, deadLetter: evidence },
  )
}

function ask(facts: TaskFacts, move: TaskMove, grant: () => Verdict): Verdict {
  if (mayMove(taskLifecycle, facts.state, move)) return grant()
  return { ok: false, state: facts.state, move, possible: movesOpenTo(taskLifecycle, facts.state, 'operator') }
}

function verdict(step: TaskStep, patch: TaskPatch): Verdict {
  return { ok: true, steps: [step], patch }
}

type Backoff = Pick<TaskSettings, 'delaySeconds' | 'factor' | 'maxSeconds' | 'jitter'>

/**
 * How long to wait after a failure that follows `failures` earlier ones: delay · factor^n, up to the maximum. Jitter
 * subtracts up to half, so that tasks that failed together do not retry together. `random` is in [0, 1).
 */
export function backoffSeconds(policy: Backoff, failures: number, random: number): number {
  const full = Math.min(policy.delaySeconds * policy.factor ** failures, policy.maxSeconds)
  return policy.jitter ? full * (1 - random / 2) : full
}
