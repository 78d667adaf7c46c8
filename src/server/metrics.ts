/**
 * Metrics for Prometheus. Metrics of the database are the same on every server, so read them with `max by`, not `sum`. The
 * help text of a metric says if it is about the process.
 */
import { Counter, Gauge, Histogram, type Metric, Registry } from 'prom-client'
import type { Engine } from '../engine/engine.ts'
import { upperSeconds } from '../kernel/histogram.ts'
import { maxLabels, otherLabel } from '../kernel/metric-labels.ts'

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
    help: 'Requests by route, method and status. Of this process.',
    labelNames: ['route', 'method', 'status'],
    buckets: httpBuckets,
    registers,
  })
  const up = new Gauge({ name: 'pawl_store_up', help: '1: the store answered. Of this process.', registers })
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
  queued: ['pawl_queued_total', 'Tasks that were queued, or queued again by an operator.'],
  claimed: ['pawl_claims_total', 'Tasks that were claimed.'],
  started: ['pawl_starts_total', 'Attempts that began.'],
  retried: ['pawl_retries_total', 'Attempts that ended without a result and whose task went back to the queue.'],
  failures: ['pawl_failures_total', 'Attempts that failed, timed out, or set their task aside.'],
  lost: ['pawl_lease_expiries_total', 'Leases that ran out.'],
} as const
const ends = ['succeeded', 'skipped', 'failed', 'cancelled', 'expired', 'dead_lettered']

/** Metrics of the database. While it is unavailable there are no values, because old ones would look like new ones. */
function sharedMetrics(registry: Registry) {
  const registers = [registry]
  const moves = Object.entries(counters).map(([what, [name, help]]) => {
    return { what, counter: new Counter({ name, help: `${help} Of all processes.`, labelNames: ['type'], registers }) }
  })
  const ended = new Counter({
    name: 'pawl_ended_total',
    help: 'Tasks that ended, by how. Of all processes.',
    labelNames: ['type', 'state'],
    registers,
  })
  const gauge = (name: string, help: string) =>
    new Gauge({ name, help: `${help} Of all processes.`, labelNames: ['queue'], registers })
  const due = gauge('pawl_queue_due', 'Tasks that may be claimed now.')
  const scheduled = gauge('pawl_queue_scheduled', 'Tasks that wait for their time.')
  const held = gauge('pawl_queue_held', 'Tasks that a worker holds.')
  const oldest = gauge('pawl_queue_oldest_due_seconds', 'How long the oldest due task has been waiting.')
  const deadLetters = new Gauge({ name: 'pawl_dlq_count', help: 'Dead letters now. Of all processes.', registers })
  const feedLag = new Gauge({
    name: 'pawl_feed_lag_seconds',
    help: 'Age of the oldest event that the feed cannot show yet. Of all processes.',
    registers,
  })
  let latencies: readonly Series[] = []
  addHistogram(
    registry,
    'pawl_task_seconds',
    'Time in a phase: queue (until it began), run. Of all processes.',
    () => latencies,
  )

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
  const registers = [registry]
  const conflicts = new Counter({
    name: 'pawl_claim_conflicts_total',
    help: 'Claims that lost a race for a task to another claim. Of this process.',
    registers,
  })
  const renewals = new Counter({
    name: 'pawl_lease_renewals_total',
    help: 'Leases that were renewed. Of this process.',
    registers,
  })
  const connections = new Gauge({
    name: 'pawl_store_connections',
    help: 'Connections to the store that are in use and idle, and what waits for one. Of this process.',
    labelNames: ['state'],
    registers,
  })
  const most = new Gauge({
    name: 'pawl_store_connections_max',
    help: 'The most connections to the store. Of this process.',
    registers,
  })
  addHistogram(
    registry,
    'pawl_statement_seconds',
    'From sending a statement until its answer. Of this process.',
    () => [{ labels: {}, ...metrics.statements }],
  )
  addHistogram(
    registry,
    'pawl_event_loop_blocked_seconds',
    'How long nobody was answered, each time the event loop was blocked beyond its bound. Of this process.',
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

interface Series {
  readonly labels: Record<string, string>
  /** By bucket of kernel/histogram.ts. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

/** Every second bucket is reported, so that bounds grow by a factor of 2. */
const told = Array.from({ length: 28 }, (_, index) => index * 2)

/** A histogram that was counted elsewhere. Values can only be added one by one to prom-client's own histograms. */
function addHistogram(registry: Registry, name: string, help: string, read: () => readonly Series[]): void {
  const values = ({ labels, counts, sumSeconds }: Series) => {
    const upTo = (bucket: number) => counts.slice(0, bucket + 1).reduce((sum, n) => sum + (n ?? 0), 0)
    const total = upTo(counts.length)
    return [
      ...told.map(bucket => ({
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
