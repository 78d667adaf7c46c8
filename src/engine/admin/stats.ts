/** Statistics that the babysitter has counted, by type and time bucket. */
import { quantile } from '../../kernel/metrics.ts'
import { Problem } from '../../kernel/problem.ts'
import {
  type PhaseStats,
  type StatsQuery,
  type StatsView,
  statsQueryFields,
  type TypeStats,
} from '../../protocol/admin/stats.ts'
import { readDepths, readStats, type StatRow } from '../../store/admin/stats.ts'
import { deepestQueues } from '../../store/flow/queue-depths.ts'
import { checkOptions } from '../check.ts'
import type { Context } from '../context.ts'

const maxPoints = 500
const minute = 60
/** Default number of types, and of queues. */
const defaultLimit = 100
/** Maximum number of points for all types together, and for all queues. */
const maxTotalPoints = 20_000

export async function readStatistics({ sql }: Context, query: StatsQuery = {}): Promise<StatsView> {
  checkOptions(query, statsQueryFields, 'stats')
  const { sinceSeconds = 3600, type = null, limit = defaultLimit } = query
  const bucketSeconds = query.bucketSeconds ?? Math.ceil(sinceSeconds / 60 / minute) * minute
  if (bucketSeconds % minute !== 0 || sinceSeconds / bucketSeconds > maxPoints) {
    const must = `be a multiple of 60, and divide ${sinceSeconds} seconds into at most ${maxPoints} buckets`
    throw new Problem('OPTION_INVALID', { at: 'stats', option: 'bucketSeconds', must })
  }
  const most = Math.min(limit, Math.floor(maxTotalPoints / Math.ceil(sinceSeconds / bucketSeconds)))
  const ask = { sinceSeconds, bucketSeconds, type, most }
  const { from, to, lastCountedAt, rows, typesLeftOut } = await readStats(sql, ask)
  const { queues, rest } = await deepestQueues(sql, { named: [], most, others: null })
  const names = queues.map(({ queue }) => queue)
  const spanSeconds = (to.getTime() - from.getTime()) / 1000
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    bucketSeconds,
    lastCountedAt: lastCountedAt?.toISOString() ?? null,
    types: groupBy(rows, row => row.type).map(some => typeStats(some, spanSeconds)),
    series: groupBy(rows, row => `${row.at.getTime()} ${row.type}`).map(some => ({
      at: some[0]!.at.toISOString(),
      ...typeStats(some, bucketSeconds),
    })),
    queues,
    depths: (await readDepths(sql, { from, bucketSeconds, queues: names })).map(({ at, ...deep }) => ({
      at: at.toISOString(),
      ...deep,
    })),
    leftOut: { types: typesLeftOut, queues: rest.count },
  }
}

function groupBy(rows: readonly StatRow[], keyOf: (row: StatRow) => string): StatRow[][] {
  const groups = new Map<string, StatRow[]>()
  for (const row of rows) {
    const group = groups.get(keyOf(row))
    if (group === undefined) groups.set(keyOf(row), [row])
    else group.push(row)
  }
  return [...groups.values()]
}

function typeStats(rows: readonly StatRow[], seconds: number): TypeStats {
  const count = (what: string) => rows.reduce((sum, row) => sum + (row.what === what ? row.n : 0), 0)
  const queued = count('queued')
  const ends = {
    succeeded: count('succeeded'),
    skipped: count('skipped'),
    failed: count('failed'),
    cancelled: count('cancelled'),
    expired: count('expired'),
    deadLettered: count('dead_lettered'),
  }
  return {
    type: rows[0]!.type,
    queued,
    claimed: count('claimed'),
    started: count('started'),
    ...ends,
    failures: count('failures'),
    retried: count('retried'),
    lost: count('lost'),
    queuedPerSecond: queued / seconds,
    endedPerSecond: Object.values(ends).reduce((sum, n) => sum + n, 0) / seconds,
    queue: phaseStats(rows, 'queue'),
    run: phaseStats(rows, 'run'),
  }
}

function phaseStats(rows: readonly StatRow[], phase: 'queue' | 'run'): PhaseStats {
  const counts = new Map<number, number>()
  let count = 0
  let seconds = 0
  for (const row of rows) {
    if (row.what !== phase) continue
    counts.set(row.bucket, (counts.get(row.bucket) ?? 0) + row.n)
    count += row.n
    seconds += row.seconds
  }
  return {
    count,
    meanSeconds: count === 0 ? null : seconds / count,
    p50Seconds: quantile(counts, 0.5),
    p95Seconds: quantile(counts, 0.95),
  }
}
