import type { Step } from '../kernel/decide.ts'
import { Problem } from '../kernel/problem.ts'
import type { CallerTransaction } from '../kernel/transactions.ts'
import { type ArtifactPort, mostWithSuccess, type ReportedArtifact } from '../protocol/files/artifacts.ts'
import type { StageJob } from '../protocol/jobs/jobs.ts'
import type { ClaimedTask, HeldTask, SettledTask, SpawnedTask } from '../protocol/tasks/sync.ts'
import { isObject } from '../schema/check.ts'
import type { JobOfTask, TaskContext } from './define-task.ts'
import { Interrupted, type InterruptReason, reportOf } from './errors.ts'
import { makeTaskLog, type TaskLog } from './task-log.ts'

/** One attempt at a task, from the claim until its report has been acknowledged. */
export interface Attempt {
  readonly task: ClaimedTask
  /** Created on first use: most handlers never read the signal. */
  abort?: AbortController
  /** Like `abort`, for `hardSignal`. */
  hardAbort?: AbortController
  interrupted?: InterruptReason
  /** Why no further work on this attempt can count. */
  hardInterrupted?: InterruptReason
  step?: Step
  /** When the lease ends by this process's clock, unless a heartbeat is acknowledged before. */
  leaseEndsAt: number
  startedAt?: number
  startReported: boolean
  settled?: SettledTask
  unsent: { progress?: unknown; checkpoint?: unknown }
  /** Created with the first line: most handlers log nothing. */
  log?: TaskLog
  /** The heartbeat in flight. If two were in flight at once, the store would skip one. */
  beating?: Promise<unknown> | undefined
  isPartial: boolean
  spawned?: SpawnedTask[]
  /** Files to report together with the success. */
  uploads?: ReportedArtifact[]
  /** The handler completed the task in a transaction of its own, which may not have committed yet. */
  completed?: { readonly output: unknown }
}

/** `claimedAt`: the earliest time, by this process's clock, at which the lease can have begun. */
export function newAttempt(task: ClaimedTask, claimedAt: number): Attempt {
  const leaseEndsAt = claimedAt + task.leaseSeconds * 1000
  return { task, leaseEndsAt, startReported: false, unsent: {}, isPartial: false }
}

export function nameOf({ task }: Attempt): HeldTask {
  return { id: task.id, epoch: task.epoch }
}

/** The fields that make log lines about the attempt searchable. */
export function traceOf({ task }: Attempt) {
  const { correlationId, traceparent } = task
  return { ...(correlationId !== null && { correlationId }), ...(traceparent !== null && { traceparent }) }
}

const mostCorrelations = 20

/** The correlation ids for a log line about many attempts, without duplicates and limited in number. */
export function correlationsOf(ones: readonly Attempt[]) {
  const ids = [...new Set(ones.flatMap(({ task }) => task.correlationId ?? []))]
  if (ids.length > 1) return { correlationIds: ids.slice(0, mostCorrelations) }
  return ids.length === 1 ? { correlationId: ids[0] } : {}
}

/** A cancel is soft during its grace period. Every other reason is hard, even after a cancel. */
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
  if (held.hardInterrupted !== undefined || held.settled !== undefined) return
  held.hardInterrupted = reason
  held.hardAbort?.abort(new Interrupted(reason))
}

function controllerFor(interrupted: InterruptReason | undefined): AbortController {
  const controller = new AbortController()
  if (interrupted !== undefined) controller.abort(new Interrupted(interrupted))
  return controller
}

/**
 * Runs the handler and never throws. Reporting is separate, so that a network failure after good work repeats the
 * report and never turns the work into a failure. A handler that does not stop at its timeout is abandoned.
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

/** The calls to the engine that a handler can make while it runs. */
export interface EngineCalls {
  saveCheckpoint(held: Attempt, value: unknown): Promise<void>
  /** Completes a task in a transaction of the handler. */
  completeIn(tx: CallerTransaction, settled: SettledTask): Promise<void>
  reportFiles(held: Attempt, files: readonly ReportedArtifact[]): Promise<void>
  filesOf: ArtifactPort['ofStage']
  jobOfStage(stageId: string): Promise<StageJob>
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

/** An output of `{ status: 'partial', metrics, errors }`, and nothing else, means the same as `ctx.partial()`. */
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

/** Either a definition with a payload and options, or any number of tasks. */
function spawnedTasks(args: readonly unknown[]): readonly SpawnedTask[] {
  const [first, payload, options] = args
  const isDefinition = isObject(first) && 'options' in first && typeof first.type === 'string'
  if (!isDefinition) return args as readonly SpawnedTask[]
  return [{ ...(options as Pick<SpawnedTask, 'stage'>), type: first.type as string, payload }]
}

function contextOf(
  held: Attempt,
  { saveCheckpoint, completeIn, reportFiles, filesOf, jobOfStage }: EngineCalls,
): TaskContext {
  const { id, type, attempt: number, epoch, correlationId, traceparent, checkpoint } = held.task
  const { jobId = null, stageId = null } = held.task as Partial<ClaimedTask>
  const report = (state: ReportedArtifact['state']) => (files: readonly Omit<ReportedArtifact, 'state'>[]) =>
    reportFiles(
      held,
      files.map(file => ({ ...file, state })),
    )
  return {
    id,
    type,
    attempt: number,
    epoch,
    correlationId,
    traceparent,
    jobId,
    stageId,
    job: async () => (stageId === null ? null : ((await jobOfStage(stageId)) as JobOfTask<never>)),
    get signal() {
      held.abort ??= controllerFor(held.interrupted)
      return held.abort.signal
    },
    get hardSignal() {
      held.hardAbort ??= controllerFor(held.hardInterrupted)
      return held.hardAbort.signal
    },
    lastCheckpoint: checkpoint ?? null,
    get log() {
      // An abandoned handler may keep logging, but those lines belong to no attempt.
      held.log ??= makeTaskLog(() => held.settled === undefined)
      return held.log.logger
    },
    step(name) {
      held.step = name
    },
    progress(value) {
      held.unsent.progress = value
    },
    checkpoint: value => saveCheckpoint(held, value),
    spawn(...spawned: readonly unknown[]) {
      held.spawned = [...(held.spawned ?? []), ...spawnedTasks(spawned)]
    },
    async complete(tx, output) {
      await completeIn(tx, succeeded(held, output))
      held.completed = { output }
    },
    artifacts: {
      ofStage: filesOf,
      register: report('registered'),
      uploaded: report('uploaded'),
      uploadedWithSuccess(files) {
        const uploads = [...(held.uploads ?? []), ...files.map(file => ({ ...file, state: 'uploaded' as const }))]
        if (uploads.length > mostWithSuccess) {
          throw new Problem('OPTION_INVALID', { option: 'files', must: `be at most ${mostWithSuccess} files` })
        }
        held.uploads = uploads
      },
    },
    partial() {
      held.isPartial = true
    },
  }
}
