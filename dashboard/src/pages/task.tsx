import { Alert, Button, Card, Code, Group, SimpleGrid, Stack, Tabs, Text } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import type { TaskError } from '../../../src/kernel/decide.ts'
import { errorText } from '../../../src/kernel/error-lines.ts'
import { isFinal } from '../../../src/kernel/lifecycle.ts'
import { sanitize, sanitizeLines } from '../../../src/kernel/sanitize.ts'
import { taskLifecycle } from '../../../src/kernel/task.ts'
import type { AttemptView, TaskView } from '../../../src/protocol/tasks/tasks.ts'
import { useMe } from '../me.tsx'
import { Actions } from '../parts/actions.tsx'
import { Events } from '../parts/events.tsx'
import { Fault } from '../parts/fault.tsx'
import { Files } from '../parts/files.tsx'
import { Heading } from '../parts/heading.tsx'
import { Copy, Json } from '../parts/json.tsx'
import { Logs } from '../parts/logs.tsx'
import { Redrive } from '../parts/redrive.tsx'
import { State } from '../parts/state.tsx'
import { Ago, Duration } from '../parts/when.tsx'
import { api } from '../server.ts'

export function Task({ id }: { id: string }) {
  // Task events are not in the live feed, because there may be too many.
  const read = useQuery({ queryKey: ['task', id], queryFn: () => api.task(id), refetchInterval: 1500 })
  const { data: task, error } = read
  // If a refresh fails, the last data stays on screen; the badge at the top says that the connection is lost.
  if (task === undefined) return error ? <Fault error={error} /> : null
  return (
    <Stack>
      <Group justify="space-between">
        <Group>
          <Heading>{task.type}</Heading>
          <State of="task" state={task.state} />
          {task.stageId !== null && <Link href={`/stages/${task.stageId}`}>stage</Link>}
          {task.jobId !== null && <Link href={`/jobs/${task.jobId}`}>job</Link>}
        </Group>
        <Group gap="xs">
          {task.state === 'dead_lettered' && <EditAndRedrive task={task} />}
          <Actions of="task" id={task.id} state={task.state} />
        </Group>
      </Group>
      <Facts task={task} />
      {task.error !== null && <Failure task={task} />}
      <Attempts task={task} />
      <Tabs defaultValue="data" keepMounted={false}>
        <Tabs.List mb="sm">
          {['data', 'logs', 'events', 'files'].map(tab => (
            <Tabs.Tab key={tab} value={tab}>
              {tab}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="data">
          <SimpleGrid cols={{ base: 1, md: 2 }}>
            <Json label="Payload" value={task.payload} />
            <Json label="Output" value={task.output} />
            {task.progress !== null && <Json label="Progress" value={task.progress} />}
            {task.checkpoint !== null && <Json label="Checkpoint" value={task.checkpoint} />}
            {task.deadLetter !== null && <Json label="Dead letter" value={task.deadLetter} />}
          </SimpleGrid>
        </Tabs.Panel>
        <Tabs.Panel value="logs">
          <Logs id={id} hasEnded={isFinal(taskLifecycle, task.state)} />
        </Tabs.Panel>
        <Tabs.Panel value="events">
          <Events of="task" id={id} />
        </Tabs.Panel>
        <Tabs.Panel value="files">
          <Files of="task" id={id} />
        </Tabs.Panel>
      </Tabs>
    </Stack>
  )
}

function EditAndRedrive({ task: { id, type } }: { task: TaskView }) {
  const { permissions } = useMe()
  const [isOpen, setOpen] = useState(false)
  if (!permissions.includes('operate')) return null
  return (
    <>
      <Button size="xs" variant="default" onClick={() => setOpen(true)}>
        Edit and redrive …
      </Button>
      {isOpen && <Redrive selection={{ ids: [id] }} taskId={id} type={type} onClose={() => setOpen(false)} />}
    </>
  )
}

function Facts({ task }: { task: TaskView }) {
  const traceId = task.traceparent?.split('-')[1]
  return (
    <Group gap="xl">
      <Text size="sm" c="dimmed">
        {task.id} <Copy text={task.id} what="the id" />
      </Text>
      <Text size="sm" c="dimmed">
        queue {sanitize(task.queue)}, {task.failures} failures, {task.losses} losses, queued <Ago at={task.createdAt} />
      </Text>
      {traceId !== undefined && (
        <Text size="sm" c="dimmed">
          trace {traceId} <Copy text={traceId} what="the trace id" />
        </Text>
      )}
    </Group>
  )
}

function Failure({ task: { error, state } }: { task: TaskView }) {
  const { message, step } = error!
  return (
    <Alert color={state === 'succeeded' ? 'gray' : 'red'} variant="light" title={sanitize(message)}>
      {step !== undefined && <Text size="sm">in step {sanitize(step)}</Text>}
      {hasMore(error!) && <Json label="Stack" value={errorText(error!)} />}
    </Alert>
  )
}

/** Whether there is more to show than the message. */
const hasMore = ({ stack, cause, errors }: TaskError) =>
  stack !== undefined || cause !== undefined || errors !== undefined

function Attempts({ task: { id, seq } }: { task: TaskView }) {
  // The seq is part of the key, so the attempts are read again after each change of the task.
  const { data = [] } = useQuery({
    queryKey: ['attempts', id, seq],
    queryFn: () => api.attempts(id),
    placeholderData: keepPreviousData,
  })
  if (data.length === 0) return null
  return (
    <SimpleGrid cols={{ base: 1, sm: 2, lg: Math.min(4, Math.max(2, data.length)) }} aria-label="Attempts">
      {data.map(attempt => (
        <Attempt key={attempt.epoch} attempt={attempt} />
      ))}
    </SimpleGrid>
  )
}

function Attempt({
  attempt: { epoch, worker, claimedAt, startedAt, endedAt, outcome, cause, reason, error },
}: {
  attempt: AttemptView
}) {
  return (
    <Card withBorder padding="sm">
      <Group justify="space-between" mb={4}>
        <Text fw={600} size="sm">
          Attempt {epoch}
        </Text>
        {outcome === null ? (
          <State of="task" state={startedAt === null ? 'assigned' : 'running'} />
        ) : (
          <State of="task" state={outcome} />
        )}
      </Group>
      <Text size="sm">by {sanitize(worker)}</Text>
      <Text size="sm" c="dimmed">
        claimed <Ago at={claimedAt} />, ran for <Duration from={startedAt} to={endedAt} />
      </Text>
      {cause !== null && <Text size="sm">{sanitize(cause)}</Text>}
      {reason !== null && <Text size="sm">{sanitize(reason)}</Text>}
      {error !== null && (
        <Text size="sm" lineClamp={4} className="bad">
          {sanitize(error.message)}
        </Text>
      )}
      {error !== null && hasMore(error) && (
        <details>
          <summary>stack</summary>
          <Code block className="code" tabIndex={0} mah={240} style={{ overflow: 'auto' }}>
            {sanitizeLines(errorText(error))}
          </Code>
        </details>
      )}
    </Card>
  )
}
