import { Paper, Table, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import { api } from '../server.ts'
import { PageEnd } from './page-end.tsx'
import { queuesQuery } from './queries.ts'
import { span } from './when.tsx'

export function Queues() {
  const { data } = useQuery({ ...queuesQuery, refetchInterval: 2000 })
  const { data: stats } = useQuery({
    queryKey: ['stats', 900],
    queryFn: () => api.stats({ sinceSeconds: 900 }),
    refetchInterval: 10_000,
  })
  const rates = new Map(stats?.types.map(({ type, endedPerSecond }) => [type, endedPerSecond]))
  const busy = (data?.items ?? []).filter(
    ({ due, scheduled, paused, held, queue }) => due + scheduled + paused + held > 0 || (rates.get(queue) ?? 0) > 0,
  )
  return (
    <Paper withBorder p="sm">
      <Title order={2} size="h5" mb="xs">
        Queues
      </Title>
      {busy.length === 0 && (
        <Text size="sm" c="dimmed">
          All queues are empty.
        </Text>
      )}
      {busy.length > 0 && (
        <Table.ScrollContainer type="native" tabIndex={0} minWidth={420}>
          <Table horizontalSpacing={6}>
            <Table.Thead>
              <Table.Tr>
                {['Queue', 'Ready', 'Running', 'Later', 'Paused', 'Oldest', 'Ended /s'].map(head => (
                  <Table.Th key={head}>{head}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody className="figures">
              {busy.map(({ queue, due, held, scheduled, paused, oldestSeconds }) => (
                <Table.Tr key={queue}>
                  <Table.Td>{sanitize(queue)}</Table.Td>
                  <Table.Td>{due.toLocaleString()}</Table.Td>
                  <Table.Td>{held.toLocaleString()}</Table.Td>
                  <Table.Td>{scheduled.toLocaleString()}</Table.Td>
                  <Table.Td>{paused.toLocaleString()}</Table.Td>
                  <Table.Td>{oldestSeconds === null ? '–' : span(oldestSeconds)}</Table.Td>
                  <Table.Td>{rates.get(queue)?.toFixed(2) ?? '–'}</Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      <PageEnd page={data} items="queues" />
    </Paper>
  )
}
