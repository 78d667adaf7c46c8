import { Badge, Button, Card, Group, Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { TroubleView } from '../../../src/protocol/jobs/timeline.ts'
import { useMe } from '../me.tsx'
import { Fault } from '../parts/fault.tsx'
import { Heading } from '../parts/heading.tsx'
import { Redrive, RedriveProgress } from '../parts/redrive.tsx'
import { useStableRows } from '../parts/stable-rows.ts'
import { TaskList, type TaskSource } from '../parts/task-list.tsx'
import { Ago } from '../parts/when.tsx'
import { api } from '../server.ts'
import { useDeadLetterGroups } from '../waiting.ts'

/** The dead-letter queue, grouped by reason and message. */
export function DeadLetters() {
  const { data, error } = useDeadLetterGroups()
  const [redrive, setRedrive] = useState<string>()
  const groups = (data ?? []).map(group => ({ ...group, id: idOf(group) }))
  const rows = useStableRows(groups)
  const there = new Set(groups.map(({ id }) => id))
  return (
    <Stack>
      <Heading>Dead letters</Heading>
      {error && data === undefined && <Fault error={error} />}
      {redrive !== undefined && <RedriveProgress id={redrive} />}
      {data?.length === 0 && <Text c="dimmed">The dead-letter queue is empty.</Text>}
      {rows.pending > 0 && (
        <Button size="xs" variant="light" w="fit-content" onClick={rows.showNow}>
          Show {rows.pending} {rows.pending === 1 ? 'change' : 'changes'}
        </Button>
      )}
      <Stack {...rows.pointerHandlers}>
        {rows.items.map(group => (
          <LetterGroup key={group.id} group={group} isGone={!there.has(group.id)} onRedrive={setRedrive} />
        ))}
      </Stack>
    </Stack>
  )
}

const selectionOf = ({ type, queue, reasonCode, message }: TroubleView) => ({
  type,
  queue,
  message,
  ...(reasonCode !== null && { reasonCode }),
})

const idOf = ({ reasonCode, type, queue, message }: TroubleView) => JSON.stringify([reasonCode, type, queue, message])

interface LetterGroupProps {
  group: TroubleView
  /** A group that is gone keeps its place while the pointer is over the list, so that a click cannot hit another one. */
  isGone: boolean
  onRedrive(id: string): void
}

function LetterGroup({ group, isGone, onRedrive }: LetterGroupProps) {
  const { reasonCode, type, queue, message, count, newestAt, oldestAt, taskId } = group
  const [isOpen, setOpen] = useState(false)
  const [isRedriving, setRedriving] = useState(false)
  const { permissions } = useMe()
  return (
    <Card withBorder>
      <Group justify="space-between">
        <Group>
          <Badge color="red" size="lg">
            {count}
          </Badge>
          <div>
            <Text fw={600}>
              {sanitize(type)} · {reasonCode}
            </Text>
            <Text size="sm">{sanitize(message)}</Text>
          </div>
        </Group>
        <Group>
          <Link href={`/tasks/${taskId}`}>latest task</Link>
          <Button size="xs" variant="default" onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide tasks' : 'Show tasks'}
          </Button>
          {isGone && <Text size="sm">No longer in the queue.</Text>}
          {permissions.includes('operate') && !isGone && (
            <Button size="xs" onClick={() => setRedriving(true)}>
              Redrive …
            </Button>
          )}
        </Group>
      </Group>
      <Text size="xs" c="dimmed" mt={4}>
        queue {sanitize(queue)}, from <Ago at={oldestAt} /> to <Ago at={newestAt} />
      </Text>
      {isOpen && <Letters group={group} />}
      {isRedriving && (
        <Redrive
          selection={selectionOf(group)}
          taskId={taskId}
          type={type}
          onClose={() => setRedriving(false)}
          onRedrive={onRedrive}
        />
      )}
    </Card>
  )
}

function Letters({ group }: { group: TroubleView }) {
  const selection = { state: 'dead_lettered' as const, ...selectionOf(group) }
  const { data } = useQuery({
    queryKey: ['tasks', 'count', selection],
    queryFn: () => api.tasks({ ...selection, limit: 1, total: true }),
  })
  if (data === undefined) return null
  const source: TaskSource = {
    key: ['dead letters', selection],
    total: data.total!,
    read: page => api.tasks({ ...selection, ...page }),
  }
  return <TaskList source={source} height={Math.min(400, 20 + 38 * source.total)} />
}
