import assert from 'node:assert/strict'
import { connect as connectSocket } from 'node:net'
import { test } from 'node:test'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'
import { taskIn } from '../harness/task-in.ts'

/** Far less than the 75 s for which a connection is kept. */
const soon = { timeout: 600_000 }

test('a server that closes ends long polls at once, with an empty answer', soon, async t => {
  const run = await served(t)
  const answer = run.client.sync({
    worker: 'w',
    session: crypto.randomUUID(),
    queues: ['a'],
    claim: 1,
    waitSeconds: 60,
  })
  await eventually('the worker waits', async () => (await run.engine.workers()).items.length === 1)
  await run.server.close()
  const { claimed } = await answer
  assert.deepEqual(claimed, [])
})

test('a server that closes finishes what it answers', { ...soon, ...needsServer() }, async t => {
  const run = await served(t)
  const { id, epoch } = await taskIn(run, 'running')
  const { closing, answer } = await run.sql.begin(async tx => {
    await tx`select from pawl.task where id = ${id}::uuid for update`
    const answer = run.client.sync({ worker: 'w', settled: [{ id, epoch, outcome: 'succeeded' }] })
    await eventually('the settle waits for the row', () => isBlocked(run.sql))
    const closing = run.server.close()
    return { closing, answer }
  })
  assert.deepEqual((await answer).refused, [])
  await closing
  assert.equal((await run.engine.task(id)).state, 'succeeded')
  await assert.rejects(run.client.task(id), /SERVER_UNREACHABLE|cannot be reached/)
})

test('a server that closes waits for no idle connection, no stream and no client that dawdles', soon, async t => {
  const run = await served(t)
  await run.client.jobs()
  const stream = await run.request('/v1/events', { headers: { accept: 'text/event-stream' } })
  const { hostname, port } = new URL(run.server.url)
  const dawdler = connectSocket(Number(port), hostname)
  dawdler.on('error', () => {})
  const head =
    'POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n'
  await new Promise<void>(resolve => dawdler.write(`${head}{`, () => resolve()))
  await run.server.close()
  assert.match(await stream.text(), /^retry: /)
})

async function isBlocked(sql: Awaited<ReturnType<typeof served>>['sql']): Promise<boolean> {
  const [row] = await sql<{ blocked: boolean }>`
    select exists (select from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%${sql.schema}%`}) as blocked`
  return row!.blocked
}
