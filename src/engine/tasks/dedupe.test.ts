import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { pawl } from '../engine.ts'

test('a second task of the same key is not queued: the answer is the first, and says so', async t => {
  const { engine } = await fresh(t)
  const first = await engine.enqueue('mail', { n: 1 }, { dedupeKey: 'order 7' })
  const second = await engine.enqueue('mail', { n: 2 }, { dedupeKey: 'order 7' })
  assert.equal(first.deduplicated, false)
  assert.deepEqual(second, { id: first.id, state: 'queued', deduplicated: true })
  assert.deepEqual(
    (await engine.tasks()).items.map(({ payload }) => payload),
    [{ n: 1 }],
  )
})

test('a key is a key of its queue', async t => {
  const { engine } = await fresh(t)
  const keys = [
    { queue: 'a', dedupeKey: 'k' },
    { queue: 'b', dedupeKey: 'k' },
    { queue: 'a', dedupeKey: 'l' },
    { queue: 'a:k', dedupeKey: 'l' },
    { queue: 'a', dedupeKey: 'k:l' },
  ]
  const queued = await engine.enqueueMany(keys.map(key => ({ type: 'work', ...key })))
  assert.deepEqual(
    queued.map(({ deduplicated }) => deduplicated),
    keys.map(() => false),
  )
})

test('a task stands for its key while it is held or retried', async t => {
  const run = await fresh(t)
  for (const state of ['assigned', 'running', 'retrying'] as const) {
    const task = await taskIn(run, state, { dedupeKey: state })
    const again = await run.engine.enqueue('work', null, { queue: task.queue, dedupeKey: state })
    assert.deepEqual(again, { id: task.id, state, deduplicated: true })
  }
})

test('a key is free as soon as its task has ended', async t => {
  const run = await fresh(t)
  for (const state of ['succeeded', 'skipped', 'failed', 'cancelled', 'expired', 'dead_lettered'] as const) {
    const task = await taskIn(run, state, { dedupeKey: state })
    const next = await run.engine.enqueue('work', null, { queue: task.queue, dedupeKey: state })
    assert.equal(next.deduplicated, false, state)
    assert.notEqual(next.id, task.id)
  }
})

test('a key goes on standing for its ended task for dedupeSeconds, then it is free', async t => {
  const run = await fresh(t)
  await run.engine.putTaskType('slow', { dedupeSeconds: 10_000 })
  const own = await taskIn(run, 'succeeded', { dedupeKey: 'k', dedupeSeconds: 6_000 })
  const typed = await taskIn(run, 'failed', { type: 'slow', dedupeKey: 'k' })
  const again = async ({ queue }: { queue: string }) =>
    (await run.engine.enqueue('work', null, { queue, dedupeKey: 'k' })).deduplicated
  await run.advance(5_000)
  assert.deepEqual([await again(own), await again(typed)], [true, true])
  await run.advance(2_000)
  assert.deepEqual([await again(own), await again(typed)], [false, true])
  await run.advance(4_000)
  assert.deepEqual([await again(own), await again(typed)], [true, false])
})

test('of two in one call the first is queued and the second is told of it', async t => {
  const { engine } = await fresh(t)
  const key = { type: 'mail', dedupeKey: 'k' }
  const [one, plain, two] = await engine.enqueueMany([{ ...key, payload: 1 }, { type: 'mail' }, { ...key, payload: 2 }])
  assert.deepEqual(two, { id: one!.id, state: 'queued', deduplicated: true })
  assert.deepEqual([one!.deduplicated, plain!.deduplicated], [false, false])
  assert.equal((await engine.task(one!.id)).payload, 1)
  assert.equal((await engine.tasks()).items.length, 2)
})

test('two engines that queue the same keys at once queue each of them once', needsServer(), async t => {
  const { engine, url, schema } = await fresh(t)
  const other = await pawl({ database: url!, schema })
  t.after(() => other.close())
  const keys = Array.from({ length: 50 }, (_, n) => `k${n}`)
  const both = await Promise.all(
    keys.flatMap(dedupeKey => [engine, other].map(one => one.enqueue('mail', null, { dedupeKey }))),
  )
  assert.equal(new Set(both.map(({ id }) => id)).size, 50)
  assert.equal(both.filter(({ deduplicated }) => deduplicated).length, 50)
  assert.equal((await engine.tasks()).items.length, 50)
})

test('two batches with the same keys in opposite order both come through', needsServer(), async t => {
  const { engine, url, schema } = await fresh(t)
  const other = await pawl({ database: url!, schema })
  t.after(() => other.close())
  for (let round = 0; round < 10; round++) {
    const items = Array.from({ length: 50 }, (_, n) => ({ type: 'mail', dedupeKey: `${round}:${n}` }))
    const [one, two] = await Promise.all([engine.enqueueMany(items), other.enqueueMany([...items].reverse())])
    assert.deepEqual(
      one.map(({ id }) => id),
      two.map(({ id }) => id).reverse(),
    )
  }
  assert.equal((await engine.tasks({ limit: 1000 })).items.length, 500)
})
