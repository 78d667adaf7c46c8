import { Alert, Anchor, Group, Paper, Stack, Tabs, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense } from 'react'
import { Link, useSearchParams } from 'wouter'
import { jobLifecycle } from '../../../src/kernel/job.ts'
import { isFinal } from '../../../src/kernel/lifecycle.ts'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { JobView, StageView } from '../../../src/protocol/jobs/jobs.ts'
import { Actions } from '../parts/actions.tsx'
import { Boundary } from '../parts/boundary.tsx'
import { Events } from '../parts/events.tsx'
import { Fault } from '../parts/fault.tsx'
import { Files } from '../parts/files.tsx'
import { Heading } from '../parts/heading.tsx'
import { JobData } from '../parts/job-data.tsx'
import { Copy } from '../parts/json.tsx'
import { Progress } from '../parts/progress.tsx'
import { Stages } from '../parts/stages.tsx'
import { State } from '../parts/state.tsx'
import { Timeline } from '../parts/timeline.tsx'
import { Ago, Duration } from '../parts/when.tsx'
import { whyOf } from '../parts/why.ts'
import { refreshUntilEnded } from '../refresh-until-ended.ts'
import { api } from '../server.ts'

const Graph = lazy(() => import('../parts/graph.tsx').then(part => ({ default: part.Graph })))

export function Job({ id }: { id: string }) {
  const { data: job, error } = useQuery({
    queryKey: ['job', id],
    queryFn: () => api.job(id),
    refetchInterval: refreshUntilEnded(jobLifecycle),
  })
  const [params, setParams] = useSearchParams()
  // If a refresh fails, the last data stays on screen; the badge at the top says that the connection is lost.
  if (job === undefined) return error ? <Fault error={error} /> : null
  return (
    <Stack>
      <Head job={job} />
      <Why job={job} />
      <Boundary>
        <Paper withBorder h={graphHeight(job.stages)} role="group" aria-label="Stages of the job">
          <Suspense>
            <Graph job={job} />
          </Suspense>
        </Paper>
      </Boundary>
      <Tabs
        value={params.get('tab') ?? 'stages'}
        onChange={tab => setParams(tab === null || tab === 'stages' ? {} : { tab })}
        keepMounted={false}
      >
        <Tabs.List mb="sm">
          {Object.keys(tabs).map(tab => (
            <Tabs.Tab key={tab} value={tab}>
              {tab}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {Object.entries(tabs).map(([tab, Content]) => (
          <Tabs.Panel key={tab} value={tab}>
            <Content job={job} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Stack>
  )
}

/**
 * The height is fixed before the graph is loaded, so that nothing below it moves and a click cannot miss its target. It
 * depends on the largest number of stages in one column.
 */
function graphHeight(stages: readonly StageView[]): number {
  const columns = new Map<string, number>()
  const sizes = new Map<number, number>()
  for (const { name, needs } of stages) {
    const column = 1 + needs.reduce((last, need) => Math.max(last, columns.get(need) ?? 0), 0)
    columns.set(name, column)
    sizes.set(column, (sizes.get(column) ?? 0) + 1)
  }
  const most = [...sizes.values()].reduce((one, other) => Math.max(one, other), 1)
  return Math.min(520, 120 + 130 * most)
}

const tabs: Readonly<Record<string, (props: { job: JobView }) => React.ReactNode>> = {
  stages: ({ job }) => <Stages stages={job.stages} />,
  timeline: ({ job }) => <Timeline jobId={job.id} hasEnded={isFinal(jobLifecycle, job.state)} />,
  events: ({ job }) => <Events of="job" id={job.id} />,
  files: ({ job }) => <Files of="job" id={job.id} />,
  data: JobData,
}

function Head({ job }: { job: JobView }) {
  return (
    <>
      <Group justify="space-between">
        <Group>
          <Heading>{job.name}</Heading>
          <State of="job" state={job.state} />
          {job.round > 1 && <Text size="sm">round {job.round}</Text>}
        </Group>
        <Actions of="job" id={job.id} state={job.state} />
      </Group>
      <Group gap="xl">
        <Progress of={job.progress} wide />
        <Text size="sm" c="dimmed">
          submitted <Ago at={job.createdAt} />, took <Duration from={job.createdAt} to={job.endedAt} />, priority{' '}
          {job.priority}
        </Text>
        <Text size="sm" c="dimmed">
          {job.id} <Copy text={job.id} what="the id" />
        </Text>
        {job.clonedFrom !== null && (
          <Anchor component={Link} href={`/jobs/${job.clonedFrom}`} size="sm">
            cloned from another job
          </Anchor>
        )}
      </Group>
    </>
  )
}

function Why({ job }: { job: JobView }) {
  const failed = job.stages.find(({ state }) => state === 'failed')
  const { data: troubles = [] } = useQuery({
    queryKey: ['troubles', failed?.id],
    queryFn: () => api.troubles({ stageId: failed!.id }),
    enabled: failed !== undefined,
  })
  const why = whyOf(job, troubles)
  if (why === undefined) return null
  return (
    <Alert
      color={job.state === 'failed' ? 'red' : job.state === 'partial' ? 'yellow' : 'gray'}
      variant="light"
      aria-label="Reason"
    >
      {sanitize(why)}
    </Alert>
  )
}
