/** Shared by all reports of workers: the reporter, refusals, and batches that name each task once. */
import { type ProblemCode, problems } from '../../kernel/problem.ts'
import type { HeldTask, Refusal } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
import { lockedTasks } from '../../store/tasks/rulings.ts'

/** Who says something, and the queues that its key is for; null: all of them. */
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
 * Statements tell tasks apart by their id. A batch that names one twice, as a worker does that lost a task and has
 * claimed it again, is taken in turns that each name it once.
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

/** The items whose tasks another transaction holds. */
export const findLocked =
  (sql: Sql) =>
  async <Item extends HeldTask>(items: readonly Item[]): Promise<ReadonlySet<Item>> => {
    const locked = await lockedTasks(
      sql,
      items.map(({ id }) => id),
    )
    return new Set(items.filter(({ id }) => locked.has(id)))
  }

export function refusal({ id, epoch }: HeldTask, code: ProblemCode): Refusal {
  return { id, epoch, code, message: `${problems[code].means} ${problems[code].hint}` }
}

/** A row that somebody holds is free later; a value that the database cannot take stays as it is. */
export function refuseItem(item: HeldTask, error: unknown): Refused {
  if (storeFault(error) === 'locked') return { item, refusal: refusal(item, 'TASK_BUSY') }
  return { item, refusal: { ...refusal(item, 'PAYLOAD_INVALID'), message: (error as Error).message } }
}
