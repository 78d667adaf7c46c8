/** Routes about Marie's gateway itself: probes, executors and queue counts. */

import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { maxLabels, otherLabel } from '../../kernel/metric-labels.ts'
import type { WorkerView } from '../../protocol/admin/operate.ts'
import { at, flag, id, list, orNull, text, view, whole } from '../../protocol/shapes.ts'
import { type Answer, closedObject, type DialectRequest, type DialectRoute } from '../dialect.ts'
import { wordFor } from '../words.ts'
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
    summed(
      tasks
        .filter(({ queue }) => queue === name)
        .map(({ state, count }) => [wordFor(words.task, { state }, 0)!, count]),
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
    dag_state_counts: summed(jobs.map(({ count, ...dag }) => [wordFor(words.job, dag, 0)!, count])),
  })
}

function summed(counts: readonly (readonly [word: string, count: number])[]): Record<string, number> {
  const sums = new Map<string, number>()
  for (const [word, count] of counts) sums.set(word, (sums.get(word) ?? 0) + count)
  return Object.fromEntries(sums)
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
  {
    method: 'GET',
    path: '/check',
    needs: null,
    summary: 'Check that the gateway is up.',
    answers: closedObject({ result: { const: 'ok' } }),
    handle: whileReady({ result: 'ok' }),
  },
  {
    method: 'GET',
    path: '/',
    needs: null,
    summary: 'For probes: `{}` while the store responds.',
    answers: closedObject({}),
    handle: whileReady({}),
  },
  {
    method: 'GET',
    path: '/status',
    needs: null,
    summary: 'For probes: the name of the server.',
    answers: closedObject({ marie: closedObject({ version: text }) }),
    handle: whileReady({ marie: { version: 'Pawl' } }),
  },
  {
    method: 'GET',
    path: '/dry_run',
    needs: null,
    summary: 'Check that the gateway is ready, as Marie’s client does before it submits.',
    answers: closedObject({ code: { const: 0 }, description: text, exception: { type: 'null' } }),
    handle: whileReady(success),
  },
  {
    method: 'GET',
    path: '/api/debug',
    needs: 'read',
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
  },
  {
    method: 'GET',
    path: '/api/deployments',
    needs: 'read',
    summary: 'List the connected executors and the queues that they serve.',
    answers: goodSchema(closedObject({ deployments: mapOf(list(deployment)), deployment_nodes: nodesSchema })),
    handle: async request => good(await deployments(request)),
  },
  {
    method: 'GET',
    path: '/api/deployment-nodes',
    needs: 'read',
    summary: 'List the queues that each executor serves.',
    answers: goodSchema(nodesSchema),
    handle: async request => good((await deployments(request)).deployment_nodes),
  },
]
