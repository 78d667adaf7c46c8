/** A client of the async pipeline, written from its document, whose server is killed. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from '../../src/client/client.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { fresh } from '../harness/fresh.ts'
import { type Program, startProgram } from '../harness/program.ts'
import { type PipelineClient, pipelineClient, type StreamEvent } from './pipeline-client.ts'
import { stageNames, stubs } from './pipeline-rig.ts'

const bounded = { timeout: 600_000 }

/** A server in a separate process that can be killed and restarted on the same port. */
async function mortal(t: TestContext) {
  const { url, schema } = await fresh(t)
  const port = await freePort()
  const start = async () => {
    const program = startProgram(t, 'faults/programs/server.js', { database: url!, schema, port }, line => line)
    await program.printed('where it serves', () => true)
    return program
  }
  let program: Program<string> = await start()
  const server = `http://127.0.0.1:${port}`
  return {
    server,
    async kill() {
      program.signal('SIGKILL')
      await program.ended
    },
    async comeBack() {
      program = await start()
    },
  }
}

/** Reconnects whenever it is cut off, until the last event. */
async function followToTheEnd(api: PipelineClient, url: string, events: StreamEvent[]): Promise<void> {
  while (events.at(-1)?.event !== 'job_complete') {
    try {
      for await (const event of api.follow(url, events.at(-1)?.id)) events.push(event)
    } catch {
      // The server is down: like an EventSource, the client reconnects a little later.
    }
    await sleep(50)
  }
}

test('a run is started, followed and asked after while the server is killed twice: it ends as if it had not been', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const { work, run: start } = stubs(t)
  const { server, kill, comeBack } = await mortal(t)
  const api = pipelineClient(server)
  work(connect({ server, patienceSeconds: 120 }))
  const config = { enable_evaluation: true, enable_auto_optimize: true }
  const run = await start(api, config, { classify: 'hold', evaluation: 'hold' })
  const events: StreamEvent[] = []
  const listening = followToTheEnd(api, run.started.stream_url, events)

  await run.held('classify')
  await kill()
  await assert.rejects(api.status(run.started.status_url))
  // The handler ends while the server is down.
  run.letGo('classify')
  await comeBack()

  await run.held('evaluation')
  await kill()
  await comeBack()
  const { body } = await api.status(run.started.status_url)
  assert.deepEqual([body.id, body.status], [run.id, 'running'])
  run.letGo('evaluation')

  await listening
  const job = await run.ended()
  assert.deepEqual([job.status, job.errors], ['completed', []])
  assert.deepEqual([...new Set(run.ran())], [...stageNames])
  assert.deepEqual(
    events.map(({ event, data }) => `${event} ${data.stage ?? data.status}`),
    [...stageNames.flatMap(name => [`stage_start ${name}`, `stage_progress ${name}`]), 'job_complete completed'],
  )
  assert.deepEqual(events.at(-1)?.data.stage_progress, job.stage_progress)
})

test('a run that was started before the server was killed can be called off after', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const { work, run: start } = stubs(t)
  const { server, kill, comeBack } = await mortal(t)
  const api = pipelineClient(server)
  work(connect({ server, patienceSeconds: 120 }))
  const run = await start(api, {}, { ingest: 'hold' })
  await eventually('it runs', async () => (await api.job(run.id)).status === 'running')
  await kill()
  await comeBack()
  assert.equal((await api.cancel(run.id)).body.cancelled, true)
  const job = await run.ended()
  assert.deepEqual([job.status, run.ran()], ['cancelled', ['ingest']])
})
