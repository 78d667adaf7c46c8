/** The registry of operations: the joined entries of all nouns. */

import { adminOperations } from './admin/admin-operations.ts'
import type { Call } from './call-options.ts'
import { jobOperations } from './jobs/job-operations.ts'
import { stageOperations } from './jobs/stage-operations.ts'
import type { Operation, OperationEntry } from './operation.ts'
import type { TaskDefinition } from './tasks/new-task.ts'
import type { Enqueue, TaskItem, TaskRegistry } from './tasks/registry.ts'
import type { JobHandle } from './tasks/results.ts'
import { taskOperations } from './tasks/task-operations.ts'
import type { QueuedTask } from './tasks/tasks.ts'
import { workerOperations } from './tasks/worker-operations.ts'

export type Operations = typeof jobOperations &
  typeof stageOperations &
  typeof taskOperations &
  typeof workerOperations &
  typeof adminOperations

export const operations: Operations = {
  ...jobOperations,
  ...stageOperations,
  ...taskOperations,
  ...workerOperations,
  ...adminOperations,
}

export type OperationName = keyof Operations

/** The methods of the operations, with their documentation. */
export type OperationMethods = {
  [Name in keyof Operations]: Operations[Name] extends Operation<infer Method> ? Method : never
}

/** Everything that can be asked of Pawl: the engine answers in process, the client over HTTP. */
export interface PawlApi<Tasks extends TaskRegistry = TaskRegistry> extends Omit<OperationMethods, 'enqueueMany'> {
  /**
   * Enqueues one task, and returns a handle that waits for its result. The payload is checked against the schema of its
   * type.
   */
  enqueue: Enqueue<Call, Tasks>
  /** Enqueues up to 10,000 tasks, all or none. Payloads are checked against the schemas of their types. */
  enqueueMany(tasks: readonly TaskItem<Tasks>[], call?: Call): Promise<QueuedTask[]>
  /** Submits a job, and returns a handle that waits for its end. */
  submit(...args: Parameters<OperationMethods['submit']>): Promise<JobHandle>
  /** Registers a type: its schema for this process, its settings for all processes. */
  register(definition: TaskDefinition): Promise<void>
}

/** Every operation with its name. */
export const namedOperations = Object.entries(operations) as readonly [OperationName, OperationEntry][]
