/** Routes about Marie's gateway itself: capacity, probes, executors and queue counts. */
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { maxLabels, otherLabel } from '../../kernel/metrics.ts'
import type { WorkerView } from '../../protocol/admin/admin.ts'
import { at, flag, id, list, orNull, text, view, whole } from '../../protocol/shapes.ts'
import { type Answer, closedObject, type DialectRequest, type DialectRoute, route } from '../dialect.ts'
import { good, goodSchema } from './envelope.ts'
import { words } from './words.ts'

/** Counts all priorities as one band. */
const lowest = -1_000_000

/** The answer that Marie's clients check for. */
const success = { code: 0, description: '', exception: null }

/** Answers without a key while the store responds. */
const whileReady =
  (body: object): DialectRoute['handle'] =>
  async ({ engine }) => {
    await engine.ready()
    return { status: 200, body }
  }

async function debug({ engine }: DialectRequest): Promise<Answer> {
  const { jobs, tasks } = await engine.countsByState({ most: maxLabels, others: otherLabel, priorities: [lowest] })
  const queues = [...new Set(tasks.map(({ queue }) => queue))].sort()
  const countsOf = (name: string) =>
    Object.fromEntries(
      summed(tasks.filter(({ queue }) => queue === name).map(({ state, count }) => [words.task[state], count])),
    )
  const active = jobs.filter(({ state }) => !isFinal(jobLifecycle, state))
  return good({
    scheduler_info: {
      running: true,
      known_queues: queues.filter(queue => queue !== otherLabel),
      active_dags_count: active.reduce((sum, { count }) => sum + count, 0),
    },
    timing_info: { current_time: new Date(await engine.clock()).toISOString() },
    job_state_counts: { queues: Object.fromEntries(queues.map(queue => [queue, countsOf(queue)])) },
    dag_state_counts: Object.fromEntries(summed(jobs.map(({ state, count }) => [words.job[state], count]))),
  })
}

/** Counts with the same name are added up. */
function summed(counts: readonly (readonly [name: string, count: number])[]): Map<string, number> {
  const sums = new Map<string, number>()
  for (const [name, count] of counts) sums.set(name, (sums.get(name) ?? 0) + count)
  return sums
}

/** The maximum number of workers shown, in the order of their names. */
export const mostWorkers = 1000
/** The maximum number of endpoints shown for all workers together. */
export const mostEndpoints = 10_000

/** Executors are the connected workers; their endpoints are the queues that they serve. */
async function deployments({ engine, root }: DialectRequest) {
  const { items: workers } = await engine.workers({ limit: mostWorkers })
  const names = [...new Set(workers.map(({ worker }) => worker))].sort()
  const byName = <Value>(shown: (same: readonly WorkerView[]) => Value) =>
    Object.fromEntries(names.map(name => [name, shown(workers.filter(({ worker }) => worker === name))]))
  let room = mostEndpoints
  return {
    deployments: byName(same => same.map(deploymentOf)),
    deployment_nodes: byName(same =>
      same.flatMap(worker => {
        const nodes = nodesOf(worker, root).slice(0, room)
        room -= nodes.length
        return nodes
      }),
    ),
  }
}

function deploymentOf({ session, slots, leases, startedAt, seenAt }: WorkerView) {
  return { address: session, slots, used: leases, started_at: startedAt, seen_at: seenAt }
}

function nodesOf({ session, queues, worker }: WorkerView, gateway: string) {
  return [...queues].sort().map(endpoint => ({ address: session, endpoint, executor: worker, gateway }))
}

/** The slots of each queue: live workers offer them, live leases use them. */
async function capacity({ engine }: DialectRequest): Promise<Answer> {
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

const capacitySchema = closedObject({
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

const mapOf = (value: object) => ({ type: 'object', additionalProperties: value })
const deployment = view<ReturnType<typeof deploymentOf>>({
  address: orNull(id),
  slots: orNull(whole),
  used: whole,
  started_at: orNull(at),
  seen_at: orNull(at),
})
const nodesSchema = mapOf(list(closedObject({ address: orNull(id), endpoint: text, executor: text, gateway: text })))

export const serviceRoutes: readonly DialectRoute[] = [
  route('GET /api/capacity', 'read', {
    summary: 'List the slots of each queue, and how many are used.',
    answers: goodSchema(capacitySchema),
    handle: capacity,
  }),
  route('GET /check', null, {
    summary: 'Check that the gateway is up.',
    answers: closedObject({ result: { const: 'ok' } }),
    handle: whileReady({ result: 'ok' }),
  }),
  route('GET /', null, {
    summary: 'For probes: `{}` while the store responds.',
    answers: closedObject({}),
    handle: whileReady({}),
  }),
  route('GET /status', null, {
    summary: 'For probes: the name of the server.',
    answers: closedObject({ marie: closedObject({ version: text }) }),
    handle: whileReady({ marie: { version: 'Pawl' } }),
  }),
  route('GET /dry_run', null, {
    summary: 'Check that the gateway is ready, as Marie’s client does before it submits.',
    answers: closedObject({ code: { const: 0 }, description: text, exception: { type: 'null' } }),
    handle: whileReady(success),
  }),
  route('GET /api/debug', 'read', {
    summary: 'Count jobs by queue and state, and DAGs by state.',
    answers: goodSchema(
      closedObject({
        scheduler_info: closedObject({ running: flag, known_queues: list(text), active_dags_count: whole }),
        timing_info: closedObject({ current_time: at }),
        job_state_counts: closedObject({ queues: mapOf(mapOf(whole)) }),
        dag_state_counts: mapOf(whole),
      }),
    ),
    handle: debug,
  }),
  route('GET /api/deployments', 'read', {
    summary: 'List the connected executors and the queues that they serve.',
    answers: goodSchema(closedObject({ deployments: mapOf(list(deployment)), deployment_nodes: nodesSchema })),
    handle: async request => good(await deployments(request)),
  }),
  route('GET /api/deployment-nodes', 'read', {
    summary: 'List the queues that each executor serves.',
    answers: goodSchema(nodesSchema),
    handle: async request => good((await deployments(request)).deployment_nodes),
  }),
]
