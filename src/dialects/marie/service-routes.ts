/** The routes of Marie's gateway that are about the service itself. */

import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal } from '../../kernel/lifecycle.ts'
import { maxLabels, otherLabel } from '../../kernel/metric-labels.ts'
import type { WorkerView } from '../../protocol/admin/operate.ts'
import { at, flag, id, list, orNull, text, whole } from '../../protocol/shapes.ts'
import type { Schema } from '../../schema/check.ts'
import type { Answer, Ask, DialectRoute } from '../dialect.ts'
import { wordFor } from '../words.ts'
import { good, goodSchema, schemaOf } from './envelope.ts'
import { words } from './words.ts'

/** All priorities are one band here. */
const lowest = -1_000_000

/** Marie's clients know no other success. */
const success = { code: 0, description: '', exception: null }

/** Answered to whoever asks, while the store answers. */
const whileReady =
  (body: object): DialectRoute['handle'] =>
  async ({ engine }) => {
    await engine.ready()
    return { status: 200, body }
  }

async function debug({ engine }: Ask): Promise<Answer> {
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

/** Most workers that are shown, the first by name. */
export const mostWorkers = 1000
/** Most endpoints of all workers together. */
export const mostEndpoints = 10_000

/** Executors are the workers that are connected; an endpoint of one is a queue that it serves. */
async function deployments({ engine, root }: Ask) {
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
const deployment = schemaOf({
  address: orNull(id),
  slots: orNull(whole),
  used: whole,
  started_at: orNull(at),
  seen_at: orNull(at),
} satisfies Record<keyof ReturnType<typeof deploymentOf>, Schema>)
const nodesSchema = mapOf(list(schemaOf({ address: orNull(id), endpoint: text, executor: text, gateway: text })))

export const serviceRoutes: readonly DialectRoute[] = [
  {
    method: 'GET',
    path: '/check',
    needs: null,
    says: 'Whether the gateway is there.',
    answers: schemaOf({ result: { const: 'ok' } }),
    handle: whileReady({ result: 'ok' }),
  },
  {
    method: 'GET',
    path: '/',
    needs: null,
    says: 'For probes: `{}` while the store answers.',
    answers: schemaOf({}),
    handle: whileReady({}),
  },
  {
    method: 'GET',
    path: '/status',
    needs: null,
    says: 'For probes: what answers here.',
    answers: schemaOf({ marie: schemaOf({ version: text }) }),
    handle: whileReady({ marie: { version: 'Pawl' } }),
  },
  {
    method: 'GET',
    path: '/dry_run',
    needs: null,
    says: 'What Marie’s client asks before it sends: whether the gateway is ready.',
    answers: schemaOf({ code: { const: 0 }, description: text, exception: { type: 'null' } }),
    handle: whileReady(success),
  },
  {
    method: 'GET',
    path: '/api/debug',
    needs: 'read',
    says: 'Jobs by queue and state, and DAGs by state.',
    answers: goodSchema(
      schemaOf({
        scheduler_info: schemaOf({ running: flag, known_queues: list(text), active_dags_count: whole }),
        timing_info: schemaOf({ current_time: at }),
        job_state_counts: schemaOf({ queues: mapOf(mapOf(whole)) }),
        dag_state_counts: mapOf(whole),
      }),
    ),
    handle: debug,
  },
  {
    method: 'GET',
    path: '/api/deployments',
    needs: 'read',
    says: 'The executors that are connected, and the queues that each serves.',
    answers: goodSchema(schemaOf({ deployments: mapOf(list(deployment)), deployment_nodes: nodesSchema })),
    handle: async ask => good(await deployments(ask)),
  },
  {
    method: 'GET',
    path: '/api/deployment-nodes',
    needs: 'read',
    says: 'The queues that each executor serves.',
    answers: goodSchema(nodesSchema),
    handle: async ask => good((await deployments(ask)).deployment_nodes),
  },
]
