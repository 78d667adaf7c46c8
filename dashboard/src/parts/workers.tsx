import { Paper, Table, Text, Title } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import { PageEnd } from './page-end.tsx'
import { workersQuery } from './queries.ts'
import { Ago } from './when.tsx'

export function Workers() {
  const { data: page } = useQuery({ ...workersQuery, refetchInterval: 2000 })
  const data = page?.items ?? []
  return (
    <Paper withBorder p="sm">
      <Title order={2} size="h5" mb="xs">
        Workers
      </Title>
      {data.length === 0 && (
        <Text size="sm" c="dimmed">
          No worker has reported in the last minute. Start one with “npx pawl worker tasks.ts”.
        </Text>
      )}
      {data.length > 0 && (
        <Table.ScrollContainer type="native" tabIndex={0} minWidth={420}>
          <Table>
            <Table.Thead>
              <Table.Tr>
                {['Worker', 'Tasks held', 'Queues', 'Last seen'].map(head => (
                  <Table.Th key={head}>{head}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody className="figures">
              {data.map(({ session, worker, leases, queues, seenAt }) => (
                <Table.Tr key={session ?? worker}>
                  <Table.Td>{sanitize(worker)}</Table.Td>
                  <Table.Td>{leases}</Table.Td>
                  <Table.Td>{sanitize(queues.join(', '))}</Table.Td>
                  <Table.Td>
                    <Ago at={seenAt} />
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </Table.ScrollContainer>
      )}
      <PageEnd page={page} items="workers" />
    </Paper>
  )
}
