/** Handlers of the routes that only read: jobs, events, dead letters and metrics. */
import { ignoring, Problem } from '../../kernel/problem.ts'
import type { PhaseStats } from '../../protocol/admin/stats.ts'
import { figure, orNull, view, whole } from '../../protocol/shapes.ts'
import type { EventView } from '../../protocol/tasks/tasks.ts'
import { type Answer, type DialectRequest, good } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { factsOfTasks } from '../kit/pages.ts'
import { readQuery } from '../kit/requests.ts'
import { queries } from './requests.ts'
import { deadLetterOf, eventsOf, jobOf, traceIdOf } from './views.ts'
import { eventTypes } from './words.ts'

export async function job({ engine, params }: DialectRequest): Promise<Answer> {
  return good(jobOf(await engine.task(params.id!)))
}

export async function events(request: DialectRequest): Promise<Answer> {
  const { engine, params, query } = request
  const task = await engine.task(params.id!).catch(ignoring('TASK_NOT_FOUND'))
  if (task === undefined) return eventsOfPawlJob(request)
  const { items, next } = await engine.taskEvents(task.id, { ...readQuery(query, queries.page), pulses: true })
  return good({ items: items.flatMap(event => eventsOf(event, traceIdOf(task))), next })
}

/** The id of a Pawl job, whose tasks are the jobs here. Its only event here is its compensation. */
async function eventsOfPawlJob({ engine, params, query }: DialectRequest): Promise<Answer> {
  const page = await engine.jobEvents(params.id!, readQuery(query, queries.page)).catch(ignoring('JOB_NOT_FOUND'))
  if (page === undefined) throw new Problem('TASK_NOT_FOUND', { id: params.id })
  return good({ items: page.items.flatMap(event => eventsOf(event, event.traceId)), next: page.next })
}

/** The events of all jobs. */
export async function allEvents({ engine, query }: DialectRequest): Promise<Answer> {
  const { type, limit = 1000, ...rest } = readQuery(query, queries.events)
  const types = Object.keys(eventTypes).filter(name => type === undefined || eventTypes[name] === type)
  const { items, next, more } = await engine.events({ ...rest, limit, types })
  const traceIds = await traceIdsOf(engine, items)
  const shown = items.flatMap(event => eventsOf(event, traceIds.get(event.entityId) ?? event.traceId))
  return good({ items: shown, next: more ? next : null })
}

/** The trace ids of the tasks of these events. A trace id may be any text, so it is kept with its task. */
async function traceIdsOf(
  engine: DialectEngine,
  items: readonly EventView[],
): Promise<ReadonlyMap<string, string | null>> {
  const ids = [...new Set(items.flatMap(({ entity, entityId }) => (entity === 'task' ? [entityId] : [])))]
  return factsOfTasks(engine, ids, traceIdOf)
}

export async function deadLetters({ engine, query }: DialectRequest): Promise<Answer> {
  const { reason_code: reasonCode, ...filter } = readQuery(query, queries.deadLetters)
  const { items, next } = await engine.deadLetters({ ...filter, ...(reasonCode !== undefined && { reasonCode }) })
  return good({ items: items.map(deadLetterOf), next })
}

export async function metrics({ engine }: DialectRequest): Promise<Answer> {
  return good(await readMetrics(engine))
}

async function readMetrics(engine: DialectEngine) {
  const { moves, deadLetters } = await engine.totals()
  const { types } = await engine.stats()
  const { claimConflicts, leaseRenewals } = engine.figures()
  const count = (move: string) => moves.reduce((sum, row) => sum + (row.what === move ? row.n : 0), 0)
  return {
    claims: count('claimed'),
    claim_conflicts: claimConflicts,
    lease_renewals: leaseRenewals,
    lease_expiries: count('lost'),
    retries: count('retried'),
    failures: count('failures'),
    dlq_count: deadLetters,
    // By type, over the last hour.
    latency: Object.fromEntries(
      types.map(({ type, queue, run }) => [type, { queue: latencyOf(queue), run: latencyOf(run) }]),
    ),
  }
}

function latencyOf({ count, p50Seconds, p95Seconds }: PhaseStats) {
  return { count, p50_sec: p50Seconds, p95_sec: p95Seconds }
}

const latency = view<ReturnType<typeof latencyOf>>({ count: whole, p50_sec: orNull(figure), p95_sec: orNull(figure) })

export const metricsSchema = view<Awaited<ReturnType<typeof readMetrics>>>({
  claims: whole,
  claim_conflicts: whole,
  lease_renewals: whole,
  lease_expiries: whole,
  retries: whole,
  failures: whole,
  dlq_count: whole,
  latency: {
    type: 'object',
    additionalProperties: view<{ queue: unknown; run: unknown }>({ queue: latency, run: latency }),
  },
})
