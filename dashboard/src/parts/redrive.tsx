/** Another round for dead letters: which, how fast, with what payload; tried first, and watched while it goes. */
import { Button, Group, Modal, NumberInput, Progress, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { RedriveRequest } from '../../../src/protocol/tasks.ts'
import type { TroubleView } from '../../../src/protocol/timeline.ts'
import { faultsIn, type PayloadSchema } from '../../../src/spec/payload-schema.ts'
import { api } from '../server.ts'
import { usePerform } from './actions.tsx'
import { Json } from './json.tsx'

export function Redrive(props: { group: TroubleView; onClose(): void; onRedrive(id: string): void }) {
  const { group, onClose, onRedrive } = props
  const { type, queue, reasonCode } = group
  const [rate, setRate] = useState<number | string>('')
  const [payload, setPayload] = useState('')
  const [dry, setDry] = useState<string>()
  const { perform, isBusy } = usePerform()
  const schema = useSchema(type)
  const faults = faultsOf(payload, schema)
  const request = (): RedriveRequest => ({
    type,
    queue,
    ...(reasonCode !== null && { reasonCode }),
    ...(typeof rate === 'number' && { ratePerSecond: rate }),
    ...(payload.trim() !== '' && { payload: JSON.parse(payload) as unknown }),
  })
  const tryDry = () =>
    perform('Dry run', async () => {
      const { total, refused } = await api.redrive({ ...request(), dryRun: true })
      setDry(`${total} would be redriven, ${refused.length} would be refused.`)
    })
  const redrive = () =>
    perform('Redrive', async () => {
      const { id } = await api.redrive(request())
      if (id !== null) onRedrive(id)
      onClose()
    })
  return (
    <Modal opened onClose={onClose} title={`Redrive ${type}`} size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text size="sm">All dead letters of this type, queue and reason get another round with fresh budgets.</Text>
        <NumberInput
          label="At most so many a second (empty: all at once)"
          value={rate}
          onChange={setRate}
          min={0.001}
        />
        <Payload taskId={group.taskId} value={payload} onChange={setPayload} faults={faults} />
        {schema !== undefined && <Json label="What its workers take" value={schema} />}
        {dry !== undefined && <Text size="sm">{dry}</Text>}
        <Group justify="flex-end">
          <Button variant="default" disabled={isBusy || faults.length > 0} onClick={tryDry}>
            Dry run
          </Button>
          <Button disabled={isBusy || faults.length > 0} onClick={redrive}>
            Redrive
          </Button>
        </Group>
      </Stack>
    </Modal>
  )
}

function Payload(props: { taskId: string; value: string; onChange(text: string): void; faults: readonly string[] }) {
  const { taskId, value, onChange, faults } = props
  const begin = async () => onChange(JSON.stringify((await api.task(taskId)).payload, null, 2))
  return (
    <div>
      <Textarea
        label="Another payload for each of them (JSON; empty: their own)"
        value={value}
        onChange={event => onChange(event.currentTarget.value)}
        autosize
        minRows={2}
        maxRows={16}
        className="code"
        {...(faults.length > 0 && { error: faults.slice(0, 5).join(' · ') })}
      />
      {value === '' && (
        <Button size="compact-xs" variant="subtle" mt={4} onClick={() => void begin()}>
          Begin with that of the newest
        </Button>
      )}
    </div>
  )
}

/** What its workers have said that they take, if any has. */
function useSchema(type: string): PayloadSchema | undefined {
  const { data } = useQuery({ queryKey: ['task-types'], queryFn: () => api.taskTypes() })
  return data?.find(known => known.type === type)?.payloadSchema ?? undefined
}

function faultsOf(text: string, schema: PayloadSchema | undefined): string[] {
  if (text.trim() === '') return []
  try {
    const payload: unknown = JSON.parse(text)
    return schema === undefined ? [] : faultsIn(schema, payload)
  } catch {
    return ['This is not JSON.']
  }
}

export function RedriveProgress({ id }: { id: string }) {
  const { data } = useQuery({
    queryKey: ['redrive', id],
    queryFn: () => api.redriveProgress(id),
    refetchInterval: query => (query.state.data?.state === 'done' ? false : 1000),
  })
  if (data === undefined) return null
  const { state, total, redriven, refused } = data
  return (
    <Stack gap={4} role="status">
      <Text size="sm">
        Redrive {state}: {redriven} of {total}
        {refused > 0 && `, ${refused} refused`}
      </Text>
      <Progress value={total === 0 ? 100 : (100 * (redriven + refused)) / total} aria-label="Redriven" />
    </Stack>
  )
}
