import { Group, SegmentedControl, SimpleGrid, Stack } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { useSearchParams } from 'wouter'
import { Attention } from '../parts/attention.tsx'
import { Boundary } from '../parts/boundary.tsx'
import { Heading } from '../parts/heading.tsx'
import { LiveEvents } from '../parts/live-events.tsx'
import { Queues } from '../parts/queues.tsx'
import { TryIt } from '../parts/try-it.tsx'
import { Workers } from '../parts/workers.tsx'
import { api } from '../server.ts'

const Charts = lazy(() => import('../parts/charts.tsx').then(part => ({ default: part.Charts })))

const ranges = { '15 min': 900, '1 h': 3600, '6 h': 21_600, '1 d': 86_400, '3 d': 259_200 } as const

export function Overview() {
  const [params, setParams] = useSearchParams()
  const range = (params.get('range') ?? '1 h') as keyof typeof ranges
  const { data: jobs } = useQuery({ queryKey: ['jobs', 'any'], queryFn: () => api.jobs({ limit: 1 }) })
  const { data: tasks } = useQuery({ queryKey: ['tasks', 'any'], queryFn: () => api.tasks({ limit: 1 }) })
  const isEmpty = jobs?.items.length === 0 && tasks?.items.length === 0
  if (isEmpty) return <TryIt />
  return (
    <Stack>
      <Group justify="space-between">
        <Heading>Overview</Heading>
        <SegmentedControl
          size="xs"
          aria-label="Period"
          data={Object.keys(ranges)}
          value={range in ranges ? range : '1 h'}
          onChange={value => setParams(value === '1 h' ? {} : { range: value })}
        />
      </Group>
      <Attention />
      <Boundary>
        <Suspense>
          <Charts sinceSeconds={ranges[range] ?? 3600} />
        </Suspense>
      </Boundary>
      <SimpleGrid cols={{ base: 1, lg: 2 }}>
        <Queues />
        <Workers />
      </SimpleGrid>
      <LiveEvents />
    </Stack>
  )
}
