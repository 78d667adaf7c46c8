import { Button, Checkbox, Group, MultiSelect, Stack, Table, Text, TextInput, Title } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link, useSearchParams } from 'wouter'
import { harmless } from '../../../src/kernel/harmless.ts'
import { type JobState, jobLifecycle } from '../../../src/kernel/job.ts'
import { statesOf } from '../../../src/kernel/lifecycle.ts'
import type { JobView } from '../../../src/protocol/jobs.ts'
import { BulkActions } from '../parts/bulk-actions.tsx'
import { Fault } from '../parts/fault.tsx'
import { Progress } from '../parts/progress.tsx'
import { State } from '../parts/state.tsx'
import { useStill } from '../parts/still.ts'
import { Ago, Took } from '../parts/when.tsx'
import { api } from '../server.ts'

/** What is looked for stands in the address, so that it can be sent to somebody. */
export function Jobs() {
  const [params, setParams] = useSearchParams()
  const states = params.getAll('state') as JobState[]
  const name = params.get('name') ?? ''
  const cursor = params.get('from') ?? undefined
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const { data, error } = useQuery({
    queryKey: ['jobs', states, name, cursor],
    queryFn: () =>
      api.jobs({
        limit: 50,
        ...(states.length > 0 && { state: states }),
        ...(name !== '' && { name }),
        ...(cursor !== undefined && { cursor }),
      }),
    placeholderData: keepPreviousData,
  })
  const still = useStill(data?.items ?? [])
  const put = (key: string, values: readonly string[]) =>
    setParams(old => {
      const next = new URLSearchParams(old)
      next.delete(key)
      next.delete('from')
      for (const value of values) if (value !== '') next.append(key, value)
      return next
    })
  const toggle = (id: string) =>
    setChosen(old => new Set(old.has(id) ? [...old].filter(other => other !== id) : [...old, id]))
  return (
    <Stack>
      <Title order={1} size="h3">
        Jobs
      </Title>
      <Group align="end">
        <TextInput
          label="Name"
          placeholder="all of it"
          defaultValue={name}
          onChange={event => put('name', [event.currentTarget.value])}
          w={220}
        />
        <MultiSelect
          label="State"
          data={statesOf(jobLifecycle)}
          value={states}
          onChange={value => put('state', value)}
          clearable
          w={320}
        />
        <BulkActions jobs={still.items.filter(({ id }) => chosen.has(id))} onDone={() => setChosen(new Set())} />
      </Group>
      {error && data === undefined && <Fault error={error} />}
      {/* Its place is kept, lest the list moves when it comes. */}
      <Group h={30}>
        {still.waiting > 0 && (
          <Button size="xs" variant="light" onClick={still.showNow}>
            {still.waiting} more or fewer: show
          </Button>
        )}
      </Group>
      <Table.ScrollContainer minWidth={680} {...still.watch}>
        <Table highlightOnHover>
          <Table.Thead>
            <Table.Tr>
              <Table.Th w={36} aria-label="Chosen" />
              <Table.Th>Name</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>Progress</Table.Th>
              <Table.Th>Took</Table.Th>
              <Table.Th>Submitted</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {still.items.map(job => (
              <Row key={job.id} job={job} isChosen={chosen.has(job.id)} onChoose={() => toggle(job.id)} />
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {data?.items.length === 0 && <Text c="dimmed">No job is like that.</Text>}
      <Group>
        {cursor !== undefined && (
          <Button size="xs" variant="default" onClick={() => put('from', [])}>
            Newest
          </Button>
        )}
        {data?.next && (
          <Button size="xs" variant="default" onClick={() => put('from', [data.next!])}>
            Older
          </Button>
        )}
      </Group>
    </Stack>
  )
}

function Row({ job, isChosen, onChoose }: { job: JobView; isChosen: boolean; onChoose(): void }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Checkbox size="xs" checked={isChosen} onChange={onChoose} aria-label={`Choose ${job.name}`} />
      </Table.Td>
      <Table.Td>
        <Link href={`/jobs/${job.id}`}>{harmless(job.name)}</Link>
      </Table.Td>
      <Table.Td>
        <State of="job" state={job.state} />
      </Table.Td>
      <Table.Td>
        <Progress of={job.progress} />
      </Table.Td>
      <Table.Td className="figures">
        <Took from={job.createdAt} to={job.endedAt} />
      </Table.Td>
      <Table.Td className="figures">
        <Ago at={job.createdAt} />
      </Table.Td>
    </Table.Tr>
  )
}
