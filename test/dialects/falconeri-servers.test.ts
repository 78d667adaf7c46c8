/** A server remembers the datums that it handed out. Pods may report to another server, and the database decides. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { pawl as openEngine } from '../../src/engine/engine.ts'
import { startServer } from '../../src/server/server.ts'
import { needsServer } from '../harness/databases.ts'
import { falconeriRig, speaking } from '../harness/falconeri.ts'

/** Two servers with a store in common, and a job with one datum. */
async function twoServers(t: TestContext, more: Record<string, unknown> = {}) {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const engine = await openEngine({ database: f.url!, schema: f.schema })
  const server = await startServer(engine, { port: 0, dialects: ['falconeri'] })
  t.after(async () => {
    await server.close()
    await engine.close()
  })
  const other = speaking(`${server.url}/dialects/falconeri`, f.inbox, f.outbox)
  return { f, one: f.pod('pod'), two: other.pod('pod'), jobId: (await f.run(more)).id }
}

test(
  'an error applies to the current attempt, even on a server that remembers an earlier one',
  needsServer(),
  async t => {
    const { f, one, two, jobId } = await twoServers(t, { datum_tries: 2 })
    const { datum } = await one.take(jobId)
    assert.equal((await two.error(datum.id)).status, 200)
    assert.equal((await two.take(jobId)).datum.attempted_run_count, 2)
    assert.equal((await one.error(datum.id)).status, 200)
    assert.equal((await f.engine.task(datum.id)).state, 'failed')
    assert.equal((await f.job(jobId)).status, 'error')
  },
)

test(
  'files count for the attempt that runs now, also at a server that knows an earlier one',
  needsServer(),
  async t => {
    const { f, one, two, jobId } = await twoServers(t, { datum_tries: 2 })
    const { datum } = await one.take(jobId)
    await two.error(datum.id)
    await two.take(jobId)
    const [file] = await one.files(datum.id, [`${f.outbox.uri}x`])
    assert.equal((await two.uploaded(datum.id, [{ id: file!.id, status: 'done' }])).status, 204)
    assert.equal((await one.done(datum.id)).status, 200)
    const { items } = await f.engine.taskArtifacts(datum.id)
    assert.deepEqual(
      items.map(({ name, state, epoch }) => ({ name, state, epoch })),
      [{ name: 'x', state: 'stored', epoch: 2 }],
    )
  },
)

test('a pod that lost its datum is refused by a server that remembers it', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run({ datum_tries: 2 })
  const pod = f.pod('pod')
  const { datum } = await pod.take(id)
  const { epoch } = await f.engine.task(datum.id)
  await f.engine.release(datum.id, epoch)
  const uris = [`${f.outbox.uri}x`]
  assert.equal((await pod.register(datum.id, uris)).status, 403)
  assert.equal((await pod.done(datum.id)).status, 403)
  assert.equal((await f.pod('other').take(id)).datum.id, datum.id)
  assert.deepEqual([(await pod.register(datum.id, uris)).status, (await pod.done(datum.id)).status], [403, 403])
})

test('a pod that reserves from a job that was deleted in the meantime is told so', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const pod = f.pod('pod')
  await pod.done((await pod.take(id)).datum.id)
  assert.equal(await pod.reserve(id), null)
  await f.engine.deleteJob(id)
  const { status } = await f.ask('POST', `/jobs/${id}/reserve_next_datum`, { node_name: 'n', pod_name: 'pod' })
  assert.equal(status, 404)
})
