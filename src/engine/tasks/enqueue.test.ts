import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { expireTasks } from '../../babysitter/chores.ts'

const claimedIds = (answer: { claimed: readonly { id: string }[] }) => answer.claimed.map(({ id }) => id)
const secondsBetween = (from: string, to: string | null) => (Date.parse(to!) - Date.parse(from)) / 1000

test('one call queues ten thousand tasks, and answers in their order', async t => {
  const { engine, sync } = await fresh(t)
  const items = Array.from({ length: 10_000 }, (_, n) => ({ type: n % 3 === 0 ? 'a' : 'b', payload: { n } }))
  const queued = await engine.enqueueMany(items)
  assert.equal(new Set(queued.map(({ id }) => id)).size, 10_000)
  for (const n of [0, 1, 2, 4_999, 9_999]) {
    const task = await engine.task(queued[n]!.id)
    assert.deepEqual([task.payload, task.type, task.queue], [{ n }, items[n]!.type, items[n]!.type])
  }
  const depths = (await engine.queues()).items
  assert.deepEqual(
    depths.map(({ queue, due }) => [queue, due]),
    [
      ['a', 3_334],
      ['b', 6_666],
    ],
  )
  const first = await sync({ queues: ['a'], claim: 3 })
  assert.deepEqual(claimedIds(first), [queued[0]!.id, queued[3]!.id, queued[6]!.id])
})

test('no tasks are queued by an empty call', async t => {
  const { engine } = await fresh(t)
  assert.deepEqual(await engine.enqueueMany([]), [])
  assert.deepEqual((await engine.tasks()).items, [])
})

test('a task is claimed when its time has come and not before', async t => {
  const { engine, sync, advance } = await fresh(t)
  const [now] = await engine.enqueueMany([{ type: 'a' }])
  const { runAt } = await engine.task(now!.id)
  const inAnHour = new Date(Date.parse(runAt) + 3_600_000)
  const later = await engine.enqueue('a', null, { runAt: inAnHour })
  const sooner = await engine.enqueue('a', null, { runInSeconds: 1000 })
  const textual = await engine.enqueue('a', null, { runAt: new Date(inAnHour.getTime() + 1000).toISOString() })
  const ask = { queues: ['a'], claim: 10 }
  assert.deepEqual(claimedIds(await sync(ask)), [now!.id])
  await advance(500)
  assert.deepEqual(claimedIds(await sync(ask)), [])
  await advance(600)
  assert.deepEqual(claimedIds(await sync(ask)), [sooner.id])
  await advance(2_600)
  assert.deepEqual(claimedIds(await sync(ask)), [later.id, textual.id])
})

test('a time that has passed means now', async t => {
  const { engine, sync } = await fresh(t)
  const first = await engine.enqueue('a', null)
  const second = await engine.enqueue('a', null, { runAt: '2001-01-01T00:00:00Z' })
  assert.deepEqual(claimedIds(await sync({ queues: ['a'], claim: 2 })), [first.id, second.id])
})

test('higher priorities come first, and within one the oldest', async t => {
  const { engine, sync } = await fresh(t)
  const priorities = [0, -5, 10, 0, 10]
  const ids: string[] = []
  for (const priority of priorities) ids.push((await engine.enqueue('a', null, { priority })).id)
  const order: string[] = []
  for (const _ of ids) order.push(...claimedIds(await sync({ queues: ['a'], claim: 1 })))
  assert.deepEqual(
    order.map(id => ids.indexOf(id)),
    [2, 4, 0, 3, 1],
  )
})

test('a claim of several answers in the order of priority', async t => {
  const { engine, sync } = await fresh(t)
  const ids: string[] = []
  for (const priority of [0, -5, 10, 0, 10]) ids.push((await engine.enqueue('a', null, { priority })).id)
  const order = claimedIds(await sync({ queues: ['a'], claim: 10 }))
  assert.deepEqual(
    order.map(id => ids.indexOf(id)),
    [2, 4, 0, 3, 1],
  )
})

