import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { laneWith } from '../../test/harness/lane-with.ts'
import { ageLanes } from './chores.ts'

const rankOf = async ({ sql }: Fresh, laneId: number) => {
  const [row] = await sql<{ rank: number }>`select rank from pawl.lane where id = ${laneId}`
  return row!.rank
}

test('work of low priority is done, though a better queue never runs empty', async t => {
  const run = await fresh(t)
  const busy = () => run.engine.enqueueMany(Array.from({ length: 5 }, () => ({ type: 'a' })))
  const { id: patient } = await run.engine.enqueue('a', null, { priority: -5 })
  await busy()
  const chore = ageLanes()
  let minutes = 0
  for (; minutes < 30; minutes += 0.5) {
    await busy()
    const { claimed } = await run.sync({ queues: ['a'], claim: 5 })
    assert.equal(claimed.length, 5)
    if (claimed.some(({ id }) => id === patient)) break
    await run.sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' })) })
    await run.advance(30)
    await chore.run(run.engine.context)
  }
  assert.ok(minutes >= 5 && minutes <= 7, `it was claimed after ${minutes} minutes`)
})

test('a lane has its priority again when nothing waits in it', async t => {
  const run = await fresh(t)
  const { laneId, queue } = await laneWith(run, 1, { priority: 3 })
  const chore = ageLanes()
  assert.equal((await chore.run(run.engine.context)).aged, 0)
  await run.advance(150)
  assert.equal((await chore.run(run.engine.context)).aged, 1)
  assert.equal((await chore.run(run.engine.context)).aged, 0, 'what has not changed is not written')
  assert.equal(await rankOf(run, laneId), 5)
  await run.sync({ queues: [queue], claim: 1 })
  await chore.run(run.engine.context)
  assert.equal(await rankOf(run, laneId), 3)
})

test('a job that is late goes before work of higher priority', async t => {
  const run = await fresh(t)
  const job = await laneWith(run, 1, { queue: 'a', softInSeconds: 7200, hardInSeconds: 10_800 })
  const rivals = await laneWith(run, 1, { queue: 'a', priority: 400 })
  const ranks: number[] = []
  for (const seconds of [0, 7260, 3600]) {
    await run.advance(seconds)
    await ageLanes().run(run.engine.context)
    ranks.push(await rankOf(run, job.laneId))
  }
  assert.deepEqual(ranks, [458, 501, 1001])
  const { claimed } = await run.sync({ queues: ['a'], claim: 2 })
  assert.deepEqual(
    claimed.map(({ id }) => id),
    [...job.ids, ...rivals.ids],
  )
})

test('thousands of lanes are aged batch by batch, and two babysitters do it no worse than one', async t => {
  const run = await fresh(t, { rules: 'broken on purpose' })
  await run.sql`
    with made as (
      insert into pawl.lane (queue, stage_id, priority, rank)
      select 'a', gen_random_uuid(), 0, 0 from generate_series(1, 2500) returning id
    )
    insert into pawl.due (lane_id, run_at, id, ids, type)
    select id, pawl.clock() - interval '90 seconds', gen_random_uuid(), '{}', 'a' from made`
  let aged = 0
  await Promise.all(
    [ageLanes(), ageLanes()].map(async chore => {
      for (let round = 0; round < 4; round++) {
        const did = await chore.run(run.engine.context)
        aged += did.aged as number
      }
    }),
  )
  assert.equal(aged, 2500, 'each was written once')
  const ranks = await run.sql`select rank, count(*) as lanes from pawl.lane group by rank`
  assert.deepEqual(ranks, [{ rank: 1, lanes: 2500 }])
})
