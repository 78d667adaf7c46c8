import { Table } from '@mantine/core'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { StageView } from '../../../src/protocol/jobs/jobs.ts'
import { Actions } from './actions.tsx'
import { Progress } from './progress.tsx'
import { State } from './state.tsx'
import { Duration } from './when.tsx'

export function Stages({ stages }: { stages: readonly StageView[] }) {
  return (
    <Table.ScrollContainer type="native" tabIndex={0} minWidth={700}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Stage</Table.Th>
            <Table.Th>State</Table.Th>
            <Table.Th>Tasks</Table.Th>
            <Table.Th>Queue</Table.Th>
            <Table.Th>Took</Table.Th>
            <Table.Th>Actions</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {stages.map(stage => (
            <Table.Tr key={stage.id}>
              <Table.Td>
                <Link href={`/stages/${stage.id}`}>{sanitize(stage.name)}</Link>
                {stage.kind === 'undo' && ' (compensation)'}
              </Table.Td>
              <Table.Td>
                <State of="stage" state={stage.state} />
              </Table.Td>
              <Table.Td>
                <Progress of={stage.progress} />
              </Table.Td>
              <Table.Td>{sanitize(stage.queue)}</Table.Td>
              <Table.Td className="figures">
                <Duration from={stage.state === 'created' ? null : stage.createdAt} to={stage.endedAt} />
              </Table.Td>
              <Table.Td>
                <Actions of="stage" id={stage.id} state={stage.state} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  )
}
