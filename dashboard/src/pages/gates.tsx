import { Button, Card, Group, JsonInput, Stack, Text, Textarea } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { StageView } from '../../../src/protocol/jobs/jobs.ts'
import { useMe } from '../me.tsx'
import { usePerform } from '../parts/actions.tsx'
import { Fault } from '../parts/fault.tsx'
import { Heading } from '../parts/heading.tsx'
import { useStableRows } from '../parts/stable-rows.ts'
import { Ago, Duration } from '../parts/when.tsx'
import { api } from '../server.ts'
import { mostGates, useWaiting } from '../waiting.ts'

/** The stages that wait for an approval, longest wait first. */
export function Gates() {
  const { data, error } = useWaiting()
  const rows = useStableRows(data?.items ?? [])
  const waits = new Set(data?.items.map(({ id }) => id))
  return (
    <Stack>
      <Heading>Gates</Heading>
      {error && data === undefined && <Fault error={error} />}
      {data?.items.length === 0 && <Text c="dimmed">No gate is waiting for approval.</Text>}
      {data !== undefined && data.total! > mostGates && (
        <Text c="dimmed">
          The {mostGates} gates that have waited longest, of {data.total}.
        </Text>
      )}
      <Stack {...rows.pointerHandlers}>
        {rows.items.map(stage => (
          <Gate key={stage.id} stage={stage} waits={waits.has(stage.id)} />
        ))}
      </Stack>
    </Stack>
  )
}

/** A gate that was answered keeps its place while the pointer is over the list, so that a click cannot hit another one. */
function Gate({ stage, waits }: { stage: StageView; waits: boolean }) {
  const { data: job } = useQuery({
    queryKey: ['job name', stage.jobId],
    queryFn: () => api.job(stage.jobId),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const { data: firstEvents } = useQuery({
    queryKey: ['asked for by', stage.jobId],
    queryFn: () => api.jobEvents(stage.jobId, { limit: 1 }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const { gate, approvals, held } = stage
  return (
    <Card withBorder>
      <Group justify="space-between" mb="xs">
        <Text fw={600}>
          <Link href={`/jobs/${stage.jobId}`}>{sanitize(job?.name ?? '…')}</Link> ·{' '}
          <Link href={`/stages/${stage.id}`}>{sanitize(stage.name)}</Link>
        </Text>
        <Text size="sm" c="dimmed">
          {firstEvents?.items[0] !== undefined && `submitted by ${sanitize(firstEvents.items[0].actor)}, `}waiting for{' '}
          <Duration from={stage.changedAt} to={null} />
          {gate?.until && (
            <>
              , times out <Ago at={gate.until} />
            </>
          )}
        </Text>
      </Group>
      <Text mb="xs">
        {gate?.ask ? sanitize(gate.ask) : held ? 'This stage is held. Approve it to continue.' : 'Continue?'}
      </Text>
      {gate !== null && (
        <Text size="sm" c="dimmed" mb="sm">
          {approvals.length} of {gate.approvers} approved
          {approvals.length > 0 && `: ${approvals.map(({ by }) => sanitize(by)).join(', ')}`}
        </Text>
      )}
      {waits ? <Answer stage={stage} /> : <Text size="sm">Already answered.</Text>}
    </Card>
  )
}

function Answer({ stage: { id } }: { stage: StageView }) {
  const { permissions } = useMe()
  const { perform, isBusy } = usePerform()
  const [comment, setComment] = useState('')
  const [data, setData] = useState('')
  if (!permissions.includes('operate')) return <Text size="sm">Your key does not allow you to approve.</Text>
  const answer = () => ({
    ...(comment !== '' && { comment }),
    ...(data !== '' && { data: JSON.parse(data) as unknown }),
  })
  const isBad = data !== '' && !isJson(data)
  return (
    <Stack gap="xs">
      <Textarea label="Comment" value={comment} onChange={event => setComment(event.currentTarget.value)} autosize />
      <JsonInput
        label="Data for later stages (JSON, optional)"
        value={data}
        onChange={setData}
        autosize
        validationError="Invalid JSON"
      />
      <Group>
        <Button disabled={isBusy || isBad} onClick={() => perform('Approve', () => api.approve(id, answer()))}>
          Approve
        </Button>
        <Button
          color="red"
          variant="light"
          disabled={isBusy}
          onClick={() => perform('Reject', () => api.reject(id, comment === '' ? {} : { comment }))}
        >
          Reject
        </Button>
      </Group>
    </Stack>
  )
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
