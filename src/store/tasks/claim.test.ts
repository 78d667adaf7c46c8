import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { laneWith } from '../../../test/harness/lane-with.ts'
import { startWaiting } from '../../../test/harness/waiting.ts'
import { rescue } from '../../babysitter/rescue.ts'
import { openEngine } from '../../engine/engine.ts'
import { sync } from '../../engine/tasks/sync.ts'
import type { HeldTask, SettledTask } from '../../protocol/tasks/sync.ts'
import { findLimitedQueues } from '../flow/lanes.ts'
import { claimTasks } from './claim.ts'
import { nextDueSeconds } from './due.ts'
import { deleteTasks } from './task-chores.ts'

const idsOf = (tasks: readonly { id: string }[]) => tasks.map(({ id }) => id)
const limits = { timeout: 600_000 }

const settle = ({ sync }: Fresh, held: readonly HeldTask[], outcome: SettledTask['outcome'] = 'succeeded') =>
  sync({ settled: held.map(({ id, epoch }) => ({ id, epoch, outcome })) })

const slotsOf = async ({ sql }: Fresh, laneId: number) => {
  const [row] = await sql<{ slots: number }>`select cardinality(slots) as slots from pawl.lane where id = ${laneId}`
  return row!.slots
}

/** Gives each task of a lane a row of `due` of its own. */
const spreadOut = async ({ sql }: Fresh, laneId: number) => {
  await sql`delete from pawl.due where lane_id = ${laneId}`
  await sql`
    insert into pawl.due (lane_id, run_at, id, ids, type)
    select lane_id, run_at, id, array[id], type from pawl.task where lane_id = ${laneId}`
}

test('what has the higher priority is handed out first, among any number of lanes and queues', async t => {
  const run = await fresh(t)
  const queues = ['a', 'b', 'c', 'd', 'e']
  const priorities = [-1000, 0, 1000].flatMap(band => Array.from({ length: 80 }, (_, n) => band + n))
  const items = queues.flatMap(queue => priorities.map(priority => ({ type: 'w', queue, priority, payload: priority })))
  await run.engine.enqueueMany(items)
  const served: number[] = []
  for (let claims = 0; claims < 12; claims++) {
    const { claimed } = await run.sync({ queues: [...queues, 'a'], claim: 100 })
    assert.equal(claimed.length, 100)
    served.push(...claimed.map(({ payload }) => payload as number))
  }
  assert.deepEqual(
    served,
    items.map(({ priority }) => priority).sort((a, b) => b - a),
  )
  assert.deepEqual((await run.sync({ queues, claim: 100 })).claimed, [])
})

test('a closed lane gives nothing until it is opened again', async t => {
  const run = await fresh(t)
  const closed = await laneWith(run, 3, { queue: 'a', priority: 10, open: false })
  const open = await laneWith(run, 2, { queue: 'a' })
  assert.deepEqual(idsOf((await run.sync({ queues: ['a'], claim: 10 })).claimed), open.ids)
  assert.equal(await nextDueSeconds(run.sql, ['a']), null)
  await run.sql`update pawl.lane set open = true where id = ${closed.laneId}`
  assert.deepEqual(idsOf((await run.sync({ queues: ['a'], claim: 10 })).claimed), closed.ids)
})

test('of a limited lane no more is held at once than it may, and the rest goes to other lanes', async t => {
  const run = await fresh(t)
  const limited = await laneWith(run, 7, { queue: 'a', priority: 10, parallelism: 3 })
  const other = await laneWith(run, 4, { queue: 'a' })
  const ask = { queues: ['a'], claim: 5 }
  const first = (await run.sync(ask)).claimed
  assert.deepEqual(idsOf(first), [...limited.ids.slice(0, 3), ...other.ids.slice(0, 2)])
  assert.deepEqual(idsOf((await run.sync(ask)).claimed), other.ids.slice(2))
  assert.deepEqual((await run.sync(ask)).claimed, [])
  await settle(run, first.slice(0, 2))
  assert.deepEqual(idsOf((await run.sync(ask)).claimed), limited.ids.slice(3, 5))
  assert.equal(await slotsOf(run, limited.laneId), 3)
})

