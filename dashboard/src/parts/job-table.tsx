/** Jobs in a table that can be sorted, and from which some can be chosen. */
import { Checkbox, Table, UnstyledButton } from '@mantine/core'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { JobOrder, JobView } from '../../../src/protocol/jobs/jobs.ts'
import { Progress } from './progress.tsx'
import { State } from './state.tsx'
import { Ago, Took } from './when.tsx'

type Chosen = ReadonlySet<string>

interface JobTableProps {
  jobs: readonly JobView[]
  order: JobOrder
  onSort(by: JobOrder): void
  chosen: Chosen
  onChoose(change: (old: Chosen) => Chosen): void
}

export function JobTable({ jobs, order, onSort, chosen, onChoose }: JobTableProps) {
  const isAll = jobs.length > 0 && jobs.every(({ id }) => chosen.has(id))
  const toggle = (id: string) =>
    onChoose(old => new Set(old.has(id) ? [...old].filter(other => other !== id) : [...old, id]))
  return (
    <Table.ScrollContainer type="native" tabIndex={0} minWidth={740}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={36}>
              <Checkbox
                size="xs"
                checked={isAll}
                onChange={() => onChoose(() => new Set(isAll ? [] : jobs.map(({ id }) => id)))}
                aria-label="Choose all of this page"
              />
            </Table.Th>
            <Head text="Name" by="name" now={order} onSort={onSort} />
            <Table.Th>State</Table.Th>
            <Table.Th>Progress</Table.Th>
            <Head text="Priority" by="priority" now={order} onSort={onSort} />
            <Head text="Took" by="longest" now={order} onSort={onSort} />
            <Head text="Changed" by="changed" now={order} onSort={onSort} />
            <Head text="Submitted" by={order === 'newest' ? 'oldest' : 'newest'} now={order} onSort={onSort} />
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {jobs.map(job => (
            <Row key={job.id} job={job} isChosen={chosen.has(job.id)} onChoose={() => toggle(job.id)} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

const arrows: Readonly<Partial<Record<JobOrder, string>>> = { name: '▲', oldest: '▲' }
const ordersOf: Readonly<Record<string, readonly JobOrder[]>> = { Submitted: ['newest', 'oldest'] }

/** The head of a column that the list can be sorted by; a second click on one goes back to the newest first. */
function Head(props: { text: string; by: JobOrder; now: JobOrder; onSort(by: JobOrder): void }) {
  const { text, by, now, onSort } = props
  const isSorted = (ordersOf[text] ?? [by]).includes(now)
  const ascends = arrows[now] !== undefined
  return (
    <Table.Th aria-sort={isSorted ? (ascends ? 'ascending' : 'descending') : 'none'}>
      <UnstyledButton fz="sm" fw={700} onClick={() => onSort(by === now ? 'newest' : by)}>
        {text} {isSorted && <span aria-hidden>{arrows[now] ?? '▼'}</span>}
      </UnstyledButton>
    </Table.Th>
  )
}

function Row({ job, isChosen, onChoose }: { job: JobView; isChosen: boolean; onChoose(): void }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Checkbox size="xs" checked={isChosen} onChange={onChoose} aria-label={`Choose ${sanitize(job.name)}`} />
      </Table.Td>
      <Table.Td>
        <Link href={`/jobs/${job.id}`}>{sanitize(job.name)}</Link>
      </Table.Td>
      <Table.Td>
        <State of="job" state={job.state} />
      </Table.Td>
      <Table.Td>
        <Progress of={job.progress} />
      </Table.Td>
      <Table.Td className="figures">{job.priority}</Table.Td>
      <Table.Td className="figures">
        <Took from={job.createdAt} to={job.endedAt} />
      </Table.Td>
      <Table.Td className="figures">
        <Ago at={job.changedAt} />
      </Table.Td>
      <Table.Td className="figures">
        <Ago at={job.createdAt} />
      </Table.Td>
    </Table.Tr>
  )
}
