import { tracesOf } from '../store/tasks/read-tasks.ts'
import type { Context } from './context.ts'

/** Logs an event of a task or job, with its correlation id and traceparent. Never throws. */
export async function logCorrelated(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  event: string,
  of: { readonly entity: 'task' | 'job'; readonly id: string },
  facts: Record<string, unknown>,
): Promise<void> {
  const [trace] = await tracesOf(sql, of.entity, [of.id]).catch(() => [])
  const { correlationId, traceparent } = trace ?? {}
  log(event, { ...facts, ...(correlationId && { correlationId }), ...(traceparent && { traceparent }) })
}
