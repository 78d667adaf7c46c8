import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Step } from '../kernel/decide.ts'
import type { CallerTransaction } from '../kernel/transactions.ts'
import type { ArtifactPort } from '../protocol/files/artifacts.ts'
import type { StageJob } from '../protocol/jobs/jobs.ts'
import type { TaskDefinition } from '../protocol/tasks/new-task.ts'
import type { Stored } from '../protocol/tasks/results.ts'
import type { SpawnedTask } from '../protocol/tasks/sync.ts'
import type { TaskTypeOptions } from '../protocol/tasks/tasks.ts'
import type { TaskLogger } from './task-log.ts'

/** A type of task and its handler. */
export interface Task<In = unknown, Out = unknown> extends TaskDefinition<In, Out> {
  run(payload: unknown, ctx: TaskContext): Promise<unknown>
}

interface CheckedTaskSpec<Schema extends StandardSchemaV1, Out> extends TaskTypeOptions {
  readonly type: string
  /**
   * Validates payloads when they are queued and when they are claimed: zod, valibot, arktype, or any Standard Schema.
   */
  readonly payload: Schema
  handler(payload: StandardSchemaV1.InferOutput<Schema>, ctx: TaskContext): Out
}

interface TaskSpec<In, Out> extends TaskTypeOptions {
  readonly type: string
  readonly payload?: undefined
  handler(payload: In, ctx: TaskContext): Out
}

/**
 * Defines a type of task: its payload, its handler, and how it is leased and retried.
 *
 * The handler's result is the output of the task, and the type of what `result()` returns. Without a schema, the payload
 * has the type that the handler gives it, and is not checked at run time. If the handler throws, the task is retried by
 * its policy, unless the error is `RetryIn`, `GiveUp`, `DeadLetter` or `Skip`.
 *
 * @example
 * const resize = defineTask({
 *   type: 'resize',
 *   payload: z.object({ url: z.string() }),
 *   retry: { attempts: 5 },
 *   handler: async ({ url }, ctx) => resizeImage(url, ctx.signal),
 * })
 */
export function defineTask<Schema extends StandardSchemaV1, Out>(
  spec: CheckedTaskSpec<Schema, Out>,
): Task<StandardSchemaV1.InferInput<Schema>, Stored<Awaited<Out>>>
export function defineTask<In, Out>(spec: TaskSpec<In, Out>): Task<In, Stored<Awaited<Out>>>
export function defineTask<In, Out>(
  spec: TaskSpec<In, Out> | CheckedTaskSpec<StandardSchemaV1<In>, Out>,
): Task<In, Stored<Awaited<Out>>> {
  const { type, payload, handler, ...options } = spec
  return {
    type,
    schema: payload,
    options,
    async run(value, ctx) {
      return handler(value as In, ctx)
    },
  }
}

/** The job of a task, as its handler sees it. */
export interface JobOfTask<Input = unknown> extends Omit<StageJob, 'input'> {
  /** The input that the job was submitted with. Pawl does not check that it has this type. */
  readonly input: Input
}

/** Passed to a handler together with its payload. */
export interface TaskContext {
  readonly id: string
  readonly type: string
  /** 1 for the first attempt of a round. */
  readonly attempt: number
  readonly epoch: number
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** The job of the task; null: it belongs to none. */
  readonly jobId: string | null
  /** The stage of the task; null: it belongs to none. */
  readonly stageId: string | null
  /**
   * Reads the job of the task: its name, its input, and the name of the stage. Null: the task belongs to no job. It is read
   * only if a handler asks for it, and at most every two seconds per stage. Each call returns an object of its own.
   *
   * @example
   * const job = await ctx.job<{ month: string }>()
   * if (job?.input.month === '2026-02') …
   */
  job<Input = unknown>(): Promise<JobOfTask<Input> | null>
  /** Aborts when the handler should stop. `signal.reason` is an `Interrupted` that says why. */
  readonly signal: AbortSignal
  /**
   * Aborts when further work cannot count: the lease is lost, the timeout has passed, the worker shuts down, or the
   * grace period of a cancel is over. It aborts together with `signal`, or later after a soft cancel, but never before
   * it.
   */
  readonly hardSignal: AbortSignal
  /** The last checkpoint of an earlier attempt, or null. */
  readonly lastCheckpoint: unknown
  /**
   * Adds a line to the log of the task: `ctx.log('fetched', { rows: 12 })`, `ctx.log.warn(…)`. It never throws and
   * never waits. Lines beyond the limits of an attempt are dropped and counted.
   */
  readonly log: TaskLogger
  /** Marks the start of a step. An error that ends the attempt records the step. */
  step(name: Step): void
  /** Reports progress. It is sent with the next heartbeat; only the latest value counts. */
  progress(value: unknown): void
  /** Stores a value for the next attempt. Resolves when it is stored, and rejects if the lease is lost. */
  checkpoint(value: unknown): Promise<void>
  /**
   * Creates a task of the same job, in this stage or in a later one that is open. It is written if the handler returns.
   *
   * @example
   * ctx.spawn(resize, { file: 'b.png' }, { stage: 'resize' })
   */
  spawn<In>(task: TaskDefinition<In>, payload: NoInfer<In>, options?: Pick<SpawnedTask, 'stage'>): void
  /** Creates several tasks of the same job, by the names of their types. */
  spawn(...tasks: SpawnedTask[]): void
  /**
   * Completes the task in your own transaction, so that your writes and the completion commit or roll back together.
   * Return after the commit, and throw if it failed. Pass the transaction of your library, as for `enqueue`. Works only
   * with an engine in the same process.
   */
  complete(tx: CallerTransaction, output?: unknown): Promise<void>
  /**
   * Registers the output files of the attempt. A file must be registered before it is uploaded, and counts if the
   * attempt wins.
   */
  readonly artifacts: ArtifactPort
  /**
   * Marks the result as partial; counts if the handler then returns. Returning `{ status: 'partial', metrics, errors
   * }`, and nothing else, has the same effect.
   */
  partial(): void
}