test('what a task is queued with can be read back', async t => {
  const { engine, sync } = await fresh(t)
  const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
  const options = {
    queue: 'mail',
    priority: 7,
    expireInSeconds: 3_600,
    keepUntil: '2042-01-01T00:00:00.000Z',
    dedupeKey: 'order 7',
    correlationId: 'order-7',
    traceparent: `00-${traceId}-00f067aa0ba902b7-01`,
    metadata: { team: 'mail' },
  }
  const payload = { z: 1, a: [1.5, 'ä😀', null, true], nested: { '': 0 } }
  const { id } = await engine.enqueue('send', payload, options)
  const task = await engine.task(id)
  const { queue, priority, keepUntil, dedupeKey, correlationId, traceparent, metadata } = task
  const { expireInSeconds: _, ...kept } = options
  assert.deepEqual({ queue, priority, keepUntil, dedupeKey, correlationId, traceparent, metadata }, kept)
  assert.deepEqual(Object.entries(task.payload as object), Object.entries(payload))
  assert.equal(secondsBetween(task.createdAt, task.expireAt), 3_600)
  const { claimed } = await sync({ queues: ['mail'], claim: 1 })
  assert.deepEqual([claimed[0]!.correlationId, claimed[0]!.traceparent], ['order-7', options.traceparent])
  const [event] = (await engine.taskEvents(id)).items
  assert.deepEqual([event!.correlationId, event!.traceId, event!.actor], ['order-7', traceId, 'producer'])
})

test("a task's own settings win over its type's, and those over the defaults", async t => {
  const { engine, sync } = await fresh(t)
  await engine.putTaskType('typed', {
    leaseSeconds: 40,
    heartbeatSeconds: null,
    timeoutSeconds: 9,
    expireInSeconds: 500,
  })
  const own = { heartbeatSeconds: 7, expireInSeconds: null, timeoutSeconds: null }
  const ids = [
    (await engine.enqueue('plain', null, { queue: 'q' })).id,
    (await engine.enqueue('typed', null, { queue: 'q' })).id,
    (await engine.enqueue('typed', null, { queue: 'q', ...own })).id,
  ]
  const { claimed } = await sync({ queues: ['q'], claim: 3 })
  const found = await Promise.all(
    ids.map(async id => {
      const { leaseSeconds, heartbeatSeconds, timeoutSeconds } = claimed.find(task => task.id === id)!
      const { createdAt, expireAt } = await engine.task(id)
      const lives = expireAt === null ? null : secondsBetween(createdAt, expireAt)
      return [Math.round(leaseSeconds), heartbeatSeconds, timeoutSeconds, lives]
    }),
  )
  assert.deepEqual(found, [
    [20, 10, null, null],
    [40, null, 9, 500],
    [14, 7, null, null],
  ])
})

test("retries follow the task's own policy, else its type's", async t => {
  const { engine, sync } = await fresh(t)
  await engine.putTaskType('typed', { retry: { attempts: 1 }, deadLetter: 'never' })
  const strict = await engine.enqueue('typed', null, { queue: 'q' })
  const patient = await engine.enqueue('typed', null, { queue: 'q', retry: { attempts: 2 } })
  const { claimed } = await sync({ queues: ['q'], claim: 2 })
  const error = { message: 'no' }
  await sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'failed', error })) })
  assert.equal((await engine.task(strict.id)).state, 'failed')
  assert.equal((await engine.task(patient.id)).state, 'retrying')
})

test('a task that is not done in its time expires', async t => {
  const { engine, advance } = await fresh(t)
  const { id } = await engine.enqueue('a', null, { expireInSeconds: 500 })
  await advance(400)
  assert.equal((await expireTasks.run(engine.context)).expired, 0)
  await advance(200)
  assert.equal((await expireTasks.run(engine.context)).expired, 1)
  assert.equal((await engine.task(id)).state, 'expired')
})

test('the events say who queued a task', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.enqueue('a', null, { actor: 'user:ada' })
  const [event] = (await engine.taskEvents(id)).items
  assert.deepEqual([event!.type, event!.from, event!.to, event!.actor], ['task.queued', null, 'queued', 'user:ada'])
})

test('a queue whose database was emptied under the process is made again', async t => {
  const { engine, sql } = await fresh(t)
  await engine.enqueue('a', null)
  await sql.script(`
    truncate pawl.task, pawl.due, pawl.lane, pawl.change`)
  const { id } = await engine.enqueue('a', null)
  assert.equal((await engine.task(id)).state, 'queued')
})