test('full lanes keep nobody from what lies behind them, however many they are', async t => {
  const run = await fresh(t)
  const first = await laneWith(run, 2, { queue: 'a', priority: 2, parallelism: 1 })
  const [held] = (await run.sync({ queues: ['a'], claim: 1 })).claimed
  await run.sql`
      with made as (
        insert into pawl.lane (queue, stage_id, priority, rank, parallelism, slots, slot_epochs)
        select 'a', gen_random_uuid(), 1, 1, 1, array[${held!.id}::uuid], array[1] from generate_series(1, 300)
        returning id
      )
      insert into pawl.due (lane_id, run_at, id, ids, type)
      select id, pawl.clock(), gen_random_uuid(), array[gen_random_uuid()], 'a' from made`
  const last = await laneWith(run, 1, { queue: 'a' })
  assert.deepEqual(idsOf((await run.sync({ queues: ['a'], claim: 1 })).claimed), last.ids)
  await settle(run, [held!])
  assert.deepEqual(idsOf((await run.sync({ queues: ['a'], claim: 1 })).claimed), first.ids.slice(1))
})

test('a task that waits for its retry, or was removed, holds no slot', async t => {
  const run = await fresh(t)
  const { queue, ids, laneId } = await laneWith(run, 4, { parallelism: 2 })
  const ask = { queues: [queue], claim: 4 }
  const [failing, brief] = (await run.sync(ask)).claimed
  await settle(run, [failing!], 'failed')
  assert.deepEqual(idsOf((await run.sync(ask)).claimed), [ids[2]])
  await settle(run, [brief!])
  assert.deepEqual(await deleteTasks(run.sql, [brief!.id]), [brief!.id])
  assert.deepEqual(idsOf((await run.sync(ask)).claimed), [ids[3]])
  assert.equal(await slotsOf(run, laneId), 2)
})

test('a worker that dies gives its slots back with the rescue', async t => {
  const run = await fresh(t)
  const { queue, ids } = await laneWith(run, 5, { parallelism: 2 })
  const dead = (await run.sync({ queues: [queue], claim: 5 })).claimed
  await run.sync({ started: dead.map(({ id, epoch }) => ({ id, epoch })) })
  await run.advance(21)
  assert.deepEqual((await run.sync({ queues: [queue], claim: 5 })).claimed, [])
  assert.equal((await rescue({ beginsBlind: false }).run(run.engine.context)).rescued, 2)
  const next = (await run.sync({ queues: [queue], claim: 5 })).claimed
  assert.deepEqual(idsOf(next), ids.slice(2, 4))
  await settle(run, dead)
  assert.deepEqual((await run.sync({ queues: [queue], claim: 5 })).claimed, [], 'a zombie frees nothing')
})

test('whoever waits for a slot polls, and is near when one is free', async t => {
  const run = await fresh(t)
  const { queue } = await laneWith(run, 2, { parallelism: 1 })
  assert.equal(await nextDueSeconds(run.sql, [queue]), 0)
  const { claimed } = await run.sync({ queues: [queue], claim: 1 })
  assert.equal(await nextDueSeconds(run.sql, [queue]), null)
  await settle(run, claimed)
  assert.equal(await nextDueSeconds(run.sql, [queue]), 0)
})

test('a worker that settles the only slot has the next task with the same sync', limits, async t => {
  const run = await fresh(t)
  const { queue, ids } = await laneWith(run, 5, { parallelism: 1 })
  const { wake } = run.engine.context
  const waits: number[] = []
  const wait: typeof wake.wait = (queues, heard, seconds, signal) => {
    waits.push(seconds)
    return wake.wait(queues, heard, seconds, signal)
  }
  const context = { ...run.engine.context, wake: { ...wake, wait } }
  let held: readonly HeldTask[] = []
  for (const id of ids) {
    const settled = held.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const }))
    held = (await sync(context, { worker: 'w', queues: [queue], claim: 1, waitSeconds: 60, settled })).claimed
    assert.deepEqual(idsOf(held), [id])
  }
  assert.ok(Math.max(0, ...waits) < 1, `waited ${waits}`)
})

