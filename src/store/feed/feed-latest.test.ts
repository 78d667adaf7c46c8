/** The end of the feed, and the events right before it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { openTransaction } from '../../../test/harness/open-transaction.ts'

test('nothing that commits after the end of the feed was asked for is missed behind it', needsServer(), async t => {
  const { engine } = await fresh(t, { connections: 4 })
  await engine.enqueue('before', null)
  await eventually('the feed has come so far', async () => (await engine.events()).items.length === 1)
  const early = await openTransaction(engine.context.sql)
  let later: string
  let end: string
  let inside: string
  try {
    inside = (await engine.enqueue('begun before', null, { tx: early.tx })).id
    // It has committed, but comes after the one that has not, so the end is before both.
    later = (await engine.enqueue('committed before', null)).id
    const page = await engine.events({ latest: 0 })
    assert.deepEqual([page.items, page.more], [[], false])
    end = page.next
  } finally {
    await early.commit()
  }
  const after = (await engine.enqueue('after', null)).id
  const ids = await eventually('all three are there', async () => {
    const { items } = await engine.events({ cursor: end })
    return items.length >= 3 && items.map(({ entityId }) => entityId)
  })
  assert.deepEqual([...ids].sort(), [inside, later, after].sort())
})

test('the latest events are the last of all, by type and job too, in their order', async t => {
  const { engine, sync } = await fresh(t)
  assert.deepEqual((await engine.events({ latest: 5 })).items, [])
  const job = await engine.submit({ name: 'j', stages: [{ name: 's', task: 'a' }] })
  for (const count of [3, 1, 4]) await engine.enqueueMany(Array.from({ length: count }, () => ({ type: 'work' })))
  await sync({ queues: ['work'], claim: 3 })
  const all = await eventually('all is in the feed', async () => {
    const { items } = await engine.events()
    return items.filter(({ type }) => type === 'task.claimed').length === 3 && items
  })
  for (const wanted of [{}, { types: ['task.queued'] }, { jobId: job.id }]) {
    const { items: fitting } = await engine.events(wanted)
    for (let latest = 0; latest <= all.length + 1; latest++) {
      const { items, next } = await engine.events({ ...wanted, latest })
      assert.deepEqual(items, fitting.slice(Math.max(0, fitting.length - latest)), `${latest}`)
      assert.deepEqual((await engine.events({ cursor: next })).items, [], 'the end is behind all')
    }
  }
})

test('the latest of a kind are found over many statements, and looked for in bounded steps', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.enqueue('b', 1)
  await engine.cancel(id)
  const find = async () => (await engine.events({ types: ['task.cancelled'], latest: 1 })).items.map(e => e.entityId)
  for (let n = 0; n < 3; n++) await engine.enqueueMany(Array.from({ length: 2000 }, () => ({ type: 'a' })))
  await eventually('it is found', async () => (await find()).length === 1)
  assert.deepEqual(await find(), [id])
  for (let n = 0; n < 20; n++) await engine.enqueueMany(Array.from({ length: 2000 }, () => ({ type: 'a' })))
  await eventually('it is too far back', async () => (await find()).length === 0)
  const { next } = await engine.events({ latest: 0 })
  for (const ask of [{ latest: 1, cursor: next }, { latest: 1, limit: 1 }, { latest: -1 }, { latest: 1001 }]) {
    await assert.rejects(engine.events(ask), { code: 'OPTION_INVALID' })
  }
})
