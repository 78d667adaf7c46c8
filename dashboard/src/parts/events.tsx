import { Table, Text } from '@mantine/core'
import { harmless } from '../../../src/kernel/harmless.ts'
import type { EventView, Page } from '../../../src/protocol/tasks.ts'
import { type Entity, State } from './state.tsx'
import { Ago } from './when.tsx'

/** What happened, oldest first, and by whom. */
export function Events({ of, page }: { of: Entity; page: Page<EventView> | undefined }) {
  const events = page?.items ?? []
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
              <Table.Td>{harmless(event.actor)}</Table.Td>
              <Table.Td>
                <Text size="sm" c="dimmed" lineClamp={2}>
                  {harmless(event.cause ?? '–')}
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
          The first {events.length.toLocaleString()}; “pawl {of} events” has all of them.
        </Text>
      )}
    </Table.ScrollContainer>
  )
}