test('a limited lane that another claim has in hand is passed over, not waited for', {
  ...limits,
  ...needsServer(),
}, async t => {
  const run = await fresh(t)
  const limited = await laneWith(run, 2, { queue: 'a', priority: 1, parallelism: 2 })
  const other = await laneWith(run, 2, { queue: 'a' })
  await run.sql.begin(async tx => {
    await tx`select from pawl.lane where id = ${limited.laneId} for update`
    assert.deepEqual(idsOf((await run.sync({ queues: ['a'], claim: 1 })).claimed), other.ids.slice(0, 1))
  })
  assert.deepEqual(idsOf((await run.sync({ queues: ['a'], claim: 1 })).claimed), limited.ids.slice(0, 1))
})

test('a claim that is told where the living part of a lane begins looks no further back', async t => {
  const run = await fresh(t)
  const { queue, laneId, ids } = await laneWith(run, 3)
  await spreadOut(run, laneId)
  const ask = { queues: [queue], limit: 1, workers: ['w'], session: null, syncId: null, terms: null }
  const first = await claimTasks(run.sql, { ...ask, hints: [] })
  assert.deepEqual(idsOf(first.places), ids.slice(0, 1))
  const behind = first.places.map(place => ({ ...place, id: ids[1]! }))
  assert.deepEqual(idsOf((await claimTasks(run.sql, { ...ask, hints: behind })).tasks), ids.slice(2))
  assert.deepEqual(idsOf((await claimTasks(run.sql, { ...ask, hints: first.places })).tasks), ids.slice(1, 2))
})

// On the embedded store, where a waiting worker is woken only by this process.
test('a worker that waits for a slot hears when another one settles', limits, async t => {
  const run = await fresh(t, { database: 'embedded' })
  const { queue, stageId, ids } = await laneWith(run, 2, { parallelism: 1 })
  const { claimed } = await run.sync({ queues: [queue], claim: 1 })
  const { answer } = await startWaiting(t, run, { queues: [queue] })
  await settle(run, claimed)
  const queues = await findLimitedQueues(run.sql, [stageId])
  assert.deepEqual(queues, [queue])
  run.engine.context.wake.notify(queues)
  assert.deepEqual(idsOf((await answer).claimed), [ids[1]])
  assert.deepEqual(await findLimitedQueues(run.sql, [stageId]), [], 'nothing waits any more')
})

test('a claim that began before others took the slots takes none on top', { ...limits, ...needsServer() }, async t => {
  const run = await fresh(t)
  const { queue, laneId } = await laneWith(run, 3, { parallelism: 3 })
  await spreadOut(run, laneId)
  const session = randomUUID()
  const other = await openEngine({ database: run.url!, schema: run.schema })
  t.after(() => other.close())
  await other.sync({ worker: 'late', session, queues: ['none'], claim: 1, syncId: '0' })

  const late = await run.sql.begin(async tx => {
    await tx`select from pawl.session where id = ${session}::uuid for update`
    // It has taken its snapshot and waits for its session.
    const claiming = other.sync({ worker: 'late', session, queues: [queue], claim: 10, syncId: '1' })
    await eventually('the claim waits', async () => {
      const [row] = await run.sql<{ claims: number }>`
        select count(*) as claims from pg_stat_activity
         where wait_event_type = 'Lock' and query like ${`%"${run.schema}".due%`}`
      return row!.claims > 0
    })
    // Its snapshot does not contain two of these tasks, and shows the third as not held.
    const young = await laneWith(run, 2)
    await run.sql`
      update pawl.task set lane_id = ${laneId}, run_at = run_at - interval '1 hour' where id = any(${young.ids}::uuid[])`
    await run.sql`
      update pawl.due set lane_id = ${laneId}, run_at = run_at - interval '1 hour' where id = any(${young.ids}::uuid[])`
    assert.equal((await run.sync({ queues: [queue], claim: 3 })).claimed.length, 3)
    return { claiming }
  })
  assert.deepEqual((await late.claiming).claimed, [])
  assert.equal(await slotsOf(run, laneId), 3)
})
