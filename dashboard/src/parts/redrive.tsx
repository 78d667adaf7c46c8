/** The dialog that redrives dead letters: at a rate, with another payload, after a dry run. Also shows the progress. */
import { Button, Group, Modal, NumberInput, Progress, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { RedriveRequest } from '../../../src/protocol/tasks/dead-letters.ts'
import { faultsIn, type PayloadSchema } from '../../../src/spec/json-schema/evaluate.ts'
import { api } from '../server.ts'
import { usePerform } from './actions.tsx'
import { Json } from './json.tsx'

type Selection = Pick<RedriveRequest, 'ids' | 'type' | 'queue' | 'reasonCode' | 'message'>

interface RedriveProps {
  selection: Selection
  type: string
  /** The task whose payload can be used as a template. */
  taskId: string
  onClose(): void
  onRedrive?(id: string): void
}

export function Redrive({ selection, type, taskId, onClose, onRedrive }: RedriveProps) {
  const [rate, setRate] = useState<number | string>('')
  const [payload, setPayload] = useState('')
  const [dry, setDry] = useState<string>()
  const { perform, isBusy } = usePerform()
  const count = useCount(selection)
  const schema = useSchema(type)
  const faults = faultsOf(payload, schema)
  const request = (): RedriveRequest => ({
    ...selection,
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
      title={`Redrive ${sanitize(type)}`}
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          {selection.ids === undefined
            ? `All ${count?.toLocaleString() ?? ''} dead letters with this type, queue, reason and message start a new round with full retry budgets.`
            : 'The task starts a new round with full retry budgets.'}
        </Text>
        <NumberInput label="Maximum rate per second (empty: all at once)" value={rate} onChange={setRate} min={0.001} />
        <Payload taskId={taskId} value={payload} onChange={edit} onSuggest={suggest} faults={faults} />
        {schema !== undefined && <Json label="Payload schema" value={schema} />}
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
  const load = async () => onSuggest(JSON.stringify((await api.task(taskId)).payload, null, 2))
  return (
    <div>
      <Textarea
        label="New payload for every task (JSON; empty: keep the original)"
        value={value}
        onChange={event => onChange(event.currentTarget.value)}
        autosize
        minRows={2}
        maxRows={16}
        className="code"
        {...(faults.length > 0 && { error: faults.slice(0, 5).join(' · ') })}
      />
      {value === '' && (
        <Button size="compact-xs" variant="subtle" mt={4} onClick={() => void load()}>
          Use the latest payload
        </Button>
      )}
    </div>
  )
}

function useCount({ ids, ...filter }: Selection): number | undefined {
  const { data } = useQuery({
    queryKey: ['tasks', 'count', filter],
    queryFn: () => api.tasks({ state: 'dead_lettered', ...filter, limit: 1, total: true }),
    enabled: ids === undefined,
  })
  return data?.total
}

/** The payload schema that workers have registered for the type, if any. */
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
    return ['Invalid JSON']
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
