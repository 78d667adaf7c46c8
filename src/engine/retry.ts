/** Retries of transactions, and batches of which a bad or locked item must not stop the others. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type ProblemCode, problems } from '../kernel/problem.ts'
import type { FailedAttempt, HeldTask, Refusal } from '../protocol/tasks/sync.ts'
import type { Bounds, Sql } from '../store/driver/sql.ts'
import { storeFault } from '../store/driver/store-fault.ts'
import { findLockedTasks } from '../store/tasks/task-updates.ts'
import type { Context } from './context.ts'

/**
 * Runs a batch. If one of its items makes it fail, halves the batch until the bad item stands alone, so one bad row
 * never fails its neighbours. An error that is not caused by an item, such as an unavailable store, fails the whole
 * batch. `findLocked` returns the items whose rows another transaction has locked. They are refused at once instead of
 * waiting again for each half.
 */
export async function splitOnFailure<Item, Result>(
  items: readonly Item[],
  run: (items: readonly Item[]) => Promise<Result[]>,
  refuse: (item: Item, error: unknown) => Result,
  findLocked: (items: readonly Item[]) => Promise<ReadonlySet<Item>> = async () => new Set(),
): Promise<Result[]> {
  if (items.length === 0) return []
  try {
    return await retryConflicts(() => run(items))
  } catch (error) {
    if (!isItemFault(error)) throw error
    if (items.length === 1) return [refuse(items[0]!, error)]
    const split = (some: readonly Item[]) => splitOnFailure(some, run, refuse, findLocked)
    const held = storeFault(error) === 'locked' ? await findLocked(items) : new Set<Item>()
    if (held.size > 0) {
      const rest = await split(items.filter(item => !held.has(item)))
      return [...rest, ...[...held].map(item => refuse(item, error))]
    }
    const half = items.length >> 1
    return [...(await split(items.slice(0, half))), ...(await split(items.slice(half)))]
  }
}

/**
 * Retries after a deadlock, a serialization failure, or a dedupe key that another transaction took between the check
 * and the write. The transaction was rolled back, and the next attempt sees more. `onRetry` is called before each
 * retry.
 */
export async function retryConflicts<T>(run: () => Promise<T>, onRetry?: () => void): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (error) {
      if (tries === 5 || !isConflict(error)) throw error
      onRetry?.()
    }
  }
}

export function isConflict(error: unknown): boolean {
  return storeFault(error) === 'conflict' || (error as { constraint?: unknown }).constraint === 'task_dedupe'
}

/** True if one of the items made the batch fail: by an invalid value, or by a row that is locked. */
function isItemFault(error: unknown): boolean {
  const fault = storeFault(error)
  return fault === 'data' || fault === 'locked'
}

/** Jobs are locked for milliseconds, except by a caller's own transaction. */
export const shortLockWait: Bounds = { lockSeconds: 0.2 }

/**
 * Retries while another transaction holds a needed row, up to the context's lock timeout. No connection is held between
 * attempts, so a request that waits for one job does not delay requests for others.
 */
export async function retryWhileLocked<T>({ lockSeconds }: Context, run: (bounds: Bounds) => Promise<T>): Promise<T> {
  const until = performance.now() + lockSeconds * 1000
  for (let tries = 1; ; tries++) {
    try {
      return await retryConflicts(() => run(tries === 1 ? shortLockWait : { lockSeconds: 0.05 }))
    } catch (error) {
      if (storeFault(error) !== 'locked' || performance.now() >= until) throw error
      await sleep(Math.min(500, 20 * 2 ** tries) * (0.5 + Math.random() / 2))
    }
  }
}

/** The reporting worker; null: whichever holds the lease. And the queues of its key; null: all queues. */
export interface Reporter {
  readonly worker: string | null
  readonly queues: readonly string[] | null
  /** Refuses the end of an attempt that has already ended, also if it ended so. */
  readonly onlyFirst?: boolean
  /** Called after the commit, with what became of a task whose attempt failed. */
  readonly onFailed?: (failed: FailedAttempt) => void
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

export function refusal({ id, epoch }: HeldTask, code: ProblemCode, message?: string): Refusal {
  return { id, epoch, code, message: message ?? `${problems[code].means} ${problems[code].hint}` }
}

/** A locked row will be free later. A value that the database cannot store stays invalid. */
export function refuseItem(item: HeldTask, error: unknown): Refused {
  if (storeFault(error) === 'locked') return { item, refusal: refusal(item, 'TASK_BUSY') }
  return { item, refusal: refusal(item, 'PAYLOAD_INVALID', (error as Error).message) }
}
