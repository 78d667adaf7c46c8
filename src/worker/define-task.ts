import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { TaskDefinition } from '../protocol/tasks/task-type.ts'
import type { TaskTypeOptions } from '../protocol/tasks/tasks.ts'
import type { TaskContext } from './context.ts'

/** A type of task and its handler. */
export interface Task<In = unknown> extends TaskDefinition<In> {
  run(payload: unknown, ctx: TaskContext): Promise<unknown>
}

interface TaskSpec<Schema extends StandardSchemaV1, Out> extends TaskTypeOptions {
  readonly type: string
  /**
   * Validates payloads when they are queued and when they are claimed: zod, valibot, arktype, or any Standard Schema.
   */
  readonly payload?: Schema
  handler(payload: StandardSchemaV1.InferOutput<Schema>, ctx: TaskContext): Promise<Out> | Out
}

/**
 * Defines a type of task: its payload, its handler, and how it is leased and retried.
 *
 * The handler's result is the output of the task. If it throws, the task is retried by its policy, unless the error is
 * `RetryIn`, `GiveUp`, `DeadLetter` or `Skip`.
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
