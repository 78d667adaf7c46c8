import type { Step } from '../kernel/decide.ts'
import type { ArtifactPort } from '../protocol/files/artifacts.ts'
import type { SpawnedTask } from '../protocol/tasks/sync.ts'
import type { TaskLogger } from './task-log.ts'

/** What a handler is given beside its payload. */
export interface TaskContext {
  readonly id: string
  readonly type: string
  /** 1 for the first try of a round. */
  readonly attempt: number
  readonly epoch: number
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** Aborts when the work is to stop; `signal.reason` is an `Interrupted` that says why. */
  readonly signal: AbortSignal
  /**
   * Aborts when nothing that is still done can count: the lease is lost, the time is up, the worker ends, or the grace
   * of a cancel is over. Never before `signal`; with it, except after a cancel.
   */
  readonly hardSignal: AbortSignal
  /** The last checkpoint of an earlier attempt, or null. */
  readonly lastCheckpoint: unknown
  /**
   * Keeps a line with the task, for people: `ctx.log('fetched', { rows: 12 })`, `ctx.log.warn(…)`. It never throws and
   * never waits; an attempt that says too much has the rest dropped and counted.
   */
  readonly log: TaskLogger
  /** Says which part of the work begins; an error that ends the attempt carries it. */
  step(name: Step): void
  /** Tells how far it is; sent with the next heartbeat, the latest wins. */
  progress(value: unknown): void
  /** Keeps a value for the next attempt; resolves when the store has it, rejects if the lease is lost. */
  checkpoint(value: unknown): Promise<void>
  /** Makes more tasks of the same job, in its own stage or in a later one that is open; written if the handler returns. */
  spawn(...tasks: SpawnedTask[]): void
  /**
   * Ends the task well in your own transaction: what that writes and the end of the task are there together, or not.
   * Return once it has committed, and throw if it has not. Only where the engine is in this process.
   */
  complete(tx: object, output?: unknown): Promise<void>
  /** The files that it puts out: each is registered before its first byte is sent, and counts if the attempt wins. */
  readonly artifacts: ArtifactPort
  /**
   * Says that only some of the work could be done; counts if the handler then returns. Returning a report says it too:
   * `{ status: 'partial', metrics, errors }`, and nothing else in it.
   */
  partial(): void
}
