import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../test/harness/databases.ts'
import { eventually } from '../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import type { TaskOptions } from '../protocol/tasks/tasks.ts'
import { createLanes } from '../store/flow/task-lanes.ts'
import { ageLanes } from './chores.ts'

/** Advances the clock and runs the babysitter. */
async function pass({ advance, engine }: Fresh, seconds: number) {
  await advance(seconds)
  await ageLanes().run(engine.context)
}

const queue = async ({ engine }: Fresh, options: TaskOptions = {}, type = 'a') =>
  (await engine.enqueue(type, null, { queue: 'q', ...options })).id

const claim = async (f: Fresh) => (await f.sync({ queues: ['q'], claim: 10 })).claimed

const order = async (f: Fresh) => (await claim(f)).map(({ id }) => id)

async function laneOf({ sql }: Fresh, id: string) {
  const [row] = await sql<{ id: number; rank: number; sla: string | null }>`
    select l.id, l.rank, l.sla from pawl.task t join pawl.lane l on l.id = t.lane_id where t.id = ${id}::uuid`
  return row!
}

const rankOf = async (f: Fresh, id: string) => (await laneOf(f, id)).rank

test('a task whose soft deadline has passed is claimed before work of higher priority', async t => {
  const f = await fresh(t)
  const important = await queue(f, { priority: 400 })
  const late = await queue(f, { softDeadlineSeconds: 60 })
  await pass(f, 30)
  assert.equal(await rankOf(f, late), 499, 'near, but not late')
  await pass(f, 31)
  assert.equal(await rankOf(f, late), 500)
  assert.deepEqual(await order(f), [late, important])
})

test('one whose hard deadline has passed is claimed before those that are only late', async t => {
  const f = await fresh(t)
  const important = await queue(f, { priority: 300 })
  const late = await queue(f, { priority: 200, softDeadlineSeconds: 60, hardDeadlineSeconds: 86_400 })
  const tooLate = await queue(f, { priority: -200, softDeadlineSeconds: 7200, hardDeadlineSeconds: 10_000 })
  const onlyHard = await queue(f, { hardDeadlineSeconds: 9000 })
  const calm = await queue(f)
  await pass(f, 10_100)
  assert.deepEqual(await order(f), [onlyHard, tooLate, late, important, calm])
})

test("a type's deadlines hold for its tasks, and a task's own go before them", async t => {
  const f = await fresh(t)
  await f.engine.putTaskType('a', { softDeadlineSeconds: 60 })
  const typed = await queue(f)
  const patient = await queue(f, { softDeadlineSeconds: 7200 })
  const without = await queue(f, { softDeadlineSeconds: null })
  const hurried = await queue(f, { hardDeadlineSeconds: 90 })
  await pass(f, 120)
  const ranks = await Promise.all([typed, patient, without, hurried].map(id => rankOf(f, id)))
  assert.deepEqual(ranks, [501, 458, 2, 1000])
  assert.equal((await laneOf(f, without)).sla, null)
})

test('deadlines count from when a task was queued, for later or to be tried again', async t => {
  const f = await fresh(t)
  const deadline = { softDeadlineSeconds: 100, retry: { delaySeconds: 0 } }
  const tried = await queue(f, deadline)
  await f.advance(90)
  const [held] = await claim(f)
  await f.sync({ settled: [{ id: held!.id, epoch: 1, outcome: 'failed', error: { message: 'once more' } }] })
  await pass(f, 5)
  assert.equal(await rankOf(f, tried), 499)
  await pass(f, 6)
  assert.equal(await rankOf(f, tried), 500)
  assert.deepEqual(await order(f), [tried])

  const later = await queue(f, { ...deadline, runInSeconds: 150 })
  await pass(f, 110)
  assert.equal(await rankOf(f, later), 0, 'what may not run yet moves nothing')
  await pass(f, 50)
  assert.equal(await rankOf(f, later), 501)
})

test('a task that is resumed has its deadlines anew', async t => {
  const f = await fresh(t)
  const id = await queue(f, { softDeadlineSeconds: 100, hardDeadlineSeconds: 200 })
  await f.advance(300)
  await f.engine.cancel(id)
  await f.engine.resume(id)
  await pass(f, 50)
  assert.equal(await rankOf(f, id), 499)
  await pass(f, 60)
  assert.equal(await rankOf(f, id), 500)
})

test('a late task is seen behind others that have more time, and when it is done they wait again', async t => {
  const f = await fresh(t)
  const first = await queue(f, { softDeadlineSeconds: 120 })
  const late = await queue(f, { softDeadlineSeconds: 70 })
  assert.equal((await laneOf(f, first)).id, (await laneOf(f, late)).id)
  await pass(f, 71)
  assert.equal(await rankOf(f, first), 500)
  assert.equal((await claim(f)).length, 2)
  const next = await queue(f, { softDeadlineSeconds: 86_399 })
  await pass(f, 1)
  assert.deepEqual([await rankOf(f, first), await rankOf(f, next)], [0, 1])
})

test('however many different deadlines there are, they need few lanes, and other work none', async t => {
  const f = await fresh(t)
  const items = Array.from({ length: 500 }, (_, n) => {
    const softDeadlineSeconds = 60 + n * 7.3
    return { type: 'a', ...(n % 2 === 0 && { softDeadlineSeconds, hardDeadlineSeconds: softDeadlineSeconds + 1 }) }
  })
  await f.engine.enqueueMany(items)
  const lanes = await f.sql<{ sla: string | null; tasks: number }>`
      select l.sla, count(t.id) as tasks from pawl.lane l left join pawl.task t on t.lane_id = l.id group by l.id`
  assert.ok(lanes.length > 5 && lanes.length <= 16, `${lanes.length} lanes`)
  assert.deepEqual(
    lanes.filter(({ sla }) => sla === null).map(({ tasks }) => tasks),
    [250],
  )
  const { claimed } = await f.sync({ queues: ['a'], claim: 1000 })
  assert.equal(claimed.length, 500)
})

test('a type that gets deadlines while a process queues has them, in a transaction too', async t => {
  const f = await fresh(t)
  const before = await queue(f)
  await f.engine.putTaskType('a', { softDeadlineSeconds: 60 })
  const after = await f.engine.transaction(async tx => {
    const { id } = await f.engine.enqueue('a', null, { queue: 'q', tx })
    await tx`insert into pawl.task_type (type) values ('the transaction goes on')`
    return id
  })
  await pass(f, 90)
  assert.deepEqual(await order(f), [after, before])
})

test('a task with a dedupeKey has its deadlines too', async t => {
  const f = await fresh(t)
  const calm = await queue(f, { priority: 5 })
  const late = await queue(f, { dedupeKey: 'k', softDeadlineSeconds: 1 })
  await pass(f, 10)
  assert.deepEqual(await order(f), [late, calm])
})

test('who queues the first task of a deadline while another does, shares its lane', needsServer(), async t => {
  const f = await fresh(t)
  const kind = { queue: 'q', type: 'a', priority: 0, settings: { softDeadlineSeconds: 60 } }
  const second = await f.sql.begin(async tx => {
    await createLanes(tx, [kind])
    const made = createLanes(f.sql, [kind])
    await eventually('the second waits for the first', async () => {
      const waiting = await f.sql`
        select from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%"${f.schema}".lane_for%`}`
      return waiting.length > 0
    })
    return { made }
  })
  await second.made
  assert.equal((await f.sql`select from pawl.lane`).length, 1)
})
