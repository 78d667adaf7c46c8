/**
 * Metrics for Prometheus. Metrics of the database are the same on every server, so read them with `max by`, not `sum`. The
 * help text of a metric says if it is about the process.
 */
import type { FastifyInstance } from 'fastify'
import { Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client'
import type { Engine } from '../engine/engine.ts'
import { demandPermission } from '../engine/queue-scope.ts'
import { maxLabels, otherLabel, upperSeconds } from '../kernel/metrics.ts'
import { authenticate, type KeyRules } from './authenticate.ts'

/** Counts every answer of the app by the pattern of its route, and serves the metrics. */
export function bindMetrics(app: FastifyInstance, own: FastifyInstance, engine: Engine, keys: KeyRules): void {
  const metrics = makeMetrics(engine)
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none'
    metrics.onRequest(route, request.method, reply.statusCode, reply.elapsedTime / 1000)
  })
  own.get('/metrics', {
    onRequest: async request => demandPermission((await authenticate(keys, request)).roles, 'read'),
    handler: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  })
}

export interface Metrics {
  readonly contentType: string
  /** All metrics in the format of Prometheus. Answers even while the store is unavailable. */
  text(): Promise<string>
  /** Counts an answered request. `route` is its pattern: there are too many different paths. */
  onRequest(route: string, method: string, status: number, seconds: number): void
}

interface Source {
  readonly internals: Pick<Engine['internals'], 'totals'>
  readonly context: Pick<Engine['context'], 'metrics'>
}

type Totals = Awaited<ReturnType<Engine['internals']['totals']>>

const httpBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60]

export function makeMetrics(engine: Source): Metrics {
  const registers = [new Registry()]
  const [registry] = registers as [Registry]
  const http = new Histogram({
    name: 'pawl_http_request_seconds',
    help: 'Duration of HTTP requests by route, method and status. Covers this process only.',
    labelNames: ['route', 'method', 'status'],
    buckets: httpBuckets,
    registers,
  })
  const up = new Gauge({ name: 'pawl_store_up', help: '1 if the store answered this process, else 0.', registers })
  const shared = sharedMetrics(registry)
  const own = ownMetrics(registry, engine.context)

  // A type keeps its own series once it has one: a count must not move from one series to another. A queue keeps its series
  // while it has tasks, so that series do not come and go with the load.
  let types: readonly string[] = []
  let queues: readonly string[] = []
  const toName = (named: readonly string[]) => ({ named, most: maxLabels, others: otherLabel })
  async function collect(): Promise<string> {
    own()
    const totals = await engine.internals.totals(toName(types), toName(queues)).catch(() => undefined)
    up.set(totals === undefined ? 0 : 1)
    if (totals !== undefined) {
      types = namesIn(totals.moves)
      queues = totals.queues.queues.map(({ queue }) => queue)
    }
    shared(totals)
    return registry.metrics()
  }
  // Concurrent requests share one query, so many of them cost the store no more than one.
  let collecting: Promise<string> | undefined
  return {
    contentType: registry.contentType,
    text() {
      collecting ??= collect().finally(() => {
        collecting = undefined
      })
      return collecting
    },
    onRequest: (route, method, status, seconds) => http.observe({ route, method, status }, seconds),
  }
}

const counters = {
  queued: ['pawl_queued_total', 'Tasks queued, including tasks that an operator queued again.'],
  claimed: ['pawl_claims_total', 'Tasks claimed.'],
  started: ['pawl_starts_total', 'Attempts started.'],
  retried: ['pawl_retries_total', 'Attempts that ended without a result, so that their task is retried.'],
  failures: ['pawl_failures_total', 'Attempts that failed, timed out, or moved their task to the dead-letter queue.'],
  lost: ['pawl_lease_expiries_total', 'Leases that expired.'],
} as const
const ends = ['succeeded', 'skipped', 'failed', 'cancelled', 'expired', 'dead_lettered']

/** Metrics of the database. While it is unavailable there are no values, because old ones would look like new ones. */
function sharedMetrics(registry: Registry) {
  const { counter, gauge, histogram } = metricsIn(registry, 'Covers all processes.')
  const moves = Object.entries(counters).map(([what, [name, help]]) => ({ what, counter: counter(name, help, 'type') }))
  const ended = counter('pawl_ended_total', 'Tasks that ended, by final state.', 'type', 'state')
  const due = gauge('pawl_queue_due', 'Tasks that can be claimed now.', 'queue')
  const scheduled = gauge('pawl_queue_scheduled', 'Tasks scheduled for later.', 'queue')
  const held = gauge('pawl_queue_held', 'Tasks held by workers.', 'queue')
  const oldest = gauge('pawl_queue_oldest_due_seconds', 'Time that the oldest due task has been waiting.', 'queue')
  const deadLetters = gauge('pawl_dlq_count', 'Tasks in the dead-letter queue.')
  const feedLag = gauge('pawl_feed_lag_seconds', 'Age of the oldest event that the feed does not show yet.')
  let latencies: readonly Series[] = []
  histogram('pawl_task_seconds', 'Time that tasks spend in a phase: queue (until the start) or run.', () => latencies)

  return (totals: Totals | undefined) => {
    for (const metric of [...moves.map(({ counter }) => counter), ended, due, scheduled, held, oldest]) metric.reset()
    deadLetters.remove()
    feedLag.remove()
    latencies = totals === undefined ? [] : latencySeries(totals.moves)
    if (totals === undefined) return
    for (const { type, what, n } of totals.moves) {
      moves.find(move => move.what === what)?.counter.inc({ type }, n)
      if (ends.includes(what)) ended.inc({ type, state: what }, n)
    }
    for (const { queue, ...depth } of depthsIn(totals.queues)) {
      due.set({ queue }, depth.due)
      scheduled.set({ queue }, depth.scheduled)
      held.set({ queue }, depth.held)
      oldest.set({ queue }, depth.oldestSeconds ?? 0)
    }
    deadLetters.set(totals.deadLetters)
    feedLag.set(totals.feedLagSeconds)
  }
}

