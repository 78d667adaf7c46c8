import type { Context } from '../engine/context.ts'
import { logCorrelated } from '../engine/log-correlated.ts'

export interface Unruly {
  readonly id: string
  readonly error: unknown
}

/** Tells of what could not be written, with the correlation by which people find it. */
export async function tellUnruly(
  context: Pick<Context, 'sql' | 'log'>,
  entity: 'task' | 'job',
  unruly: readonly Unruly[],
): Promise<void> {
  for (const { id, error } of unruly) {
    await logCorrelated(context, `${entity}.unruly`, { entity, id }, { id, error: String(error) })
  }
}
