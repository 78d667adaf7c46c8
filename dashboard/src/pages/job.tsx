import { Group, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { Actions } from '../parts/actions.tsx'
import { Fault } from '../parts/fault.tsx'
import { Progress } from '../parts/progress.tsx'
import { State } from '../parts/state.tsx'
import { Ago, Took } from '../parts/when.tsx'
import { api } from '../server.ts'

const Graph = lazy(() => import('../parts/graph.tsx').then(part => ({ default: part.Graph })))

export function Job({ id }: { id: string }) {
  const { data: job, error } = useQuery({ queryKey: ['job', id], queryFn: () => api.job(id) })
  if (error) return <Fault error={error} />
  if (job === undefined) return null
  return (
    <Stack>
      <Group justify="space-between">
        <Group>
          <Title order={1} size="h3">
            {job.name}
          </Title>
          <State of="job" state={job.state} />
        </Group>
        <Actions of="job" id={job.id} state={job.state} />
      </Group>
      <Group gap="xl">
        <Progress of={job.progress} wide />
        <Text size="sm" c="dimmed">
          submitted <Ago at={job.createdAt} />, took <Took from={job.createdAt} to={job.endedAt} />
        </Text>
      </Group>
      <Suspense>
        <Graph job={job} />
      </Suspense>
    </Stack>
  )
}
