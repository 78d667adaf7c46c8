import { Alert, Badge, Chip, Group, Stack, Tabs, UnstyledButton } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link, useSearchParams } from 'wouter'
import { isFinal, statesOf } from '../../../src/kernel/lifecycle.ts'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import { stageLifecycle } from '../../../src/kernel/stage.ts'
import { type TaskState, taskLifecycle } from '../../../src/kernel/task.ts'
import type { StageView } from '../../../src/protocol/jobs/jobs.ts'
import { Actions } from '../parts/actions.tsx'
import { Events } from '../parts/events.tsx'
import { Fault } from '../parts/fault.tsx'
import { Files } from '../parts/files.tsx'
import { Heading } from '../parts/heading.tsx'
import { Progress } from '../parts/progress.tsx'
import { State } from '../parts/state.tsx'
import { TaskList, type TaskSource } from '../parts/task-list.tsx'
import { refreshUntilEnded } from '../refresh-until-ended.ts'
import { api } from '../server.ts'

export function Stage({ id }: { id: string }) {
  const { data: stage, error } = useQuery({
    queryKey: ['stage', id],
    queryFn: () => api.stage(id),
    refetchInterval: refreshUntilEnded(stageLifecycle),
  })
  // If a refresh fails, the last data stays on screen; the badge at the top says that the connection is lost.
  if (stage === undefined) return error ? <Fault error={error} /> : null
  return (
    <Stack>
      <Group justify="space-between">
        <Group>
          <Heading>{stage.name}</Heading>
          <State of="stage" state={stage.state} />
          <Link href={`/jobs/${stage.jobId}`}>job</Link>
        </Group>
        <Actions of="stage" id={stage.id} state={stage.state} />
      </Group>
      <Progress of={stage.progress} wide />
      {stage.error !== null && (
        <Alert color="red" variant="light">
          {sanitize(stage.error.message)}
        </Alert>
      )}
      <Tabs defaultValue="tasks" keepMounted={false}>
        <Tabs.List mb="sm">
          <Tabs.Tab value="tasks">tasks</Tabs.Tab>
          <Tabs.Tab value="events">events</Tabs.Tab>
          <Tabs.Tab value="files">files</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="tasks">
          <Tasks stage={stage} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <Events of="stage" id={id} />
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <Files of="stage" id={id} />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  )
}

function Tasks({ stage: { id, progress, state: stageState } }: { stage: StageView }) {
  const [params, setParams] = useSearchParams()
  const state = (params.get('state') ?? '') as TaskState | ''
  const { data: troubles = [] } = useQuery({
    queryKey: ['troubles', id],
    queryFn: () => api.troubles({ stageId: id }),
    enabled: progress.bad > 0,
  })
  const { data: counts } = useQuery({
    queryKey: ['counts', id],
    queryFn: () => api.stageCounts(id),
    refetchInterval: isFinal(stageLifecycle, stageState) ? false : 2000,
  })
  const all = Object.values(counts ?? {}).reduce((sum, count) => sum + count, 0)
  const source: TaskSource = {
    key: [id, state],
    total: state === '' ? all : (counts?.[state] ?? 0),
    read: page => api.stageTasks(id, { ...page, ...(state !== '' && { state }) }),
  }
  const choose = (next: string) => setParams(next === '' ? {} : { state: next })
  return (
    <Stack gap="sm">
      {troubles.map(({ message, count, state, taskId }) => (
        <Group key={`${state} ${taskId}`} gap="sm" wrap="nowrap">
          <Badge color="red" variant="light">
            {count}
          </Badge>
          <UnstyledButton fz="sm" onClick={() => choose(state)}>
            {sanitize(message) || state}
          </UnstyledButton>
          <Link href={`/tasks/${taskId}`}>example</Link>
        </Group>
      ))}
      <Chip.Group value={state} onChange={value => choose(value as string)}>
        <Group gap="xs" role="radiogroup" aria-label="State">
          <Chip value="" size="xs">
            all {all.toLocaleString()}
          </Chip>
          {statesOf(taskLifecycle)
            .filter(each => each === state || (counts?.[each] ?? 0) > 0)
            .map(each => (
              <Chip key={each} value={each} size="xs">
                {each.replaceAll('_', ' ')} {(counts?.[each] ?? 0).toLocaleString()}
              </Chip>
            ))}
        </Group>
      </Chip.Group>
      {counts !== undefined && <TaskList key={state} source={source} />}
    </Stack>
  )
}
