import type { Step } from '../kernel/decide.ts'
import type { ArtifactPort, SaidArtifact } from '../protocol/files/artifacts.ts'
import type { ClaimedTask, HeldTask, SettledTask, SpawnedTask } from '../protocol/tasks/sync.ts'
import { isObject } from '../schema/check.ts'
import type { TaskContext } from './context.ts'
import { Interrupted, type InterruptReason, reportOf } from './errors.ts'
import { makeTaskLog, type TaskLog } from './task-log.ts'

/** One task in this worker's attempts, from the claim until its report has been answered. */
export interface Attempt {
  readonly task: ClaimedTask
  /** Made when somebody asks for it: most handlers are done before anyone does. */
  abort: AbortController | undefined
  /** The same, for `hardSignal`. */
  hardAbort: AbortController | undefined
  /** Nothing that is still done can count. */
  hardened: InterruptReason | undefined
  step: Step | undefined
  /** By this process's own clock: the moment at which the lease ends unless a beat is answered. */
  leaseEndsAt: number
  startedAt: number | undefined
  startReported: boolean
  settled: SettledTask | undefined
  unsent: { progress?: unknown; checkpoint?: unknown }
  /** Made with the first line: most handlers say none. */
  log: TaskLog | undefined
  /** The beat that is under way. Of two at once the store would pass one over. */
  beating: Promise<unknown> | undefined
  isPartial: boolean
  spawned: SpawnedTask[] | undefined
  /** It was ended in a transaction of its handler's, which may not have committed yet. */
  completed: { readonly output: unknown } | undefined
  interrupted: InterruptReason | undefined
}

/** `claimedAt` is the earliest moment, by this process's clock, at which the lease can have begun. */
export function newAttempt(task: ClaimedTask, claimedAt: number): Attempt {
  return {
    task,
    abort: undefined,
    hardAbort: undefined,
    hardened: undefined,
    step: undefined,
    leaseEndsAt: claimedAt + task.leaseSeconds * 1000,
    startedAt: undefined,
    startReported: false,
    settled: undefined,
    unsent: {},
    log: undefined,
    beating: undefined,
    isPartial: false,
    spawned: undefined,
    completed: undefined,
    interrupted: undefined,
  }
}

export function nameOf({ task }: Attempt): HeldTask {
  return { id: task.id, epoch: task.epoch }
}

/** By which a log line about it is found, whoever asks. */
export function traceOf({ task }: Attempt) {
  const { correlationId, traceparent } = task
  return { ...(correlationId !== null && { correlationId }), ...(traceparent !== null && { traceparent }) }
}

const mostCorrelations = 20

/** Of many that one line is about: each correlation once, and no more than a line can hold. */
export function correlationsOf(ones: readonly Attempt[]) {
  const ids = [...new Set(ones.flatMap(({ task }) => task.correlationId ?? []))]
  if (ids.length > 1) return { correlationIds: ids.slice(0, mostCorrelations) }
  return ids.length === 1 ? { correlationId: ids[0] } : {}
}

/** A cancel is soft for as long as its grace lasts; every other reason is hard, also when it follows a cancel. */
export function interrupt(held: Attempt, reason: InterruptReason, graceSeconds?: number): void {
  if (held.settled !== undefined) return
  if (held.interrupted === undefined) {
    held.interrupted = reason
    held.abort?.abort(new Interrupted(reason))
    if (reason === 'cancelled' && graceSeconds !== undefined) {
      setTimeout(() => harden(held, reason), graceSeconds * 1000).unref()
    }
  }
  if (reason !== 'cancelled') harden(held, reason)
}

function harden(held: Attempt, reason: InterruptReason): void {
  if (held.hardened !== undefined || held.settled !== undefined) return
  held.hardened = reason
  held.hardAbort?.abort(new Interrupted(reason))
}

function controllerFor(interrupted: InterruptReason | undefined): AbortController {
  const controller = new AbortController()
  if (interrupted !== undefined) controller.abort(new Interrupted(interrupted))
  return controller
}

function signalOf(held: Attempt): AbortSignal {
  held.abort ??= controllerFor(held.interrupted)
  return held.abort.signal
}

