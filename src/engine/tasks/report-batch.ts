/** Shared by all worker reports: the reporter, refusals, and batches that contain each task once. */
import { type ProblemCode, problems } from '../../kernel/problem.ts'
import type { HeldTask, Refusal } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
import { findLockedTasks } from '../../store/tasks/task-updates.ts'

/** The reporting worker, and the queues of its key; null: all queues. */
export interface Reporter {
  readonly worker: string
  readonly queues: readonly string[] | null
}

export type ReporterOf = (item: HeldTask) => Reporter

export interface Refused {
  readonly item: HeldTask
  readonly refusal: Refusal
}

/**
 * Statements identify tasks by id. A batch may contain a task twice, for example if a worker lost it and claimed it
 * again. Such a batch is run in turns that each contain a task once.
 */
export async function withUniqueTasks<Item extends HeldTask>(
  items: readonly Item[],
  run: (turn: readonly Item[]) => Promise<Refused[]>,
): Promise<Refused[]> {
  if (items.length === 0) return []
  const named = new Set(items.map(({ id }) => id))
  if (named.size === items.length) return run(items)
  const turn: Item[] = []
  const later: Item[] = []
  for (const item of items) (named.delete(item.id) ? turn : later).push(item)
  const refused = await run(turn)
  return [...refused, ...(await withUniqueTasks(later, run))]
}

/** Returns the items whose tasks another transaction has locked. */
export const findLocked =
  (sql: Sql) =>
  async <Item extends HeldTask>(items: readonly Item[]): Promise<ReadonlySet<Item>> => {
    const locked = await findLockedTasks(
      sql,
      items.map(({ id }) => id),
    )
    return new Set(items.filter(({ id }) => locked.has(id)))
  }

export function refusal({ id, epoch }: HeldTask, code: ProblemCode): Refusal {
  return { id, epoch, code, message: `${problems[code].means} ${problems[code].hint}` }
}

/** A locked row will be free later. A value that the database cannot store stays invalid. */
export function refuseItem(item: HeldTask, error: unknown): Refused {
  if (storeFault(error) === 'locked') return { item, refusal: refusal(item, 'TASK_BUSY') }
  return { item, refusal: { ...refusal(item, 'PAYLOAD_INVALID'), message: (error as Error).message } }
}
