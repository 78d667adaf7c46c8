import type { Context } from '../engine/context.ts'
import type { Sql } from '../store/driver/sql.ts'

/** Most that is passed over at once; beyond that all begin anew. */
const maxSkipped = 10_000

export interface BatchResult<Item> {
  readonly done: number
  readonly failures: readonly { readonly item: Item; readonly error: unknown }[]
  /** There may be more than was found. */
  readonly isFull: boolean
}

/**
 * Does something to each that is found, up to `limit` in one look. One that fails is counted, and keeps no other from
 * it: not in this look, nor in the next. It would be found again, and enough of them would leave no room for what comes
 * after them; so they are passed over until all others have had their turn, and then tried again. Whoever does not know
 * that they failed, as another babysitter, only tries them once more.
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
