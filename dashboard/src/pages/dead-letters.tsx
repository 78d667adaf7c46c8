import { Badge, Button, Card, Group, Stack, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { harmless } from '../../../src/kernel/harmless.ts'
import type { TroubleView } from '../../../src/protocol/timeline.ts'
import { useMe } from '../me.tsx'
import { Fault } from '../parts/fault.tsx'
import { Redrive, RedriveProgress } from '../parts/redrive.tsx'
import { useStill } from '../parts/still.ts'
import { TaskList, type TaskSource } from '../parts/task-list.tsx'
import { Ago } from '../parts/when.tsx'
import { api } from '../server.ts'

/** What was set aside for people, by what is alike. */
export function DeadLetters() {
  const { data, error } = useQuery({
    queryKey: ['troubles', 'dead letters'],
    queryFn: () => api.troubles({ state: 'dead_lettered' }),
    refetchInterval: 3000,
  })
  const [redrive, setRedrive] = useState<string>()
  const groups = (data ?? []).map(group => ({ ...group, id: idOf(group) }))
  const still = useStill(groups)
  // A group that is gone is shown as gone at once, for whoever has just redriven it has the pointer on it.
  const shown = still.items.filter(({ id }) => groups.some(group => group.id === id))
  return (
    <Stack>
      <Title order={1} size="h3">
        Dead letters
      </Title>
      {error && data === undefined && <Fault error={error} />}
      {redrive !== undefined && <RedriveProgress id={redrive} />}
      {data?.length === 0 && <Text c="dimmed">There are none: nothing was set aside.</Text>}
      <Stack {...still.watch}>
        {shown.map(group => (
          <Alike key={group.id} group={group} onRedrive={setRedrive} />
        ))}
      </Stack>
    </Stack>
  )
}

const idOf = ({ reasonCode, type, queue, message }: TroubleView) => JSON.stringify([reasonCode, type, queue, message])

function Alike({ group, onRedrive }: { group: TroubleView; onRedrive(id: string): void }) {
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
              {type} · {reasonCode}
            </Text>
            <Text size="sm">{harmless(message)}</Text>
          </div>
        </Group>
        <Group>
          <Link href={`/tasks/${taskId}`}>the newest</Link>
          <Button size="xs" variant="default" onClick={() => setOpen(!isOpen)}>
            {isOpen ? 'Hide them' : 'Show them'}
          </Button>
          {permissions.includes('operate') && (
            <Button size="xs" onClick={() => setAsks(true)}>
              Redrive …
            </Button>
          )}
        </Group>
      </Group>
      <Text size="xs" c="dimmed" mt={4}>
        queue {queue}, from <Ago at={oldestAt} /> to <Ago at={newestAt} />
      </Text>
      {isOpen && <Letters group={group} />}
      {asks && <Redrive group={group} onClose={() => setAsks(false)} onRedrive={onRedrive} />}
    </Card>
  )
}

/** All of the same type, queue and reason, whatever each says: a message alone cannot be asked for. */
function Letters({ group: { type, queue, reasonCode } }: { group: TroubleView }) {
  const which = { state: 'dead_lettered', type, queue, ...(reasonCode !== null && { reasonCode }) } as const
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
