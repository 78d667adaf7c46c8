import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import { openEngine } from '../../src/engine/engine.ts'
import { startServer } from '../../src/server/server.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
const wish = () => ({ worker: 'w', session: randomUUID(), syncId: '1', queues: ['a'], claim: 1, waitSeconds: 60 })

test('a worker that waits over HTTP has work at once that came through another server', {
  ...limits,
  ...needsServer(),
}, async t => {
  const run = await served(t)
  const engine = await openEngine({ database: run.url!, schema: run.schema })
  t.after(() => engine.close())
  const other = await startServer(engine, { port: 0 })
  t.after(() => other.close())
  const answer = run.client.sync(wish())
  await eventually('it waits', () => run.engine.context.wake.waiterCount() === 1)
  const { id } = await connect({ server: other.url }).enqueue('a', 1)
  const { claimed } = await answer
  assert.deepEqual(
    claimed.map(task => task.id),
    [id],
  )
})

test('a worker that hangs up while it waits claims nothing more', limits, async t => {
  const run = await served(t)
  const over = new AbortController()
  const asked = run.request('/v1/workers/gone/sync', {
    method: 'POST',
    json: { queues: ['a'], claim: 1, waitSeconds: 60 },
    signal: over.signal,
  })
  await eventually('it waits', () => run.engine.context.wake.waiterCount() === 1)
  over.abort()
  await assert.rejects(asked)
  await eventually('it waits no more', () => run.engine.context.wake.waiterCount() === 0)
  const { id } = await run.engine.enqueue('a', 1)
  const task = await run.engine.task(id)
  assert.deepEqual([task.state, task.owner], ['queued', null])
})

test('a worker that is called off gets what it had won just then', limits, async t => {
  const run = await served(t)
  const over = new AbortController()
  const answer = run.client.sync(wish(), over.signal)
  await eventually('it waits', () => run.engine.context.wake.waiterCount() === 1)
  await run.engine.enqueue('a', 1)
  over.abort()
  const { claimed } = await answer
  assert.equal(claimed.length, 1)
})

test('lists of every kind are read to their end, a page at a time', limits, async t => {
  const run = await served(t)
  const job = await run.engine.submit({ name: 'j', stages: [{ name: 'a', gate: true }] })
  for (let index = 0; index < 4; index++) await run.engine.submit({ name: 'j', stages: [{ name: 'a', gate: true }] })
  const large = await run.engine.submit({ name: 'l', stages: [{ name: 'a', task: 'b', payloads: [1, 2, 3, 4, 5] }] })
  const { id } = await run.engine.enqueue('a', 1)
  await run.engine.enqueueMany(Array.from({ length: 4 }, () => ({ type: 'a' })))
  for (let round = 0; round < 3; round++) {
    await run.engine.cancel(id)
    await run.engine.resume(id)
  }
  for (const path of [
    '/v1/jobs?',
    '/v1/tasks?',
    '/v1/stages?state=pending&',
    `/v1/jobs/${large.id}/tasks?state=queued&`,
    `/v1/stages/${large.stages[0]!.id}/tasks?`,
    `/v1/jobs/${job.id}/events?`,
    `/v1/stages/${job.stages[0]!.id}/events?`,
    `/v1/tasks/${id}/events?`,
  ]) {
    assert.equal(
      (await run.request(path.replace(/[0-9a-f-]{36}/, randomUUID()))).status,
      path.includes('-') ? 404 : 200,
    )
    const whole = (await (await run.request(`${path}limit=1000`)).json()) as { items: { id: string }[]; next: null }
    const seen: string[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page = await run.request(`${path}limit=2${cursor === '' ? '' : `&cursor=${cursor}`}`)
      const { items, next } = (await page.json()) as { items: { id: string }[]; next: string | null }
      assert.ok(items.length <= 2)
      seen.push(...items.map(item => item.id))
      cursor = next
    }
    assert.deepEqual(
      seen,
      whole.items.map(item => item.id),
      path,
    )
    assert.equal((await run.request(`${path}cursor=nobody%20made%20it`)).status, 400, path)
  }
})