const namesIn = (moves: Totals['moves']) =>
  [...new Set(moves.map(({ type }) => type))].filter(type => type !== otherLabel).slice(0, maxLabels)

/** The queues with their own series, and one entry for all others together. */
function depthsIn({ queues, rest }: Totals['queues']): Totals['queues']['queues'] {
  return rest.count === 0 ? queues : [...queues, { queue: otherLabel, ...rest }]
}

function latencySeries(moves: Totals['moves']): Series[] {
  const series = new Map<string, Series & { counts: number[]; sumSeconds: number }>()
  for (const { type, what: phase, bucket, n, seconds } of moves) {
    if (phase !== 'queue' && phase !== 'run') continue
    const key = `${phase} ${type}`
    const one = series.get(key) ?? { labels: { type, phase }, counts: [], sumSeconds: 0 }
    one.counts[bucket] = n
    one.sumSeconds += seconds
    series.set(key, one)
  }
  return [...series.values()]
}

/** Metrics of this process. */
function ownMetrics(registry: Registry, { metrics }: Source['context']) {
  const { counter, gauge, histogram } = metricsIn(registry, 'Covers this process only.')
  const conflicts = counter('pawl_claim_conflicts_total', 'Claims that lost a race to another claim.')
  const renewals = counter('pawl_lease_renewals_total', 'Leases renewed.')
  const connections = gauge(
    'pawl_store_connections',
    'Connections to the store: in use, idle, and callers waiting for one.',
    'state',
  )
  const most = gauge('pawl_store_connections_max', 'Maximum number of connections to the store.')
  histogram('pawl_statement_seconds', 'Time from sending a statement to receiving its result.', () => [
    { labels: {}, ...metrics.statements },
  ])
  histogram(
    'pawl_event_loop_blocked_seconds',
    'Duration of each pause in which the event loop was blocked for longer than the limit.',
    () => [{ labels: {}, ...metrics.blocked }],
  )
  return () => {
    const now = metrics.connections()
    conflicts.reset()
    conflicts.inc(metrics.claimConflicts)
    renewals.reset()
    renewals.inc(metrics.leaseRenewals)
    for (const state of ['inUse', 'idle', 'waiting'] as const) connections.set({ state }, now[state])
    most.set(now.most)
  }
}

/** Makes metrics of a registry. `scope`: the end of their help text. */
function metricsIn(registry: Registry, scope: string) {
  const options = (name: string, help: string, labelNames: string[]) => {
    return { name, help: `${help} ${scope}`, labelNames, registers: [registry] }
  }
  return {
    counter: (name: string, help: string, ...labels: string[]) => new Counter(options(name, help, labels)),
    gauge: (name: string, help: string, ...labels: string[]) => new Gauge(options(name, help, labels)),
    histogram: (name: string, help: string, read: () => readonly Series[]) =>
      addHistogram(registry, name, `${help} ${scope}`, read),
  }
}

interface Series {
  readonly labels: Record<string, string>
  /** By bucket of kernel/metrics.ts. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

/** Every second bucket is reported, so that bounds grow by a factor of 2. */
const reportedBuckets = Array.from({ length: 28 }, (_, index) => index * 2)

/** A histogram that was counted elsewhere. Values can only be added one by one to prom-client's own histograms. */
function addHistogram(registry: Registry, name: string, help: string, read: () => readonly Series[]): void {
  const values = ({ labels, counts, sumSeconds }: Series) => {
    const upTo = (bucket: number) => counts.slice(0, bucket + 1).reduce((sum, n) => sum + (n ?? 0), 0)
    const total = upTo(counts.length)
    return [
      ...reportedBuckets.map(bucket => ({
        metricName: `${name}_bucket`,
        labels: { ...labels, le: upperSeconds(bucket) },
        value: upTo(bucket),
      })),
      { metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: total },
      { metricName: `${name}_sum`, labels, value: sumSeconds },
      { metricName: `${name}_count`, labels, value: total },
    ]
  }
  const metric = { name, help, get: async () => ({ name, help, type: 'histogram', values: read().flatMap(values) }) }
  registry.registerMetric(metric as unknown as Metric)
}
