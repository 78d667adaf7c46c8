import { checkedJson } from '../engine/check.ts'
import type { ReportedOutcome, TaskError } from '../kernel/decide.ts'
import { newId } from '../kernel/id.ts'
import type { StageJob } from '../protocol/jobs/jobs.ts'
import type { LogLine } from '../protocol/tasks/logs.ts'
import { checkPayload } from '../protocol/tasks/new-task.ts'
import type { SettledTask, SpawnedTask } from '../protocol/tasks/sync.ts'
import {
  abortSignal,
  anything,
  checkOptions,
  type Field,
  type Fields,
  number,
  type OptionsOf,
  object,
  text,
} from '../schema/check.ts'
import { interrupt, newAttempt, runAttempt } from '../worker/attempt.ts'
import type { Task } from '../worker/define-task.ts'

const fields = {
  id: text(200),
  /** The number of this attempt. Default 1. */
  attempt: number({ from: 1, to: 1_000_000, whole: true }),
  /** The checkpoint of an earlier attempt. */
  lastCheckpoint: anything,
  correlationId: text(200),
  traceparent: text(200),
  /** The result of `ctx.job()`: any of its fields. Default: the task belongs to no job. */
  job: object as Field<Partial<StageJob>>,
  /** Abort it to cancel the task: `ctx.signal` aborts, and an error thrown after that is reported as cancelled. */
  signal: abortSignal,
} satisfies Fields

/** Options of `runTask`. */
export interface RunTaskOptions extends OptionsOf<typeof fields> {}

/** The report that a worker would send, and everything that the handler recorded. */
export interface TaskRun {
  readonly outcome: ReportedOutcome
  readonly output: unknown
  readonly error: TaskError | null
  readonly reason: string | null
  readonly partial: boolean
  /** The last progress that it reported; null if none. */
  readonly progress: unknown
  /** The last checkpoint, of this attempt or of an earlier one. */
  readonly checkpoint: unknown
  readonly spawned: readonly SpawnedTask[]
  /** Its log lines, in order. */
  readonly logs: readonly Pick<LogLine, 'level' | 'message' | 'facts'>[]
  /** Whether it completed the task in a transaction of its own, with `ctx.complete`. */
  readonly completed: boolean
}

/**
 * Runs one handler in a test, without a store or a worker. The payload is validated and passed through JSON, as a
 * worker would do, and the result or the error becomes the report that a worker would send.
 *
 * @example
 * const run = await runTask(sendMail, { to: 'ann@example.com' })
 * assert.equal(run.outcome, 'succeeded')
 */
export async function runTask<In>(task: Task<In>, payload: In, options: RunTaskOptions = {}): Promise<TaskRun> {
  checkOptions(options, fields, 'runTask')
  const kept = asStored(payload, 'payload')
  const job = options.job && jobFrom(options.job)
  const held = newAttempt(
    {
      id: options.id ?? newId(),
      epoch: 1,
      type: task.type,
      payload: kept,
      attempt: options.attempt ?? 1,
      checkpoint: options.lastCheckpoint ?? null,
      careful: false,
      leaseUntil: new Date(8.64e15).toISOString(),
      leaseSeconds: Number.POSITIVE_INFINITY,
      heartbeatSeconds: null,
      timeoutSeconds: task.options.timeoutSeconds ?? null,
      correlationId: options.correlationId ?? null,
      traceparent: options.traceparent ?? null,
      jobId: job?.id ?? null,
      stageId: job === undefined ? null : newId(),
    },
    performance.now(),
  )
  const cancel = () => interrupt(held, 'cancelled')
  if (options.signal?.aborted) cancel()
  options.signal?.addEventListener('abort', cancel, { once: true })
  const settled = await runAttempt(
    held,
    async (value, ctx) => task.run(await checkPayload(task, value, 'payload'), ctx),
    {
      async saveCheckpoint(_, value) {
        held.unsent.checkpoint = asStored(value, 'checkpoint')
      },
      completeIn: async () => {},
      reportFiles: async () => {},
      async *filesOf() {},
      jobOfStage: async () => job!,
    },
  )
  options.signal?.removeEventListener('abort', cancel)
  return toRun(asReported(settled), held)
}

function jobFrom({ id = newId(), name = 'job', input = null, ...others }: Partial<StageJob>): StageJob {
  return { id, name, input, round: 1, metadata: {}, correlationId: null, stage: 'stage', ...others }
}

/** A value as the store would return it. */
function asStored(value: unknown, at: string): unknown {
  return JSON.parse(checkedJson(value, Number.POSITIVE_INFINITY, at))
}

/** An output that the engine cannot store makes the attempt fail. */
function asReported(settled: SettledTask): SettledTask {
  try {
    return settled.output === undefined ? settled : { ...settled, output: asStored(settled.output, 'output') }
  } catch (error) {
    const { id, epoch } = settled
    return { id, epoch, outcome: 'failed', error: { message: (error as Error).message, step: 'output' } }
  }
}

function toRun(settled: SettledTask, held: ReturnType<typeof newAttempt>): TaskRun {
  const { outcome, output = null, error = null, reason = null, partial = false, spawn = [] } = settled
  return {
    outcome,
    output,
    error,
    reason,
    partial,
    progress: held.unsent.progress ?? null,
    checkpoint: held.unsent.checkpoint ?? held.task.checkpoint,
    spawned: spawn,
    logs: (held.log?.last(performance.now()) ?? []).map(({ n: _n, agoMs: _ago, ...line }) => line),
    completed: held.completed !== undefined,
  }
}
