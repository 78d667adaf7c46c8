export type { JobOfTask, TaskContext } from './define-task.ts'
export { defineTask, type Task } from './define-task.ts'
export {
  DeadLetter,
  Failed,
  GiveUp,
  Interrupted,
  type InterruptReason,
  RetryIn,
  type RetryInOptions,
  Skip,
} from './errors.ts'
export type { WorkerOptions } from './options.ts'
export type { TaskLogger } from './task-log.ts'
export { startWorker, type Worker } from './worker.ts'
