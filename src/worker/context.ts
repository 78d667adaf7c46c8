import type { Step } from '../kernel/decide.ts'
import type { ArtifactPort } from '../protocol/files/artifacts.ts'
import type { SpawnedTask } from '../protocol/tasks/sync.ts'
import type { TaskLogger } from './task-log.ts'

/** Passed to a handler together with its payload. */
export interface TaskContext {
  readonly id: string
  readonly type: string
  /** 1 for the first attempt of a round. */
  readonly attempt: number
  readonly epoch: number
  readonly correlationId: string | null
  readonly traceparent: string | null
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
   * Creates tasks of the same job, in this stage or in a later one that is open. They are written if the handler
   * returns.
   */
  spawn(...tasks: SpawnedTask[]): void
  /**
   * Completes the task in your own transaction, so that your writes and the completion commit or roll back together.
   * Return after the commit, and throw if it failed. Works only with an engine in the same process.
   */
  complete(tx: object, output?: unknown): Promise<void>
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
