/** A sortable table of jobs with checkboxes. */
import { Checkbox, Table, UnstyledButton } from '@mantine/core'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { JobOrder, JobView } from '../../../src/protocol/jobs/jobs.ts'
import { Progress } from './progress.tsx'
import { State } from './state.tsx'
import { Ago, Duration } from './when.tsx'

type Selection = ReadonlySet<string>

interface JobTableProps {
  jobs: readonly JobView[]
  order: JobOrder
  onSort(by: JobOrder): void
  selected: Selection
  onSelect(change: (old: Selection) => Selection): void
}

export function JobTable({ jobs, order, onSort, selected, onSelect }: JobTableProps) {
  const isAll = jobs.length > 0 && jobs.every(({ id }) => selected.has(id))
  const toggle = (id: string) =>
    onSelect(old => new Set(old.has(id) ? [...old].filter(other => other !== id) : [...old, id]))
  return (
    <Table.ScrollContainer type="native" tabIndex={0} minWidth={740}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w={36}>
              <Checkbox
                size="xs"
                checked={isAll}
                onChange={() => onSelect(() => new Set(isAll ? [] : jobs.map(({ id }) => id)))}
                aria-label="Select all on this page"
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
            <Row key={job.id} job={job} isSelected={selected.has(job.id)} onSelect={() => toggle(job.id)} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}

const arrows: Readonly<Partial<Record<JobOrder, string>>> = { name: '▲', oldest: '▲' }
const ordersOf: Readonly<Record<string, readonly JobOrder[]>> = { Submitted: ['newest', 'oldest'] }

/** The header of a sortable column. A second click returns to newest first. */
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

function Row({ job, isSelected, onSelect }: { job: JobView; isSelected: boolean; onSelect(): void }) {
  return (
    <Table.Tr>
      <Table.Td>
        <Checkbox size="xs" checked={isSelected} onChange={onSelect} aria-label={`Select ${sanitize(job.name)}`} />
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
        <Duration from={job.createdAt} to={job.endedAt} />
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
