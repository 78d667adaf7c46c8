import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import * as z from 'zod'
import { needsServer } from '../../test/harness/databases.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { taskIn } from '../../test/harness/task-in.ts'
import { defineTask } from '../worker/define-task.ts'

const rollbackError = new Error('the caller thinks better of it')
const failing = async () => {
  throw rollbackError
}

test('what is queued in a transaction is there when it commits, and never was if it does not', async t => {
  const { engine, sync } = await fresh(t)
  const failed = engine.transaction(async tx => {
    await engine.enqueue('a', 1, { tx })
    await engine.enqueueMany([{ type: 'a', payload: 2, dedupeKey: 'k' }], { tx })
    return failing()
  })
  await assert.rejects(failed, rollbackError)
  assert.deepEqual((await engine.tasks()).items, [])
  const kept = await engine.transaction(async tx => {
    await engine.enqueue('a', 3, { tx, dedupeKey: 'k' })
    return engine.enqueue('a', 4, { tx, idempotencyKey: 'i' })
  })
  assert.deepEqual(
    (await engine.tasks()).items.map(({ payload }) => payload),
    [4, 3],
  )
  assert.equal((await engine.enqueue('a', 4, { idempotencyKey: 'i' })).id, kept.id)
  assert.equal((await sync({ queues: ['a'], claim: 5 })).claimed.length, 2)
})

test('a refusal inside a transaction leaves the rest of it whole', async t => {
  const run = await fresh(t)
  const { engine } = run
  const done = await taskIn(run, 'succeeded')
  await engine.transaction(async tx => {
    await engine.enqueue('a', 1, { tx, idempotencyKey: 'i' })
    await assert.rejects(engine.enqueue('a', 2, { tx, idempotencyKey: 'i' }), { code: 'IDEMPOTENCY_MISMATCH' })
    await assert.rejects(engine.retry(done.id, { tx }), { code: 'MOVE_REFUSED' })
    await engine.enqueue('a', 3, { tx })
  })
  const { items } = await engine.tasks({ queue: 'a' })
  assert.deepEqual(
    items.map(({ payload }) => payload),
    [3, 1],
  )
})

test('a transaction with a failed statement never reports a commit', async t => {
  const { engine } = await fresh(t)
  const swallowing = engine.transaction(async tx => {
    await engine.enqueue('a', 1, { tx })
    await assert.rejects(tx`select 1 / 0`)
    return 'done'
  })
  await assert.rejects(swallowing, { code: 'TRANSACTION_FAILED' })
  assert.deepEqual((await engine.tasks()).items, [])
})

test('two open transactions can enqueue the same definition', needsServer(), async t => {
  const { engine } = await fresh(t)
  const mail = defineTask({ type: 'mail', retry: { attempts: 2 }, handler: () => {} })
  await engine.register(mail)
  const same = defineTask({ type: 'mail', retry: { attempts: 2 }, handler: () => {} })
  await engine.transaction(async one => {
    await engine.enqueue(same, null, { tx: one })
    await engine.transaction(async other => void (await engine.enqueue(same, null, { tx: other })))
  })
  assert.equal((await engine.tasks()).items.length, 2)
})

test('a payload is checked in a transaction, too', async t => {
  const { engine } = await fresh(t)
  const mail = defineTask({ type: 'mail', payload: z.object({ to: z.string() }), handler: () => {} })
  const wrong = engine.transaction(tx => engine.enqueue(mail, { to: 7 as unknown as string }, { tx }))
  await assert.rejects(wrong, { code: 'PAYLOAD_REFUSED' })
  await engine.transaction(tx => engine.enqueue(mail, { to: 'ada' }, { tx }))
  assert.equal((await engine.tasks()).items.length, 1)
})

test("operators' calls take part in the caller's transaction", async t => {
  const run = await fresh(t)
  const { engine } = run
  const [queued, cancelled, letter] = [
    await taskIn(run, 'queued'),
    await taskIn(run, 'cancelled'),
    await taskIn(run, 'dead_lettered'),
  ]
  const all = (andThen: () => Promise<void>) =>
    engine.transaction(async tx => {
      assert.equal((await engine.cancel(queued.id, { tx })).state, 'cancelled')
      assert.equal((await engine.resume(cancelled.id, { tx })).state, 'queued')
      assert.deepEqual((await engine.redrive({ ids: [letter.id] }, { tx })).redriven, [letter.id])
      await andThen()
    })
  const states = () => Promise.all([queued, cancelled, letter].map(async ({ id }) => (await engine.task(id)).state))
  await assert.rejects(all(failing), rollbackError)
  assert.deepEqual(await states(), ['queued', 'cancelled', 'dead_lettered'])
  await all(async () => {})
  assert.deepEqual(await states(), ['cancelled', 'queued', 'queued'])
})

