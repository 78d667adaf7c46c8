/** `pawl up` as a process, in front of a Kubernetes API: it starts workers there once it is told to, however it is told. */
import { type TestContext, test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { cli } from '../harness/cli.ts'
import { eventually } from '../harness/eventually.ts'
import { kubeconfigFor } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

const bounded = { timeout: 300_000 }

async function startsJobs(t: TestContext, args: readonly string[], env: Record<string, string>): Promise<void> {
  const cluster = await startSmallApiServer(t, ['pawl'])
  const pawl = await cli(t, { KUBECONFIG: kubeconfigFor(t, cluster.url), ...env })
  const program = pawl.start(['up', '--port', '0', '--json', ...args])
  const line = await program.said('where it serves', said => said.includes('"url"'), 180)
  await using client = connect({ server: (JSON.parse(line) as { url: string }).url })
  const stage = { name: 's', run: { command: ['true'] }, runner: { kubernetes: { image: 'debian:12' } } }
  const job = await client.submit({ name: 'texts', stages: [stage] })
  const wanted = jobNameOf({ stageId: job.stages[0]!.id, round: 1 })
  await eventually('the stage has its Kubernetes Job', () => cluster.cluster.find('jobs', 'pawl', wanted))
  program.signal('SIGTERM')
  await program.ended
}

test('pawl up --kubernetes starts the workers of stages as Kubernetes Jobs', bounded, t =>
  startsJobs(t, ['--kubernetes'], {}),
)

test('PAWL_KUBERNETES=true does what --kubernetes does', bounded, t => startsJobs(t, [], { PAWL_KUBERNETES: 'true' }))
