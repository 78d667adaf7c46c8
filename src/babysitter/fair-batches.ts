import type { Context } from '../engine/context.ts'
import type { Sql } from '../store/driver/sql.ts'

/** Maximum number of failed items to skip. Beyond that, all are tried again. */
const maxSkipped = 10_000

export interface BatchResult<Item> {
  readonly done: number
  readonly failures: readonly { readonly item: Item; readonly error: unknown }[]
  /** There may be more items than were found. */
  readonly isFull: boolean
}

/**
 * Applies `work` to each item found, up to `limit` per run. An item that fails is counted and does not hold up others,
 * neither in this run nor in the next: failed items would be found again, and enough of them would leave no room for
 * the items behind them. So they are skipped until all others have had their turn, and then tried again. The list of
 * failures is kept in memory only; another babysitter just tries them once more.
 */
export function fairBatches(limit: number) {
  const failedIn = new WeakMap<Sql, readonly string[]>()
  return async <Item extends string | { readonly id: string }>(
    { sql }: Context,
    find: (limit: number, except: readonly string[]) => Promise<Item[]>,
    work: (item: Item) => Promise<unknown>,
  ): Promise<BatchResult<Item>> => {
    const except = failedIn.get(sql) ?? []
    const items = await find(limit, except)
    const failures: { item: Item; error: unknown }[] = []
    for (const item of items) await work(item).catch(error => failures.push({ item, error }))
    const isFull = items.length === limit
    const failed = [...except, ...failures.map(({ item }) => (typeof item === 'string' ? item : item.id))]
    failedIn.set(sql, isFull && failed.length < maxSkipped ? failed : [])
    return { done: items.length - failures.length, failures, isFull }
  }
}
