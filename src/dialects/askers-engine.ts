/**
 * The engine as the asker of a request may use it, which is all of the engine that a dialect sees. Every call checks the
 * asker's roles and queues, by the rules of Pawl's own routes, so no dialect can reach further than they do.
 */

import type { ProcessMetrics } from '../engine/admin/process-metrics.ts'
import type { Pawl } from '../engine/engine.ts'
import type { JobView } from '../protocol/jobs/jobs.ts'
import type { HeldTask, SyncAnswer, SyncRequest } from '../protocol/tasks/sync.ts'
import type { TaskView } from '../protocol/tasks/tasks.ts'
import type { Call } from './dialect.ts'

/** Operations that have a route of their own: they need what it needs. */
export type RoutedOperation =
  | 'addStages'
  | 'addTasks'
  | 'approve'
  | 'attempts'
  | 'cancel'
  | 'cancelJob'
  | 'claims'
  | 'deadLetter'
  | 'deadLetters'
  | 'deleteJob'
  | 'deleteTask'
  | 'enqueueMany'
  | 'events'
  | 'job'
  | 'jobEvents'
  | 'jobTasks'
  | 'jobs'
  | 'pauseJob'
  | 'redrive'
  | 'reportArtifacts'
  | 'resume'
  | 'resumeJob'
  | 'stage'
  | 'stageTasks'
  | 'stages'
  | 'startJob'
  | 'stats'
  | 'task'
  | 'taskArtifacts'
  | 'taskEvents'
  | 'tasks'
  | 'workers'

/** Operations without a route that only read, and so need the permission `read`. */
export type ReadingOperation =
  | 'countsByState'
  | 'countTasks'
  | 'deepestQueues'
  | 'inputsFound'
  | 'reasonsOf'
  | 'taskCounts'
  | 'totals'

export interface AskersEngine
  extends Pick<Pawl, RoutedOperation | ReadingOperation | 'clock' | 'follow' | 'ready' | 'setJobPriority' | 'take'> {
  submit(spec: Parameters<Pawl['submit']>[0], call?: Parameters<Pawl['submit']>[1]): Promise<JobView>
  /** A new job of what did not succeed in this one, which stays as it is: so a producer may do it. */
  cloneJob(id: string, call: Call & { readonly name: string }): Promise<JobView>
  /** For operators, and for producers whose key is for the queues of the job. */
  replaceJobMetadata: ReplaceMetadata
  /** For operators, and for producers whose key is for the queue of the stage. */
  replaceStageMetadata: ReplaceMetadata
  /** For operators, and for workers whose key claimed the task. */
  replaceTaskMetadata: ReplaceMetadata
  /**
   * A task that the asker's key has claimed, now or before; of another's it tells nothing. Reports on it need no second
   * look at its claims.
   */
  heldTask(id: string): Promise<TaskView>
  /**
   * Ends an attempt that the asker's key has claimed. A dialect finds the epoch itself, so knowing it proves nothing.
   * Without an epoch it is the attempt that is under way.
   */
  succeed(id: string, epoch: number | null, said?: Parameters<Pawl['succeed']>[2]): Promise<TaskView>
  fail(id: string, epoch: number | null, said?: Parameters<Pawl['fail']>[2]): Promise<TaskView>
  release(id: string, epoch: number | null, said?: Parameters<Pawl['release']>[2]): Promise<TaskView>
  /** Takes a worker's reports on tasks that the asker's key has claimed. */
  report(worker: string, said: Pick<SyncRequest, 'started' | 'beats' | 'settled'>): Promise<SyncAnswer>
  /** Cancels a task in the name of the lease that the asker's key has. */
  cancelHeld(held: HeldTask, call: NonNullable<Parameters<Pawl['cancel']>[1]>): Promise<unknown>
  /** Sets a task aside in the name of the lease that the asker's key has. */
  deadLetterHeld(held: HeldTask, call: Parameters<Pawl['deadLetter']>[1]): Promise<unknown>
  /** Whether jobs can be submitted by this name. */
  hasPipeline(name: string): boolean
  /** The figures that this process counts about itself. */
  figures(): ProcessMetrics
}

type ReplaceMetadata = (id: string, metadata: Record<string, unknown>, call: Call) => Promise<unknown>
