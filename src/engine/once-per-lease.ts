/**
 * A statement takes a task once, so a sync that names one a thousand times would take a thousand statements. So
 * reports about the same lease are merged, and a sync names few leases of one task: a worker that lost a task and claimed
 * it again names two.
 */
import { Problem } from '../kernel/problem.ts'
import { type HeldTask, leaseOf } from '../protocol/sync.ts'

const mostLeases = 10

/** Makes one report of all that have the same key; `merge` says how. They stay in the order of the first ones. */
export function oncePer<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  merge: (first: Item, later: Item) => Item = first => first,
): Item[] {
  const kept = new Map<string, Item>()
  for (const item of items) {
    const key = keyOf(item)
    const first = kept.get(key)
    kept.set(key, first === undefined ? item : merge(first, item))
  }
  return [...kept.values()]
}

/** Refuses a task's lease beyond those that one sync may name. Make one for each kind of report. */
export function countingLeases(): (item: HeldTask) => void {
  const leases = new Map<string, Set<string>>()
  return item => {
    const mine = leases.get(item.id) ?? new Set()
    leases.set(item.id, mine.add(leaseOf(item)))
    if (mine.size <= mostLeases) return
    const must = `name a task under at most ${mostLeases} epochs in one sync`
    throw new Problem('OPTION_INVALID', { at: 'sync', option: 'epoch', must })
  }
}
