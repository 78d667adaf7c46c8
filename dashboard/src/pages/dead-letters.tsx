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
import { useStill } from '../parts/still.ts'
import { TaskList, type TaskSource } from '../parts/task-list.tsx'
import { Ago } from '../parts/when.tsx'
import { api } from '../server.ts'
import { useDeadLetterGroups } from '../waiting.ts'

/** What was set aside for people, by what is alike. */
export function DeadLetters() {
  const { data, error } = useDeadLetterGroups()
  const [redrive, setRedrive] = useState<string>()
  const groups = (data ?? []).map(group => ({ ...group, id: idOf(group) }))
  const still = useStill(groups)
  const there = new Set(groups.map(({ id }) => id))
  return (
    <Stack>
      <Heading>Dead letters</Heading>
      {error && data === undefined && <Fault error={error} />}
      {redrive !== undefined && <RedriveProgress id={redrive} />}
      {data?.length === 0 && <Text c="dimmed">There are none: nothing was set aside.</Text>}
      {still.waiting > 0 && (
        <Button size="xs" variant="light" w="fit-content" onClick={still.showNow}>
          {still.waiting} more or fewer: show
        </Button>
      )}
      <Stack {...still.watch}>
        {still.items.map(group => (
          <Alike key={group.id} group={group} isGone={!there.has(group.id)} onRedrive={setRedrive} />
        ))}
      </Stack>
    </Stack>
  )
}

const whichOf = ({ type, queue, reasonCode, message }: TroubleView) => ({
  type,
  queue,
  message,
  ...(reasonCode !== null && { reasonCode }),
})

const idOf = ({ reasonCode, type, queue, message }: TroubleView) => JSON.stringify([reasonCode, type, queue, message])

interface AlikeProps {
  group: TroubleView
  /** It keeps its place while the pointer is over the list, lest a click meets another. */
  isGone: boolean
  onRedrive(id: string): void
}

function Alike({ group, isGone, onRedrive }: AlikeProps) {
  const { reasonCode, type, queue, message, count, newestAt, oldestAt, taskId } = group
  const [isOpen, setOpen] = useState(false)
  const [asks, setAsks] = useState(false)
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
          <Link href={`/tasks/${taskId}`}>the newest</Link>
          <Button size="xs" variant="default" onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide them' : 'Show them'}
          </Button>
          {isGone && <Text size="sm">There are none any more.</Text>}
          {permissions.includes('operate') && !isGone && (
            <Button size="xs" onClick={() => setAsks(true)}>
              Redrive …
            </Button>
          )}
        </Group>
      </Group>
      <Text size="xs" c="dimmed" mt={4}>
        queue {sanitize(queue)}, from <Ago at={oldestAt} /> to <Ago at={newestAt} />
      </Text>
      {isOpen && <Letters group={group} />}
      {asks && (
        <Redrive
          which={whichOf(group)}
          taskId={taskId}
          type={type}
          onClose={() => setAsks(false)}
          onRedrive={onRedrive}
        />
      )}
    </Card>
  )
}

function Letters({ group }: { group: TroubleView }) {
  const which = { state: 'dead_lettered' as const, ...whichOf(group) }
  const { data } = useQuery({
    queryKey: ['tasks', 'count', which],
    queryFn: () => api.tasks({ ...which, limit: 1, total: true }),
  })
  if (data === undefined) return null
  const source: TaskSource = {
    key: ['dead letters', which],
    total: data.total!,
    read: page => api.tasks({ ...which, ...page }),
  }
  return <TaskList source={source} height={Math.min(400, 20 + 38 * source.total)} />
}
