import type { Context } from '../engine/context.ts'
import { logCorrelated } from '../engine/log-correlated.ts'

export interface WriteFailure {
  readonly id: string
  readonly error: unknown
}

/** Logs items that could not be written, with their correlation ids. */
export async function logFailures(
  context: Pick<Context, 'sql' | 'log'>,
  entity: 'task' | 'job',
  failures: readonly WriteFailure[],
): Promise<void> {
  for (const { id, error } of failures) {
    await logCorrelated(context, `${entity}.unruly`, { entity, id }, { id, error: String(error) })
  }
}
