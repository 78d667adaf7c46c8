/**
 * The engine as a dialect sees it. Every call checks the roles and queues of the key by the rules of Pawl's own
 * routes, so no dialect can do more than they allow.
 */

import type { ProcessMetrics } from '../engine/admin/process-metrics.ts'
import type { Engine } from '../engine/engine.ts'
import type { Internals } from '../engine/internals.ts'
import type { EngineMethods } from '../engine/operations.ts'
import type { JobView } from '../protocol/jobs/jobs.ts'
import type { OperationName } from '../protocol/operations.ts'
import type { HeldTask, SyncAnswer, SyncRequest } from '../protocol/tasks/sync.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import type { Call } from './dialect.ts'

/**
 * Left out: dialects find the epoch of a lease themselves, so knowing it proves nothing. They report as below
 * instead.
 */
export const operationsByEpoch = [
  'sync',
  'start',
  'heartbeat',
  'succeed',
  'fail',
  'skip',
  'release',
  'cancelled',
] as const satisfies readonly OperationName[]

/** Internal use cases that only read, and so need the permission `read`. */
export const readingInternals = [
  'countsByState',
  'countTasks',
  'deepestQueues',
  'inputsFound',
  'reasonsOf',
  'taskCounts',
  'totals',
] as const satisfies readonly (keyof Internals)[]

export interface AskersEngine
  extends Pick<EngineMethods, Exclude<OperationName, (typeof operationsByEpoch)[number]>>,
    Pick<Internals, (typeof readingInternals)[number] | 'clock' | 'setJobPriority' | 'take'>,
    Pick<Engine, 'follow' | 'ready'> {
  /** Creates a job from what did not succeed in this one, which stays unchanged: so a producer may do it. */
  cloneJob(id: string, call: Call & { readonly name: string }): Promise<JobView>
  /** For operators, and for producers whose key includes the queues of the job. */
  replaceJobMetadata: ReplaceMetadata
  /** For operators, and for producers whose key includes the queue of the stage. */
  replaceStageMetadata: ReplaceMetadata
  /** For operators, and for workers whose key claimed the task. */
  replaceTaskMetadata: ReplaceMetadata
  /**
   * A task that this key has claimed, now or before. Any other task is refused. Later reports do not read its claims
   * again.
   */
  heldTask(id: string): Promise<TaskView>
  /** Ends an attempt that this key has claimed. Without an epoch, it is the attempt that is running. */
  succeed: Settle<'succeed'>
  fail: Settle<'fail'>
  release: Settle<'release'>
  /** Takes a worker's reports on tasks that this key has claimed. */
  report(worker: string, reports: Pick<SyncRequest, 'started' | 'beats' | 'settled'>): Promise<SyncAnswer>
  /** Cancels a task in the name of the lease that this key has. */
  cancelHeld(held: HeldTask, call: NonNullable<Parameters<EngineMethods['cancel']>[1]>): Promise<unknown>
  /** Moves a task to the dead-letter queue in the name of the lease that this key has. */
  deadLetterHeld(held: HeldTask, call: Parameters<EngineMethods['deadLetter']>[1]): Promise<unknown>
  /** Whether jobs can be submitted by this name. */
  hasPipeline(name: string): boolean
  /** The figures that this process counts about itself. */
  figures(): ProcessMetrics
}

type Settle<Name extends 'succeed' | 'fail' | 'release'> = (
  id: string,
  epoch: number | null,
  report?: Parameters<EngineMethods[Name]>[2],
) => Promise<TaskView>

type ReplaceMetadata = (id: string, metadata: Record<string, unknown>, call: Call) => Promise<unknown>
