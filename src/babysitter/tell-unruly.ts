import type { Context } from '../engine/context.ts'
import { tracesOf } from '../store/read.ts'

export interface Unruly {
  readonly id: string
  readonly error: unknown
}

/** Tells of what could not be written, with the correlation by which people find it. */
export async function tellUnruly(
  { sql, log }: Pick<Context, 'sql' | 'log'>,
  entity: 'task' | 'job',
  unruly: readonly Unruly[],
): Promise<void> {
  if (unruly.length === 0) return
  const ids = unruly.map(({ id }) => id)
  const traces = new Map((await tracesOf(sql, entity, ids).catch(() => [])).map(trace => [trace.id, trace]))
  for (const { id, error } of unruly) {
    const { correlationId, traceparent } = traces.get(id) ?? {}
    log(`${entity}.unruly`, {
      id,
      ...(correlationId && { correlationId }),
      ...(traceparent && { traceparent }),
      error: String(error),
    })
  }
}
