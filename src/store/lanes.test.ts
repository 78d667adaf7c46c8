import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bothKinds } from '../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { laneWith } from '../../test/harness/lane-with.ts'
import { newId } from '../kernel/id.ts'
import { makeLane, setLanePriority, setLanes } from './lanes.ts'

const plain = { open: true, parallelism: null, softInSeconds: null, hardInSeconds: null }

const laneOf = async ({ sql }: Fresh, id: number) => {
  const [row] = await sql`
    select queue, stage_id, priority, rank, open, parallelism,
           round(date_part('epoch', soft_at - since)) as soft, round(date_part('epoch', hard_at - since)) as hard
      from pawl.lane where id = ${id}`
  return row
}

for (const database of bothKinds) {
  test(`lanes are made as they are asked for, and named in the order given (${database})`, async t => {
    const run = await fresh(t, database)
    const jobId = newId()
    const stages = [newId(), newId(), newId()].reverse()
    const ids = await makeLane(run.sql, [
      { ...plain, queue: 'b', stageId: stages[0]!, jobId, priority: -3 },
      {
        queue: 'a',
        stageId: stages[1]!,
        jobId,
        priority: 8,
        open: false,
        parallelism: 4,
        softInSeconds: 60,
        hardInSeconds: 90,
      },
      { ...plain, queue: 'b', stageId: stages[2]!, jobId, priority: -3 },
    ])
    const b = { queue: 'b', priority: -3, rank: -3, open: true, parallelism: null, soft: null, hard: null }
    assert.deepEqual(await Promise.all(ids.map(id => laneOf(run, id))), [
      { ...b, stageId: stages[0] },
      { queue: 'a', stageId: stages[1], priority: 8, rank: 8, open: false, parallelism: 4, soft: 60, hard: 90 },
      { ...b, stageId: stages[2] },
    ])
  })

  test(`lanes open and close together, and it is said in which queues one has opened (${database})`, async t => {
    const { sql } = await fresh(t, database)
    const jobId = newId()
    const [one, two, three] = (await makeLane(
      sql,
      ['a', 'b', 'b'].map(queue => ({ ...plain, queue, stageId: newId(), jobId, priority: 0 })),
    )) as [number, number, number]
    const set = (open: boolean, ...ids: number[]) =>
      setLanes(
        sql,
        ids.map(id => ({ id, open })),
      )
    const open = async () => (await sql<{ id: number }>`select id from pawl.lane where open order by id`).map(l => l.id)
    assert.deepEqual(await set(false, one, two), [])
    assert.deepEqual(await open(), [three])
    assert.deepEqual(await set(true, two, three), ['b'])
    assert.deepEqual(await open(), [two, three])
    assert.deepEqual(await set(true, two, three), [])
    assert.deepEqual(
      await setLanes(sql, [
        { id: one, open: true },
        { id: two, open: false },
      ]),
      ['a'],
    )
    assert.deepEqual(await open(), [one, three])
    assert.deepEqual(await set(true), [])
  })

  test(`a job's tasks are claimed by its new priority, and shown with it (${database})`, async t => {
    const run = await fresh(t, database)
    const low = await laneWith(run, 1, { queue: 'a', priority: -1 })
    const high = await laneWith(run, 1, { queue: 'a', priority: 1 })
    await setLanePriority(run.sql, low.jobId, 2)
    const { claimed } = await run.sync({ queues: ['a'], claim: 2 })
    assert.deepEqual(
      claimed.map(({ id }) => id),
      [...low.ids, ...high.ids],
    )
    assert.equal((await run.engine.task(low.ids[0]!)).priority, 2)
  })
}
