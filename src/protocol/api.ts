import type { Call } from './call-options.ts'
import type { OperationMethods } from './operations.ts'
import type { TaskDefinition } from './tasks/task-type.ts'
import type { QueuedTask, TaskOptions } from './tasks/tasks.ts'

/** Everything that can be asked of Pawl: the engine answers in process, the client over HTTP. */
export interface PawlApi extends OperationMethods {
  /** Enqueues one task. Its payload is checked against the schema of its type, if this process knows it. */
  enqueue<In>(type: string | TaskDefinition<In>, payload: In, options?: TaskOptions & Call): Promise<QueuedTask>
  /** Registers a type: its schema for this process, its settings for all processes. */
  register(definition: TaskDefinition): Promise<void>
}
