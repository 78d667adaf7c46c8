/** The slots of each queue: live workers offer them, live leases use them. */

import { maxLabels, otherLabel } from '../../kernel/metric-labels.ts'
import type { WorkerView } from '../../protocol/admin/operate.ts'
import { list, text, view } from '../../protocol/shapes.ts'
import { type Answer, closedObject, type DialectRequest } from '../dialect.ts'
import { good } from './envelope.ts'
import { mostWorkers } from './service-routes.ts'

export async function capacity({ engine }: DialectRequest): Promise<Answer> {
  const { items: views } = await engine.workers({ limit: mostWorkers })
  const served = [...new Set(views.flatMap(({ queues }) => queues))].sort().filter(name => name !== otherLabel)
  const deepest = await engine.deepestQueues({ named: [], most: maxLabels, others: otherLabel })
  const busy = deepest.queues.filter(({ due, scheduled, held, paused }) => due + scheduled + held + paused > 0)
  const inOrder = [...busy.map(({ queue }) => queue), ...served, ...deepest.queues.map(({ queue }) => queue)]
  const named = new Set([...new Set(inOrder)].slice(0, maxLabels))
  const labelOf = (queue: string) => (named.has(queue) ? queue : otherLabel)

  const used = summed(deepest.queues.map(({ queue, held }) => [labelOf(queue), held]))
  if (deepest.rest.count > 0) used.set(otherLabel, (used.get(otherLabel) ?? 0) + deepest.rest.held)
  const workers = views.map(view => ({
    ...view,
    serves: new Set(view.queues.map(labelOf)),
    holds: summed(Object.entries(view.leasesByQueue).map(([queue, held]) => [labelOf(queue), held])),
  }))
  const labels = new Set([...used.keys(), ...workers.flatMap(({ serves }) => [...serves])])
  const slots = [...labels].sort().map(name => slotOf(name, used.get(name) ?? 0, workers))
  const totals = {
    capacity: sum(workers, offered),
    used: sum([...used.values()], held => held),
    available: sum(workers, free),
  }
  return good({ slots, totals })
}

interface Worker extends WorkerView {
  /** The labels of its queues. Queues without a label of their own count as one. */
  readonly serves: ReadonlySet<string>
  readonly holds: ReadonlyMap<string, number>
}

function summed(counts: readonly (readonly [label: string, count: number])[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [label, count] of counts) sums.set(label, (sums.get(label) ?? 0) + count)
  return sums
}

/** A worker that does not report its slots offers as many as it holds. */
const offered = ({ slots, leases }: WorkerView) => slots ?? leases
const free = (worker: WorkerView) => Math.max(0, offered(worker) - worker.leases)

function slotOf(name: string, used: number, workers: readonly Worker[]) {
  const holding = workers.filter(({ holds }) => (holds.get(name) ?? 0) > 0)
  const serving = workers.filter(({ serves }) => serves.has(name))
  const silent = holding.filter(({ serves }) => !serves.has(name))
  const all = sum(serving, offered) + sum(silent, ({ holds }) => holds.get(name)!)
  const others = new Set(serving.flatMap(({ serves }) => [...serves].filter(queue => queue !== name)))
  const notes = [
    ...(others.size > 0 ? [`shared with ${[...others].sort().join(', ')}`] : []),
    ...(used > all ? [`${used - all} claimed ahead of need`] : []),
  ]
  return {
    name,
    capacity: all,
    target: all,
    used,
    available: Math.max(0, Math.min(all - used, sum(serving, free))),
    holders: [...new Set(holding.map(({ worker }) => worker))].sort(),
    notes: notes.join('; '),
  }
}

const sum = <Item>(items: readonly Item[], of: (item: Item) => number) => items.reduce((all, item) => all + of(item), 0)

const count = { type: 'integer', minimum: 0 }

export const capacitySchema = closedObject({
  slots: list(
    view<ReturnType<typeof slotOf>>({
      name: text,
      capacity: count,
      target: count,
      used: count,
      available: count,
      holders: list(text),
      notes: text,
    }),
  ),
  totals: closedObject({ capacity: count, used: count, available: count }),
})