function hardSignalOf(held: Attempt): AbortSignal {
  held.hardAbort ??= controllerFor(held.hardened)
  return held.hardAbort.signal
}

/** A handler that was left behind may go on talking; what it says then belongs to no attempt. */
function logOf(held: Attempt): TaskLog {
  held.log ??= makeTaskLog(() => held.settled === undefined)
  return held.log
}

/**
 * Runs the handler and never throws. Kept apart from reporting, so that a lost network after good work is reported
 * again and never turned into a failure. A handler that does not stop when its time is up is left behind.
 */
export async function runAttempt(
  held: Attempt,
  run: (payload: unknown, ctx: TaskContext) => Promise<unknown>,
  calls: EngineCalls,
): Promise<SettledTask> {
  const began = performance.now()
  held.startedAt = began
  try {
    const working = run(held.task.payload, contextOf(held, calls))
    const output = await inTime(held, working)
    return succeeded(held, output === undefined ? held.completed?.output : output)
  } catch (error) {
    return { ...nameOf(held), ...reportOf(error, held.interrupted, held.step), ranMs: performance.now() - began }
  }
}

/** What a handler says to the engine while it runs. */
export interface EngineCalls {
  saveCheckpoint(held: Attempt, value: unknown): Promise<void>
  /** Ends a task in a transaction of its handler's. */
  completeIn(tx: object, settled: SettledTask): Promise<void>
  reportFiles(held: Attempt, files: readonly SaidArtifact[]): Promise<void>
  filesOf: ArtifactPort['ofStage']
}

function succeeded(held: Attempt, output: unknown): SettledTask {
  const { id, epoch } = held.task
  const done = { id, epoch, outcome: 'succeeded', ranMs: performance.now() - held.startedAt! } as const
  const isPartial = held.isPartial || isPartialReport(output)
  if (output === undefined && !isPartial && held.spawned === undefined) return done
  return {
    ...done,
    ...(output !== undefined && { output }),
    ...(isPartial && { partial: true }),
    ...(held.spawned !== undefined && { spawn: held.spawned }),
  }
}

const reportKeys = ['status', 'metrics', 'errors']

/** A report, `{ status, metrics, errors }` and nothing else, says it as `ctx.partial()` does. */
function isPartialReport(output: unknown): boolean {
  return isObject(output) && output.status === 'partial' && Object.keys(output).every(key => reportKeys.includes(key))
}

function inTime(held: Attempt, working: Promise<unknown>): Promise<unknown> {
  const { timeoutSeconds } = held.task
  if (timeoutSeconds === null) return working
  let late: NodeJS.Timeout | undefined
  const timeUp = new Promise<never>((_, reject) => {
    late = setTimeout(() => {
      interrupt(held, 'timeout')
      reject(new Interrupted('timeout'))
    }, timeoutSeconds * 1000)
  })
  return Promise.race([working, timeUp]).finally(() => clearTimeout(late))
}

function contextOf(held: Attempt, { saveCheckpoint, completeIn, reportFiles, filesOf }: EngineCalls): TaskContext {
  const { id, type, attempt: number, epoch, correlationId, traceparent, checkpoint } = held.task
  return {
    id,
    type,
    attempt: number,
    epoch,
    correlationId,
    traceparent,
    get signal() {
      return signalOf(held)
    },
    get hardSignal() {
      return hardSignalOf(held)
    },
    lastCheckpoint: checkpoint ?? null,
    get log() {
      return logOf(held).logger
    },
    step(name) {
      held.step = name
    },
    progress(value) {
      held.unsent.progress = value
    },
    checkpoint: value => saveCheckpoint(held, value),
    spawn(...tasks) {
      held.spawned = [...(held.spawned ?? []), ...tasks]
    },
    async complete(tx, output) {
      await completeIn(tx, succeeded(held, output))
      held.completed = { output }
    },
    artifacts: {
      ofStage: filesOf,
      register: files =>
        reportFiles(
          held,
          files.map(file => ({ ...file, state: 'registered' })),
        ),
      uploaded: files =>
        reportFiles(
          held,
          files.map(file => ({ ...file, state: 'uploaded' })),
        ),
    },
    partial() {
      held.isPartial = true
    },
  }
}
