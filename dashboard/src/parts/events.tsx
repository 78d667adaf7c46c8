import { Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import { api } from '../server.ts'
import { Fault } from './fault.tsx'
import { State } from './state.tsx'
import { Ago } from './when.tsx'

const most = 1000

export function Events({ of, id }: { of: 'job' | 'stage' | 'task'; id: string }) {
  const read = { job: api.jobEvents, stage: api.stageEvents, task: api.taskEvents }[of]
  const { data: page, error } = useQuery({
    queryKey: ['events', of, id],
    queryFn: () => read(id, { limit: most }),
    refetchInterval: 2000,
  })
  const events = page?.items ?? []
  if (error && page === undefined) return <Fault error={error} />
  return (
    <Table.ScrollContainer type="native" tabIndex={0} minWidth={560}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>#</Table.Th>
            <Table.Th>Event</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th>By</Table.Th>
            <Table.Th>Cause</Table.Th>
            <Table.Th>When</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {events.map(event => (
            <Table.Tr key={event.id}>
              <Table.Td className="figures">{event.seq}</Table.Td>
              <Table.Td>
                <Text size="sm">{event.type}</Text>
              </Table.Td>
              <Table.Td>
                <State of={of} state={event.to} />
              </Table.Td>
              <Table.Td>{sanitize(event.actor)}</Table.Td>
              <Table.Td>
                <Text size="sm" c="dimmed" lineClamp={2}>
                  {sanitize(event.cause ?? '–')}
                </Text>
              </Table.Td>
              <Table.Td className="figures">
                <Ago at={event.ts} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {page?.next && (
        <Text size="sm" c="dimmed" mt="xs">
          Only the first {events.length.toLocaleString()} are shown. “pawl {of} events” lists all.
        </Text>
      )}
    </Table.ScrollContainer>
  )
}
