/** Output files, and for each one the inputs that it was made from and the files that were made from it. */
import { Anchor, Card, Modal, Stack, Table, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { sanitize } from '../../../src/kernel/sanitize.ts'
import type { Making } from '../../../src/protocol/files/artifacts.ts'
import { api } from '../server.ts'
import { Fault } from './fault.tsx'
import { State } from './state.tsx'

export function Files({ of, id }: { of: 'job' | 'stage' | 'task'; id: string }) {
  const [uri, setUri] = useState<string>()
  const read = { job: api.jobArtifacts, stage: api.stageArtifacts, task: api.taskArtifacts }[of]
  const { data, error } = useQuery({ queryKey: ['files', of, id], queryFn: () => read(id, { limit: 500 }) })
  if (error) return <Fault error={error} />
  if (data?.items.length === 0) return <Text c="dimmed">No output files.</Text>
  return (
    <>
      <Table.ScrollContainer type="native" tabIndex={0} minWidth={600}>
        <Table>
          <Table.Thead>
            <Table.Tr>
              <Table.Th>File</Table.Th>
              <Table.Th>State</Table.Th>
              <Table.Th>Bytes</Table.Th>
              <Table.Th>Task</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {data?.items.map(file => (
              <Table.Tr key={file.id}>
                <Table.Td>
                  <Anchor component="button" type="button" size="sm" onClick={() => setUri(file.uri)}>
                    {sanitize(file.uri)}
                  </Anchor>
                </Table.Td>
                <Table.Td>
                  <State of="artifact" state={file.state} />
                </Table.Td>
                <Table.Td className="figures">{file.size?.toLocaleString() ?? '–'}</Table.Td>
                <Table.Td>
                  <Link href={`/tasks/${file.taskId}`}>{file.taskId.slice(-8)}</Link>
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </Table.ScrollContainer>
      {uri !== undefined && <Lineage uri={uri} onFile={setUri} onClose={() => setUri(undefined)} />}
    </>
  )
}

interface LineageProps {
  uri: string
  onFile(uri: string): void
  onClose(): void
}

function Lineage({ uri, onFile, onClose }: LineageProps) {
  const { data, error } = useQuery({ queryKey: ['lineage', uri], queryFn: () => api.lineage({ uri }) })
  return (
    <Modal opened onClose={onClose} size="lg" title={sanitize(uri)} closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        {error && <Fault error={error} />}
        {data && <Makings title="Made by" makings={data.madeBy} onFile={onFile} />}
        {data && <Makings title="Used by" makings={data.usedBy} onFile={onFile} />}
      </Stack>
    </Modal>
  )
}

/** Tasks that made or used a file, with links to their inputs and outputs. */
function Makings(props: { title: string; makings: readonly Making[]; onFile(uri: string): void }) {
  const { title, makings, onFile } = props
  return (
    <div>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      {makings.length === 0 && (
        <Text size="sm" c="dimmed">
          no known task
        </Text>
      )}
      {makings.map(({ taskId, inputs, outputs }) => (
        <Card key={taskId} withBorder padding="xs" mt={4}>
          <Link href={`/tasks/${taskId}`}>task {taskId.slice(-8)}</Link>
          <Uris label="from" uris={inputs.map(({ uri }) => uri)} onFile={onFile} />
          <Uris label="to" uris={outputs.map(({ uri }) => uri)} onFile={onFile} />
        </Card>
      ))}
    </div>
  )
}

function Uris({ label, uris, onFile }: { label: string; uris: readonly string[]; onFile(uri: string): void }) {
  return uris.map(uri => (
    <Text size="sm" key={uri}>
      {label}{' '}
      <Anchor component="button" type="button" size="sm" onClick={() => onFile(uri)}>
        {sanitize(uri)}
      </Anchor>
    </Text>
  ))
}
