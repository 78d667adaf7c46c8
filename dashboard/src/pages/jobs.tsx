import { Group, MultiSelect, Table, TextInput, Title } from '@mantine/core'
import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { Link, useSearchParams } from 'wouter'
import { type JobState, jobLifecycle } from '../../../src/kernel/job.ts'
import { statesOf } from '../../../src/kernel/lifecycle.ts'
import { Fault } from '../parts/fault.tsx'
import { Progress } from '../parts/progress.tsx'
import { State } from '../parts/state.tsx'
import { Ago, Took } from '../parts/when.tsx'
import { api } from '../server.ts'

/** What is looked for stands in the address, so that it can be sent to somebody. */
export function Jobs() {
  const [params, setParams] = useSearchParams()
  const states = params.getAll('state') as JobState[]
  const name = params.get('name') ?? ''
  const { data, error } = useQuery({
    queryKey: ['jobs', states, name],
    queryFn: () => api.jobs({ limit: 100, ...(states.length > 0 && { state: states }), ...(name !== '' && { name }) }),
    placeholderData: keepPreviousData,
  })
  const put = (key: string, values: readonly string[]) =>
    setParams(old => {
      const next = new URLSearchParams(old)
      next.delete(key)
      for (const value of values) if (value !== '') next.append(key, value)
      return next
    })
  return (
    <>
      <Title order={1} size="h3" mb="md">
        Jobs
      </Title>
      <Group mb="md" align="end">
        <TextInput
          label="Name"
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
      </Group>
      {error && <Fault error={error} />}
      <Table.ScrollContainer minWidth={640}>
        <Table highlightOnHover>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Name</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>Progress</Table.Th>
              <Table.Th>Took</Table.Th>
              <Table.Th>Submitted</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data?.items.map(job => (
              <Table.Tr key={job.id}>
                <Table.Td>
                  <Link href={`/jobs/${job.id}`}>{job.name}</Link>
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
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
    </>
  )
}
