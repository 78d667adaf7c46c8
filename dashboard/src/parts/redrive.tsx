/** Another round for dead letters: which, how fast, with what payload; tried first, and watched while it goes. */
import { Button, Group, Modal, NumberInput, Progress, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { harmless } from '../../../src/kernel/harmless.ts'
import type { RedriveRequest } from '../../../src/protocol/tasks/dead-letters.ts'
import { faultsIn, type PayloadSchema } from '../../../src/spec/payload-schema.ts'
import { api } from '../server.ts'
import { usePerform } from './actions.tsx'
import { Json } from './json.tsx'

type Which = Pick<RedriveRequest, 'ids' | 'type' | 'queue' | 'reasonCode' | 'message'>

interface RedriveProps {
  which: Which
  type: string
  /** Whose payload another may begin with. */
  taskId: string
  onClose(): void
  onRedrive?(id: string): void
}

export function Redrive({ which, type, taskId, onClose, onRedrive }: RedriveProps) {
  const [rate, setRate] = useState<number | string>('')
  const [payload, setPayload] = useState('')
  const [dry, setDry] = useState<string>()
  const { perform, isBusy } = usePerform()
  const count = useCount(which)
  const schema = useSchema(type)
  const faults = faultsOf(payload, schema)
  const request = (): RedriveRequest => ({
    ...which,
    ...(typeof rate === 'number' && { ratePerSecond: rate }),
    ...(payload.trim() !== '' && { payload: JSON.parse(payload) as unknown }),
  })
  const tryDry = () =>
    perform('Dry run', async () => {
      const { total, redriven, refused } = await api.redrive({ ...request(), dryRun: true })
      const tried = redriven.length + refused.length
      const part = tried < total ? `Of the first ${tried.toLocaleString()} of ${total.toLocaleString()}: ` : ''
      setDry(`${part}${redriven.length} would be redriven, ${refused.length} would be refused.`)
    })
  const redrive = () =>
    perform('Redrive', async () => {
      const { id } = await api.redrive(request())
      if (id !== null) onRedrive?.(id)
      onClose()
    })
  const edit = (text: string) => {
    setPayload(text)
    setDry(undefined)
  }
  // Keep what was typed while the payload was loading.
  const suggest = (text: string) => setPayload(typed => (typed === '' ? text : typed))
  return (
    <Modal
      opened
      onClose={onClose}
      title={`Redrive ${harmless(type)}`}
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          {which.ids === undefined
            ? `All ${count?.toLocaleString() ?? ''} dead letters of this type, queue, reason and message get another round with fresh budgets.`
            : 'It gets another round with fresh budgets.'}
        </Text>
        <NumberInput
          label="At most so many a second (empty: all at once)"
          value={rate}
          onChange={setRate}
          min={0.001}
        />
        <Payload taskId={taskId} value={payload} onChange={edit} onSuggest={suggest} faults={faults} />
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

interface PayloadProps {
  taskId: string
  value: string
  onChange(text: string): void
  onSuggest(text: string): void
  faults: readonly string[]
}

function Payload({ taskId, value, onChange, onSuggest, faults }: PayloadProps) {
  const begin = async () => onSuggest(JSON.stringify((await api.task(taskId)).payload, null, 2))
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

function useCount({ ids, ...which }: Which): number | undefined {
  const { data } = useQuery({
    queryKey: ['tasks', 'count', which],
    queryFn: () => api.tasks({ state: 'dead_lettered', ...which, limit: 1, total: true }),
    enabled: ids === undefined,
  })
  return data?.total
}

/** What its workers have said that they take, if any has. */
function useSchema(type: string): PayloadSchema | undefined {
  const { data } = useQuery({ queryKey: ['task-type', type], queryFn: () => api.taskTypes({ type }) })
  return data?.items[0]?.payloadSchema ?? undefined
}

function faultsOf(text: string, schema: PayloadSchema | undefined): string[] {
  if (text.trim() === '') return []
  let payload: unknown
  try {
    payload = JSON.parse(text)
  } catch {
    return ['This is not JSON.']
  }
  return schema === undefined ? [] : faultsIn(schema, payload)
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
