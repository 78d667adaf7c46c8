/** The slots of each queue: what live workers offer, and what of it is used by live leases. */
import type { Schema } from '../../kernel/check.ts'
import type { WorkerView } from '../../protocol/operations.ts'
import type { Answer, Ask } from '../dialect.ts'
import { good, schemaOf } from './envelope.ts'

export async function capacity({ engine }: Ask): Promise<Answer> {
  const [workers, queues] = [await engine.workers(), await engine.queues()]
  const used = new Map(queues.map(({ queue, held }) => [queue, held]))
  const names = new Set([...used.keys(), ...workers.flatMap(({ queues: served }) => served)])
  const slots = [...names].sort().map(name => slotOf(name, used.get(name) ?? 0, workers))
  const totals = {
    capacity: sum(workers, offered),
    used: sum([...used.values()], held => held),
    available: sum(workers, free),
  }
  return good({ slots, totals })
}

/** Of a worker that does not say, what it holds. */
const offered = ({ slots, leases }: WorkerView) => slots ?? leases
const free = (worker: WorkerView) => Math.max(0, offered(worker) - worker.leases)

function slotOf(name: string, used: number, workers: readonly WorkerView[]) {
  const holding = workers.filter(({ leasesByQueue }) => (leasesByQueue[name] ?? 0) > 0)
  const serving = workers.filter(({ queues }) => queues.includes(name))
  const silent = holding.filter(worker => !serving.includes(worker))
  const all = sum(serving, offered) + sum(silent, ({ leasesByQueue }) => leasesByQueue[name]!)
  const others = new Set(serving.flatMap(({ queues }) => queues.filter(queue => queue !== name)))
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

const whole = { type: 'integer', minimum: 0 }
const text = { type: 'string' }

export const capacitySchema: Schema = schemaOf({
  slots: {
    type: 'array',
    items: schemaOf({
      name: text,
      capacity: whole,
      target: whole,
      used: whole,
      available: whole,
      holders: { type: 'array', items: text },
      notes: text,
    } satisfies Record<keyof ReturnType<typeof slotOf>, Schema>),
  },
  totals: schemaOf({ capacity: whole, used: whole, available: whole }),
})
