import { SimpleGrid } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import type { StatsPoint, StatsView } from '../../../src/protocol/admin/stats.ts'
import { api } from '../server.ts'
import { Chart } from './chart.tsx'

/** Throughput, latency, depth and failures over time. */
export function Charts({ sinceSeconds }: { sinceSeconds: number }) {
  const { data } = useQuery({
    queryKey: ['stats', sinceSeconds],
    queryFn: () => api.stats({ sinceSeconds }),
    refetchInterval: 10_000,
  })
  const made = useMemo(() => (data === undefined ? undefined : seriesOf(data)), [data])
  if (made === undefined) return null
  const { times, sums, depths } = made
  const perSecond = (pick: (sum: Sum) => number) =>
    sums.map((sum, index) => (sum === undefined ? 0 : pick(sum) / lasted(times[index]!, data!)))
  const longest = (pick: (sum: Sum) => number | null) => sums.map(sum => (sum === undefined ? null : pick(sum)))
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Chart
        title="Tasks queued and ended"
        unit="/s"
        times={times}
        lines={[
          { label: 'queued', colour: '#868e96', values: perSecond(({ queued }) => queued) },
          { label: 'ended', colour: '#12b886', values: perSecond(({ ended }) => ended) },
        ]}
      />
      <Chart
        title="Waiting and running time (slowest type)"
        unit="s"
        times={times}
        lines={[
          { label: 'wait p50', colour: '#74c0fc', values: longest(({ waitP50 }) => waitP50) },
          { label: 'wait p95', colour: '#1c7ed6', values: longest(({ waitP95 }) => waitP95) },
          { label: 'run p50', colour: '#ffc078', values: longest(({ runP50 }) => runP50) },
          { label: 'run p95', colour: '#f76707', values: longest(({ runP95 }) => runP95) },
        ]}
      />
      <Chart
        title="Queue depth"
        unit=""
        times={times}
        lines={[
          { label: 'ready', colour: '#4c6ef5', values: depths.map(each => each?.due ?? null) },
          { label: 'running', colour: '#15aabf', values: depths.map(each => each?.held ?? null) },
        ]}
      />
      <Chart
        title="Failed attempts and lost leases"
        unit="/s"
        times={times}
        lines={[
          { label: 'failures', colour: '#fa5252', values: perSecond(({ failures }) => failures) },
          { label: 'lost', colour: '#be4bdb', values: perSecond(({ lost }) => lost) },
        ]}
      />
    </SimpleGrid>
  )
}

/** The last bucket is not complete yet. */
function lasted(at: number, { to, bucketSeconds }: StatsView): number {
  return Math.max(1, Math.min(bucketSeconds, Date.parse(to) / 1000 - at))
}

const none = { due: 0, held: 0 }

interface Sum {
  queued: number
  ended: number
  failures: number
  lost: number
  waitP50: number | null
  waitP95: number | null
  runP50: number | null
  runP95: number | null
}

/** One point per bucket, also for empty ones. Counts are summed over all types; latencies are the maximum. */
function seriesOf({ from, to, bucketSeconds, series, depths }: StatsView) {
  const [first, last] = [Date.parse(from) / 1000, Date.parse(to) / 1000]
  const times: number[] = []
  for (let at = Math.floor(first / bucketSeconds) * bucketSeconds; at <= last; at += bucketSeconds) times.push(at)
  const byTime = new Map<number, Sum>()
  for (const point of series) {
    const at = Date.parse(point.at) / 1000
    byTime.set(at, add(byTime.get(at), point))
  }
  const deep = new Map<number, { due: number; held: number }>()
  for (const { at, due, held } of depths) {
    const before = deep.get(Date.parse(at) / 1000) ?? none
    deep.set(Date.parse(at) / 1000, { due: before.due + due, held: before.held + held })
  }
  return {
    times,
    sums: times.map(at => byTime.get(at)),
    depths: times.map((at, index) => deep.get(at) ?? (index === times.length - 1 ? undefined : none)),
  }
}

function add(sum: Sum | undefined, point: StatsPoint): Sum {
  const { queued, succeeded, skipped, failed, cancelled, expired, deadLettered, failures, lost, queue, run } = point
  return {
    queued: (sum?.queued ?? 0) + queued,
    ended: (sum?.ended ?? 0) + succeeded + skipped + failed + cancelled + expired + deadLettered,
    failures: (sum?.failures ?? 0) + failures,
    lost: (sum?.lost ?? 0) + lost,
    waitP50: longer(sum?.waitP50, queue.p50Seconds),
    waitP95: longer(sum?.waitP95, queue.p95Seconds),
    runP50: longer(sum?.runP50, run.p50Seconds),
    runP95: longer(sum?.runP95, run.p95Seconds),
  }
}

function longer(one: number | null | undefined, other: number | null): number | null {
  return one === null || one === undefined ? other : other === null ? one : Math.max(one, other)
}
