import { Badge, Button, Card, Group, Modal, NumberInput, Progress, Stack, Text, Textarea, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import { Link } from 'wouter'
import { harmless } from '../../../src/kernel/harmless.ts'
import type { RedriveRequest } from '../../../src/protocol/tasks.ts'
import type { TroubleView } from '../../../src/protocol/timeline.ts'
import { useMe } from '../me.tsx'
import { usePerform } from '../parts/actions.tsx'
import { Fault } from '../parts/fault.tsx'
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
  return (
    <Stack>
      <Title order={1} size="h3">
        Dead letters
      </Title>
      {error && data === undefined && <Fault error={error} />}
      {redrive !== undefined && <RedriveProgress id={redrive} />}
      {data?.length === 0 && <Text c="dimmed">There are none: nothing was set aside.</Text>}
      {data?.map(group => (
        <Alike
          key={[group.reasonCode, group.type, group.queue, group.message].join(' ')}
          group={group}
          onRedrive={setRedrive}
        />
      ))}
    </Stack>
  )
}

function Alike({ group, onRedrive }: { group: TroubleView; onRedrive(id: string): void }) {
  const { reasonCode, type, queue, message, count, newestAt, oldestAt, taskId } = group
  const [isOpen, setOpen] = useState(false)
  const [asks, setAsks] = useState(false)
  const { permissions } = useMe()
  const source = useMemo(
    (): TaskSource => ({
      key: ['dead letters', reasonCode, type, queue],
      read: page => api.deadLetters({ ...page, queue, type, ...(reasonCode !== null && { reasonCode }) }),
    }),
    [reasonCode, type, queue],
  )
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
      {isOpen && <TaskList source={source} height={Math.min(400, 20 + 38 * count)} />}
      {asks && <Redrive group={group} onClose={() => setAsks(false)} onRedrive={onRedrive} />}
    </Card>
  )
}

function Redrive({ group, onClose, onRedrive }: { group: TroubleView; onClose(): void; onRedrive(id: string): void }) {
  const { type, queue, reasonCode, count } = group
  const [rate, setRate] = useState<number | string>('')
  const [payload, setPayload] = useState('')
  const [dry, setDry] = useState<string>()
  const { perform, isBusy } = usePerform()
  const request = (): RedriveRequest => ({
    type,
    queue,
    ...(reasonCode !== null && { reasonCode }),
    ...(typeof rate === 'number' && { ratePerSecond: rate }),
    ...(payload.trim() !== '' && { payload: JSON.parse(payload) as unknown }),
  })
  return (
    <Modal opened onClose={onClose} title={`Redrive ${type}`} size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text size="sm">
          All dead letters of this type, queue and reason ({count} with this message) get another round with fresh
          budgets.
        </Text>
        <NumberInput
          label="At most so many a second (empty: all at once)"
          value={rate}
          onChange={setRate}
          min={0.001}
        />
        <Textarea
          label="Another payload for each of them (JSON; empty: their own)"
          value={payload}
          onChange={event => setPayload(event.currentTarget.value)}
          autosize
          minRows={2}
          {...(!isJsonOrEmpty(payload) && { error: 'This is not JSON.' })}
        />
        {dry !== undefined && <Text size="sm">{dry}</Text>}
        <Group justify="flex-end">
          <Button
            variant="default"
            disabled={isBusy || !isJsonOrEmpty(payload)}
            onClick={() =>
              perform('Dry run', async () => {
                const { total, refused } = await api.redrive({ ...request(), dryRun: true })
                setDry(`${total} would be redriven, ${refused.length} would be refused.`)
              })
            }
          >
            Dry run
          </Button>
          <Button
            disabled={isBusy || !isJsonOrEmpty(payload)}
            onClick={() =>
              perform('Redrive', async () => {
                const { id } = await api.redrive(request())
                if (id !== null) onRedrive(id)
                onClose()
              })
            }
          >
            Redrive
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}

function RedriveProgress({ id }: { id: string }) {
  const { data } = useQuery({
    queryKey: ['redrive', id],
    queryFn: () => api.redriveProgress(id),
    refetchInterval: ({ state }) => (state.data?.state === 'done' ? false : 500),
  })
  if (data === undefined) return null
  const { total, redriven, refused, state } = data
  const done = total === 0 ? 100 : (100 * (redriven + refused)) / total
  return (
    <Card withBorder>
      <Text size="sm" mb={4} role="status">
        Redrive {state}: {redriven} of {total} brought back{refused > 0 && `, ${refused} refused`}
      </Text>
      <Progress value={done} aria-label="Redrive" />
    </Card>
  )
}

function isJsonOrEmpty(text: string): boolean {
  if (text.trim() === '') return true
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
