/** A claim with an Idempotency-Key, whose answer may be lost without harm. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { pawl } from '../engine.ts'

const leasesOf = (tasks: readonly { id: string; epoch: number }[]) => tasks.map(({ id, epoch }) => [id, epoch])
const key = { idempotencyKey: 'k' }

test('a claim that is sent again under its key has the same tasks, with what is left of their leases', async t => {
  const run = await fresh(t)
  const { engine } = run
  await engine.enqueueMany(Array.from({ length: 3 }, (_, payload) => ({ type: 'a', payload })))
  const ask = { worker: 'sh', queues: ['a'], claim: 2 }
  const first = await engine.claims(ask, key)
  await run.advance(10)
  const again = await engine.claims(ask, key)
  assert.deepEqual(leasesOf(again), leasesOf(first))
  assert.deepEqual(
    again.map(({ payload }) => payload),
    [0, 1],
  )
  assert.ok(again[0]!.leaseSeconds <= first[0]!.leaseSeconds - 10)
  assert.equal((await engine.queues()).items[0]!.due, 1)
  const next = await engine.claims(ask, { idempotencyKey: 'another' })
  assert.equal(next.length, 1)
})

test('another claim under the same key is refused, and wins nothing', async t => {
  const { engine } = await fresh(t)
  await engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
  await engine.claims({ worker: 'sh', queues: ['a'] }, key)
  const other = engine.claims({ worker: 'sh', queues: ['a'], claim: 2 }, key)
  await assert.rejects(other, { code: 'IDEMPOTENCY_MISMATCH', status: 422 })
  assert.equal((await engine.queues()).items[0]!.due, 1)
  const ofAnother = await engine.claims({ worker: 'sh', queues: ['a'] }, { ...key, holder: 'bea' } as object)
  assert.equal(ofAnother.length, 1, 'two callers may use the same key')
})

test('a claim that won nothing leaves its key free', async t => {
  const { engine } = await fresh(t)
  const ask = { worker: 'sh', queues: ['a'] }
  assert.deepEqual(await engine.claims(ask, key), [])
  const { id } = await engine.enqueue('a', null)
  assert.deepEqual(leasesOf(await engine.claims(ask, key)), [[id, 1]])
})

test('what was settled since is not claimed again, and nobody waits for it', async t => {
  const { engine } = await fresh(t)
  await engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
  const ask = { worker: 'sh', queues: ['a'], waitSeconds: 60 }
  const [task] = await engine.claims(ask, key)
  await engine.succeed(task!.id, task!.epoch)
  assert.deepEqual(await engine.claims(ask, key), [])
})

test('the same claim sent twice at once, to two servers, wins once', needsServer(), async t => {
  const run = await fresh(t)
  const other = await pawl({ database: run.url!, schema: run.schema })
  t.after(() => other.close())
  const ask = { worker: 'sh', queues: ['a'], claim: 1 }
  for (let round = 0; round < 20; round++) {
    await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
    const call = { idempotencyKey: `k${round}` }
    const [one, two] = await Promise.all([run.engine, other].map(engine => engine.claims(ask, call)))
    assert.equal(one!.length, 1)
    assert.deepEqual(leasesOf(one!), leasesOf(two!))
  }
  assert.equal((await run.engine.queues()).items[0]!.due, 20)
})

test('a claim under a key waits for work as any other, and keeps what it then wins', async t => {
  const { engine } = await fresh(t)
  const ask = { worker: 'sh', queues: ['a'], waitSeconds: 60 }
  const waiting = engine.claims(ask, key)
  const { id } = await engine.enqueue('a', null)
  assert.deepEqual(leasesOf(await waiting), [[id, 1]])
  assert.deepEqual(leasesOf(await engine.claims(ask, key)), [[id, 1]])
})
