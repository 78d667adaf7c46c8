/** What needs a person now; if nothing does, it says so. */
import { Alert, Card, Group, SimpleGrid, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import { api } from '../server.ts'
import { useDeadLetterGroups, useWaiting } from '../waiting.ts'
import { Fault } from './fault.tsx'
import { queuesQuery, silentWorkersQuery, workersQuery } from './queries.ts'

interface Call {
  readonly key: string
  readonly title: string
  readonly text: string
  readonly href?: string
  readonly grade: 'bad' | 'warning'
}

export function Attention() {
  const calls = [
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
  if (calls.length === 0) {
    return (
      <Alert color="teal" variant="light" role="status">
        Nothing needs you.
      </Alert>
    )
  }
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} aria-label="What needs a person">
      {calls.map(({ key, title, text, href, grade }) => (
        <Card key={key} withBorder padding="sm" className={`call-${grade}`}>
          <Group justify="space-between" wrap="nowrap">
            <Text fw={600} size="sm">
              {title}
            </Text>
            {href !== undefined && <Link href={href}>look</Link>}
          </Group>
          <Text size="sm" c="dimmed" lineClamp={3}>
            {text}
          </Text>
        </Card>
      ))}
    </SimpleGrid>
  )
}

function useGates(): Call[] {
  const { data } = useWaiting()
  const waiting = data?.items ?? []
  if (waiting.length === 0) return []
  const text = waiting.map(({ name, gate }) => (gate?.ask ? `${name}: ${gate.ask}` : name)).join(' · ')
  const title = waiting.length === 1 ? 'A gate waits' : `${data?.total ?? waiting.length} gates wait`
  return [{ key: 'gates', title, text: sanitize(text), href: '/gates', grade: 'warning' }]
}

function useDeadLetters(): Call[] {
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

const lately = 3_600_000
const mostFailed = 20

function useFailedJobs(): Call[] {
  const { data } = useQuery({
    queryKey: ['jobs', 'failed'],
    queryFn: () => api.jobs({ state: ['failed', 'expired'], order: 'changed', limit: mostFailed }),
  })
  const failed =
    data?.items.filter(({ endedAt }) => endedAt !== null && Date.now() - Date.parse(endedAt) < lately) ?? []
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

/** Jobs whose tasks are due and nobody does them, and jobs that are long in coming to their end. */
function useStuckJobs(): Call[] {
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
    if (stage !== undefined) return [{ job, why: `nobody works on queue ${stage.queue}` }]
    const isLong = job.state === 'stopping' && Date.now() - Date.parse(job.changedAt) > longMs
    return isLong ? [{ job, why: 'has been stopping for long' }] : []
  })
  const [first] = stuck
  if (first === undefined) return []
  const title = stuck.length === 1 ? 'A job is stuck' : `${stuck.length} jobs are stuck`
  const text = stuck.map(({ job, why }) => `${job.name}: ${why}`).join(' · ')
  return [{ key: 'stuck', title, text: sanitize(text), href: `/jobs/${first.job.id}`, grade: 'warning' }]
}

/** Heard of in the last ten minutes, and silent now with work in hand. */
function useLostWorkers(): Call[] {
  const { data } = useQuery({ ...silentWorkersQuery, refetchInterval: 5000 })
  const lost = (data?.items ?? []).filter(
    ({ seenAt, leases }) => leases > 0 && seenAt !== null && Date.now() - Date.parse(seenAt) > 30_000,
  )
  if (lost.length === 0) return []
  const text = lost.map(({ worker, leases }) => `${worker} (${leases} in hand)`).join(', ')
  return [{ key: 'lost', title: 'Workers fell silent', text: sanitize(text), grade: 'warning' }]
}

const afterTheRestMs = 2000

/** It looks at everything, so it is asked when all else that is shown has been. */
function useDoctor(): Call[] {
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
