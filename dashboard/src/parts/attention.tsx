/** Lists what needs attention now, or says that nothing does. */
import { Alert, Card, Group, SimpleGrid, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import { api } from '../server.ts'
import { useDeadLetterGroups, useWaiting } from '../waiting.ts'
import { Fault } from './fault.tsx'
import { queuesQuery, silentWorkersQuery, workersQuery } from './queries.ts'

interface Alarm {
  readonly key: string
  readonly title: string
  readonly text: string
  readonly href?: string
  readonly grade: 'bad' | 'warning'
}

export function Attention() {
  const alarms = [
    ...useGates(),
    ...useDeadLetters(),
    ...useFailedJobs(),
    ...useStuckJobs(),
    ...useLostWorkers(),
    ...useDoctor(),
  ]
  const { isFetched, error } = useWaiting()
  if (error) return <Fault error={error} />
  if (!isFetched) return null
  if (alarms.length === 0) {
    return (
      <Alert color="teal" variant="light" role="status">
        Nothing needs your attention.
      </Alert>
    )
  }
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} aria-label="Needs attention">
      {alarms.map(({ key, title, text, href, grade }) => (
        <Card key={key} withBorder padding="sm" className={`alarm-${grade}`}>
          <Group justify="space-between" wrap="nowrap">
            <Text fw={600} size="sm">
              {title}
            </Text>
            {href !== undefined && <Link href={href}>show</Link>}
          </Group>
          <Text size="sm" c="dimmed" lineClamp={3}>
            {text}
          </Text>
        </Card>
      ))}
    </SimpleGrid>
  )
}

function useGates(): Alarm[] {
  const { data } = useWaiting()
  const waiting = data?.items ?? []
  if (waiting.length === 0) return []
  const text = waiting.map(({ name, gate }) => (gate?.ask ? `${name}: ${gate.ask}` : name)).join(' · ')
  const title = waiting.length === 1 ? 'A gate is waiting' : `${data?.total ?? waiting.length} gates are waiting`
  return [{ key: 'gates', title, text: sanitize(text), href: '/gates', grade: 'warning' }]
}

function useDeadLetters(): Alarm[] {
  const { data = [] } = useDeadLetterGroups()
  if (data.length === 0) return []
  const reasons = new Map<string, number>()
  for (const { reasonCode, count } of data)
    reasons.set(reasonCode ?? 'unknown', (reasons.get(reasonCode ?? 'unknown') ?? 0) + count)
  const total = data.reduce((sum, { count }) => sum + count, 0)
  const text = [...reasons].map(([reason, count]) => `${count} ${reason}`).join(', ')
  return [
    { key: 'dead', title: `${total} dead letter${total === 1 ? '' : 's'}`, text, href: '/dead-letters', grade: 'bad' },
  ]
}

const recentMs = 3_600_000
const mostFailed = 20

function useFailedJobs(): Alarm[] {
  const { data } = useQuery({
    queryKey: ['jobs', 'failed'],
    queryFn: () => api.jobs({ state: ['failed', 'expired'], order: 'changed', limit: mostFailed }),
  })
  const failed =
    data?.items.filter(({ endedAt }) => endedAt !== null && Date.now() - Date.parse(endedAt) < recentMs) ?? []
  if (failed.length === 0) return []
  const title =
    failed.length === 1
      ? 'A job failed in the last hour'
      : `${failed.length}${failed.length === mostFailed ? ' or more' : ''} jobs failed in the last hour`
  const text = failed.map(({ name }) => name).join(', ')
  const href = failed.length === 1 ? `/jobs/${failed[0]!.id}` : '/jobs?state=failed&state=expired'
  return [{ key: 'failed', title, text: sanitize(text), href, grade: 'bad' }]
}

const longMs = 600_000

/** Jobs with due tasks that no worker serves, and jobs that have been stopping for a long time. */
function useStuckJobs(): Alarm[] {
  const { data: open } = useQuery({
    queryKey: ['jobs', 'open'],
    queryFn: () => api.jobs({ state: ['pending', 'running', 'stopping'], order: 'oldest', limit: 100 }),
    refetchInterval: 10_000,
  })
  const { data: queues } = useQuery({ ...queuesQuery, refetchInterval: 5000 })
  const { data: workers } = useQuery(workersQuery)
  const served = new Set(workers?.items.flatMap(worker => worker.queues))
  const starving = new Set(
    queues?.items
      .filter(
        ({ queue, due, held, oldestSeconds }) =>
          due > 0 && held === 0 && (oldestSeconds ?? 0) > 60 && !served.has(queue),
      )
      .map(({ queue }) => queue),
  )
  const stuck = (open?.items ?? []).flatMap(job => {
    const stage = job.stages.find(
      ({ state, queue }) => (state === 'running' || state === 'pending') && starving.has(queue),
    )
    if (stage !== undefined) return [{ job, why: `no worker serves queue ${stage.queue}` }]
    const isLong = job.state === 'stopping' && Date.now() - Date.parse(job.changedAt) > longMs
    return isLong ? [{ job, why: 'has been stopping for a long time' }] : []
  })
  const [first] = stuck
  if (first === undefined) return []
  const title = stuck.length === 1 ? 'A job is stuck' : `${stuck.length} jobs are stuck`
  const text = stuck.map(({ job, why }) => `${job.name}: ${why}`).join(' · ')
  return [{ key: 'stuck', title, text: sanitize(text), href: `/jobs/${first.job.id}`, grade: 'warning' }]
}

/** Workers that reported in the last ten minutes, hold tasks, and are silent now. */
function useLostWorkers(): Alarm[] {
  const { data } = useQuery({ ...silentWorkersQuery, refetchInterval: 5000 })
  const lost = (data?.items ?? []).filter(
    ({ seenAt, leases }) => leases > 0 && seenAt !== null && Date.now() - Date.parse(seenAt) > 30_000,
  )
  if (lost.length === 0) return []
  const text = lost
    .map(({ worker, leases }) => `${worker} (${leases} ${leases === 1 ? 'task' : 'tasks'} held)`)
    .join(', ')
  return [{ key: 'lost', title: 'Workers stopped reporting', text: sanitize(text), grade: 'warning' }]
}

const afterTheRestMs = 2000

/** The doctor reads the whole store, so it runs after everything else has loaded. */
function useDoctor(): Alarm[] {
  const [isDue, setDue] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setDue(true), afterTheRestMs)
    return () => clearTimeout(timer)
  }, [])
  const { data } = useQuery({
    queryKey: ['doctor'],
    queryFn: () => api.doctor(),
    enabled: isDue,
    refetchInterval: 60_000,
    staleTime: 55_000,
  })
  return (data?.findings ?? [])
    .filter(({ grade }) => grade !== 'note')
    .map(({ grade, what, todo }) => ({
      key: what,
      title: sanitize(what),
      text: sanitize(todo),
      grade: grade === 'bad' ? 'bad' : 'warning',
    }))
}