test('a client of pg takes tasks into its own transaction', needsServer(), async t => {
  const { engine, url, sql, schema } = await fresh(t)
  await sql.script('create table pawl.orders (id integer primary key)')
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(() => client.end())
  const order = async (id: number, end: 'commit' | 'rollback') => {
    await client.query('begin')
    await client.query(`insert into "${schema}".orders values ($1)`, [id])
    await engine.enqueue('ship', { id }, { tx: client })
    await engine.enqueueMany([{ type: 'bill', payload: { id }, dedupeKey: `${id}` }], {
      tx: client,
      idempotencyKey: `${id}`,
    })
    assert.deepEqual((await engine.tasks({ queue: 'ship' })).items.length, id - 1)
    await client.query(end)
  }
  await order(1, 'rollback')
  assert.deepEqual((await engine.tasks()).items, [])
  assert.deepEqual(await sql`select * from pawl.orders`, [])
  await client.query(`insert into "${schema}".orders values (1)`)
  await engine.enqueue('ship', null)
  await order(2, 'commit')
  assert.deepEqual(
    (await engine.tasks({ queue: 'bill' })).items.map(({ payload }) => payload),
    [{ id: 2 }],
  )
  assert.equal((await sql`select * from pawl.orders`).length, 2)
})

test('a client of pg that queues and fails can go on with its transaction', needsServer(), async t => {
  const run = await fresh(t)
  const done = await taskIn(run, 'succeeded')
  const client = new pg.Client({ connectionString: run.url })
  await client.connect()
  t.after(() => client.end())
  await client.query('begin')
  await assert.rejects(run.engine.cancel(done.id, { tx: client }), { code: 'MOVE_REFUSED' })
  const { id } = await run.engine.enqueue('a', null, { tx: client })
  await run.engine.cancel(id, { tx: client, reason: 'too late' })
  await client.query('commit')
  assert.equal((await run.engine.task(id)).state, 'cancelled')
})

test('as many transactions as there are connections can each queue the first task of a queue', {
  timeout: 600_000,
  ...needsServer(),
}, async t => {
  const { engine } = await fresh(t, { connections: 2 })
  let arrived = 0
  let open = () => {}
  const everybody = new Promise<void>(resolve => {
    open = resolve
  })
  const one = (queue: string) =>
    engine.transaction(async tx => {
      if (++arrived === 2) open()
      await everybody
      return engine.enqueue(queue, null, { tx })
    })
  await Promise.all([one('a'), one('b')])
  assert.equal((await engine.tasks()).items.length, 2)
})

test('a call inside an open transaction of the embedded store without its handle is refused, and does not hang', {
  timeout: 600_000,
}, async t => {
  const run = await fresh(t, { database: 'embedded' })
  const { engine } = run
  const { id } = await taskIn(run, 'queued')
  await engine.transaction(async tx => {
    const refused = { code: 'TRANSACTION_OPEN', status: 409 }
    await assert.rejects(engine.enqueue('a', null), refused)
    await assert.rejects(engine.task(id), refused)
    await assert.rejects(engine.cancel(id), refused)
    await assert.rejects(engine.claims({ worker: 'w', queues: ['a'] }), refused)
    await assert.rejects(engine.submit({ name: 'j', stages: [{ name: 's', task: 'a', payloads: [1] }] }), refused)
    await assert.rejects(engine.sync({ worker: 'w', queues: ['a'], claim: 1 }), refused)
    await assert.rejects(
      engine.transaction(async () => {}),
      refused,
    )
    await engine.enqueue('a', 'with its handle', { tx })
  })
  assert.deepEqual(
    (await engine.tasks({ queue: 'a' })).items.map(({ payload }) => payload),
    ['with its handle'],
  )
})

test('what a transaction of the embedded store sets going may call the engine once it has ended', async t => {
  const { engine } = await fresh(t, { database: 'embedded' })
  let commit = () => {}
  const committed = new Promise<void>(resolve => {
    commit = resolve
  })
  const following = await engine.transaction(async tx => {
    await engine.enqueue('a', 1, { tx })
    return { started: committed.then(() => engine.enqueue('a', 2)) }
  })
  commit()
  await following.started
  assert.equal((await engine.tasks()).items.length, 2)
})
