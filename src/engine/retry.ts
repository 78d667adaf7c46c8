import { setTimeout as sleep } from 'node:timers/promises'
import type { Bounds } from '../store/driver/sql.ts'
import { storeFault } from '../store/driver/store-fault.ts'
import type { Context } from './context.ts'

/**
 * Runs a batch; if it fails for something that an item holds, halves it until the bad item stands alone. One bad row
 * never takes its neighbours down. What says nothing about the items (the store is away) fails the whole. `heldAmong`
 * finds the items whose rows somebody else has locked: these are refused at once, instead of waiting for each half.
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
 * A deadlock or a serialization failure chose this transaction as its victim, or another took its dedupe key between
 * the look and the write: nothing of it happened, and the next look sees more. `tell` hears of each repetition.
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

/** Whether a batch failed for something that one of its items holds: a value, or a row that somebody has locked. */
function isItemFault(error: unknown): boolean {
  const fault = storeFault(error)
  return fault === 'data' || fault === 'locked'
}

/** Jobs are held for milliseconds, unless by a caller's own transaction. */
export const shortLockWait: Bounds = { lockSeconds: 0.2 }

/**
 * Repeats what fails because another transaction holds a row, until the usual time for that is over. Between two tries
 * it has no connection, so that whoever waits for one job holds up nobody who does not.
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
