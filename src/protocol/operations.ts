/** The registry of operations: the joined entries of all nouns. */

import { adminOperations } from './admin/admin-operations.ts'
import type { Call } from './call-options.ts'
import { jobOperations } from './jobs/job-operations.ts'
import { stageOperations } from './jobs/stage-operations.ts'
import type { Operation, OperationEntry } from './operation.ts'
import type { TaskDefinition } from './tasks/new-task.ts'
import type { JobHandle, TaskHandle } from './tasks/results.ts'
import { taskOperations } from './tasks/task-operations.ts'
import type { TaskOptions } from './tasks/tasks.ts'
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

/** A definition gives payload and result their types. With the name of a type, both are unknown. */
export type Enqueue<Options> = <In = unknown, Out = unknown>(
  type: string | TaskDefinition<In, Out>,
  payload: NoInfer<In>,
  options?: TaskOptions & Options,
) => Promise<TaskHandle<Out>>

/** Everything that can be asked of Pawl: the engine answers in process, the client over HTTP. */
export interface PawlApi extends OperationMethods {
  /**
   * Enqueues one task, and returns a handle that waits for its result. The payload is checked against the schema of the
   * type, if this process knows it.
   */
  enqueue: Enqueue<Call>
  /** Submits a job, and returns a handle that waits for its end. */
  submit(...args: Parameters<OperationMethods['submit']>): Promise<JobHandle>
  /** Registers a type: its schema for this process, its settings for all processes. */
  register(definition: TaskDefinition): Promise<void>
}

/** Every operation with its name. */
export const namedOperations = Object.entries(operations) as readonly [OperationName, OperationEntry][]
