import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../test/harness/databases.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { taskIn } from '../../test/harness/task-in.ts'
import { openEngine } from './engine.ts'

test('a request repeated with its Idempotency-Key has the first answer and no second effect', async t => {
  const { engine } = await fresh(t)
  const items = [
    { type: 'mail', payload: { n: 1 } },
    { type: 'mail', runAt: new Date(1e12) },
  ]
  const first = await engine.enqueueMany(items, { idempotencyKey: 'k' })
  const second = await engine.enqueueMany(items, { idempotencyKey: 'k' })
  assert.deepEqual(second, first)
  assert.equal((await engine.tasks()).items.length, 2)
})

test('another request under the same Idempotency-Key is refused', async t => {
  const { engine } = await fresh(t)
  await engine.enqueue('mail', { n: 1 }, { idempotencyKey: 'k' })
  const other = engine.enqueue('mail', { n: 2 }, { idempotencyKey: 'k' })
  await assert.rejects(other, { code: 'IDEMPOTENCY_MISMATCH', status: 422 })
  assert.equal((await engine.tasks()).items.length, 1)
})

test('two callers may use the same Idempotency-Key', async t => {
  const { engine } = await fresh(t)
  const ada = await engine.enqueue('mail', 1, { idempotencyKey: 'k', holder: 'ada' })
  const bob = await engine.enqueue('mail', 2, { idempotencyKey: 'k', holder: 'bob' })
  assert.notEqual(ada.id, bob.id)
})

test('an Idempotency-Key is free again after 24 hours', async t => {
  const { engine, advance } = await fresh(t)
  const first = await engine.enqueue('mail', 1, { idempotencyKey: 'k' })
  await advance(80_000)
  assert.equal((await engine.enqueue('mail', 1, { idempotencyKey: 'k' })).id, first.id)
  await advance(10_000)
  assert.notEqual((await engine.enqueue('mail', 2, { idempotencyKey: 'k' })).id, first.id)
  assert.equal((await engine.tasks()).items.length, 2)
})

test('a request that failed leaves its Idempotency-Key free', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'succeeded')
  await assert.rejects(run.engine.retry(id, { idempotencyKey: 'k' }), { code: 'MOVE_REFUSED' })
  const queued = await run.engine.enqueue('mail', null, { idempotencyKey: 'k' })
  assert.equal(queued.state, 'queued')
})

test("an operator's request is done once per Idempotency-Key, whatever the task is by now", async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id, queue } = await taskIn(run, 'cancelled')
  const first = await engine.resume(id, { idempotencyKey: 'k' })
  await run.sync({ queues: [queue], claim: 1 })
  assert.deepEqual(await engine.resume(id, { idempotencyKey: 'k' }), first)
  assert.equal((await engine.task(id)).round, 2)
  assert.equal((await engine.task(id)).state, 'assigned')
  await assert.rejects(engine.cancel(id, { idempotencyKey: 'k' }), { code: 'IDEMPOTENCY_MISMATCH' })
})

test('a redrive is done once per Idempotency-Key', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'dead_lettered')
  const first = await run.engine.redrive({ ids: [id] }, { idempotencyKey: 'k' })
  const second = await run.engine.redrive({ ids: [id] }, { idempotencyKey: 'k' })
  assert.deepEqual(first, { id: first.id, dryRun: false, state: 'done', total: 1, redriven: [id], refused: [] })
  assert.deepEqual(second, first)
  assert.equal((await run.engine.task(id)).round, 2)
})

test(
  'of two requests at once under one Idempotency-Key one is done, and both have its answer',
  needsServer(),
  async t => {
    const { engine, url, schema } = await fresh(t)
    const other = await openEngine({ database: url!, schema })
    t.after(() => other.close())
    for (let round = 0; round < 20; round++) {
      const call = { idempotencyKey: `k${round}` }
      const [one, two] = await Promise.all([engine, other].map(each => each.enqueue('mail', null, call)))
      assert.deepEqual(one, two)
    }
    assert.equal((await engine.tasks()).items.length, 20)
  },
)
