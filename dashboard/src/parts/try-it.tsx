/** The page of an empty system: explains Pawl and offers a sample job. */
import { Button, Code, Group, List, Paper, Stack, Text, Title } from '@mantine/core'
import { useLocation } from 'wouter'
import { useMe } from '../me.tsx'
import { api, base } from '../server.ts'
import { usePerform } from './actions.tsx'
import { Copy } from './json.tsx'

const sample = {
  name: 'sample',
  stages: [
    { name: 'extract', task: 'sample', payloads: [{ page: 1 }, { page: 2 }, { page: 3 }] },
    { name: 'review', gate: { approvers: 1, ask: 'Ready to publish?' } },
    { name: 'publish', task: 'sample', payload: { to: 'everyone' } },
  ],
} as const

const worker = `import { defineTask } from 'pawl'

export const sample = defineTask({
  type: 'sample',
  handler: async (payload: unknown, ctx) => {
    ctx.log.info('working on it', { payload })
    return { done: payload }
  },
})`

export function TryIt() {
  const { permissions } = useMe()
  const { perform, isBusy } = usePerform()
  const [, go] = useLocation()
  const start = `npx pawl worker tasks.ts --server ${base}`
  return (
    <Stack maw={760}>
      <Title order={1} size="h3">
        Nothing has been queued yet
      </Title>
      <Text>Pawl runs jobs made of stages made of tasks. Try it in three steps.</Text>
      <Paper withBorder p="md">
        <List type="ordered" spacing="md">
          <List.Item>
            Submit a sample job: three tasks, a gate that waits for your approval, and one more task.
            <Group mt="xs">
              <Button
                disabled={isBusy || !permissions.includes('produce')}
                onClick={() =>
                  perform('Submit the sample', async () => {
                    const { id } = await api.submit(structuredClone(sample) as never)
                    go(`/jobs/${id}`)
                  })
                }
              >
                Start the sample job
              </Button>
            </Group>
          </List.Item>
          <List.Item>
            Write a handler and save it as <Code>tasks.ts</Code> <Copy text={worker} what="tasks.ts" />
            <Code block mt="xs" tabIndex={0}>
              {worker}
            </Code>
          </List.Item>
          <List.Item>
            Start a worker in another terminal <Copy text={start} what="the command" />
            <Code block mt="xs" tabIndex={0}>
              {start}
            </Code>
          </List.Item>
        </List>
      </Paper>
    </Stack>
  )
}
