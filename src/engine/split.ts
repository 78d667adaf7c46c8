import { storeFault } from '../store/store-fault.ts'

/**
 * Runs a batch; if it fails for something that an item holds, halves it until the bad item stands alone. One bad row
 * never takes its neighbours down. What says nothing about the items (the store is away) fails the whole.
 */
export async function splitting<Item, Result>(
  items: readonly Item[],
  run: (items: readonly Item[]) => Promise<Result[]>,
  refuse: (item: Item, error: unknown) => Result,
): Promise<Result[]> {
  if (items.length === 0) return []
  try {
    return await again(() => run(items))
  } catch (error) {
    if (!isAboutItems(error)) throw error
    if (items.length === 1) return [refuse(items[0]!, error)]
    const half = items.length >> 1
    const first = await splitting(items.slice(0, half), run, refuse)
    return [...first, ...(await splitting(items.slice(half), run, refuse))]
  }
}

/**
 * A deadlock or a serialization failure chose this transaction as its victim, or another took its dedupe key between
 * the look and the write: nothing of it happened, and the next look sees more. `tell` hears of each repetition.
 */
export async function again<T>(run: () => Promise<T>, tell?: () => void): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await run()
    } catch (error) {
      if (tries === 5 || !isWorthRepeating(error)) throw error
      tell?.()
    }
  }
}

export function isWorthRepeating(error: unknown): boolean {
  return storeFault(error) === 'conflict' || (error as { constraint?: unknown }).constraint === 'task_dedupe'
}

/** Whether a batch failed for something that one of its items holds: a value, or a row that somebody has locked. */
function isAboutItems(error: unknown): boolean {
  const fault = storeFault(error)
  return fault === 'data' || fault === 'locked'
}
