import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { TaskDefinition } from '../protocol/tasks/task-type.ts'
import type { TaskTypeOptions } from '../protocol/tasks/tasks.ts'
import type { TaskContext } from './context.ts'

/** A type of task and the code that does it. */
export interface Task<In = unknown> extends TaskDefinition<In> {
  run(payload: unknown, ctx: TaskContext): Promise<unknown>
}

interface TaskSpec<Schema extends StandardSchemaV1, Out> extends TaskTypeOptions {
  readonly type: string
  /** Checks what is queued and what is claimed: zod, valibot, arktype, or any other Standard Schema. */
  readonly payload?: Schema
  handler(payload: StandardSchemaV1.InferOutput<Schema>, ctx: TaskContext): Promise<Out> | Out
}

/**
 * Defines a type of task: its payload, its handler, and how it is leased and retried.
 *
 * The handler's result is the task's output. What it throws is retried by policy, unless it is `RetryIn`, `GiveUp`,
 * `DeadLetter` or `Skip`.
 */
export function defineTask<Schema extends StandardSchemaV1, Out>(
  spec: TaskSpec<Schema, Out>,
): Task<StandardSchemaV1.InferInput<Schema>> {
  const { type, payload, handler, ...options } = spec
  return {
    type,
    schema: payload as StandardSchemaV1<StandardSchemaV1.InferInput<Schema>, unknown> | undefined,
    options,
    async run(value, ctx) {
      return handler(value as StandardSchemaV1.InferOutput<Schema>, ctx)
    },
  }
}
