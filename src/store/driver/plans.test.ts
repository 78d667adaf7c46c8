/** A plan that was made while the store was empty must be good when it is full. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { countMoves } from '../admin/stats.ts'
import type { Sql } from './sql.ts'

/** Number of rows of a table that were read so far, by index or otherwise. */
async function rowsRead(sql: Sql, table = 'task'): Promise<number> {
  await sql`select pg_stat_force_next_flush()`
  const [row] = await sql<{ read: number }>`
    select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
      from pg_stat_user_tables where schemaname = ${sql.schema} and relname = ${table}`
  return row!.read
}

test('a worker that began on an empty store reads what it claims and settles, and no more, when it has filled', async t => {
  const { engine, sql } = await fresh(t, { connections: 1 })
  const claim = (limit: number) => engine.sync({ worker: 'w', queues: ['work'], claim: limit })
  const settle = (held: readonly { id: string; epoch: number }[]) =>
    engine.sync({
      worker: 'w',
      settled: held.map(({ id, epoch }, index) => ({ id, epoch, outcome: index === 0 ? 'failed' : 'succeeded' })),
    })
  for (const priority of [0, -5, 10, 0, 10]) await engine.enqueue('work', null, { priority })
  await settle((await claim(10)).claimed)
  await engine.enqueueMany(Array.from({ length: 3000 }, (_, n) => ({ type: 'work', payload: n })))

  const before = await rowsRead(sql)
  const { claimed } = await claim(20)
  await settle(claimed)
  assert.equal(claimed.length, 20)
  const read = (await rowsRead(sql)) - before
  // Each row is looked up a few times: by the claim, the settle and the guards.
  assert.ok(read <= 20 * 10, `${read} rows were read to claim and settle 20`)
})

test('pausing a job reads none of its tasks, however many of them wait', async t => {
  const { engine, sql } = await fresh(t, { connections: 1 })
  const { id, stages } = await engine.submit({ name: 'vast', stages: [{ name: 'all', task: 'work', open: true }] })
  await engine.pauseJob(id)
  await engine.resumeJob(id)
  await engine.addTasks(
    stages[0]!.id,
    Array.from({ length: 3000 }, (_, n) => ({ payload: n })),
  )
  await sql`analyze`
  const before = await rowsRead(sql)
  await engine.pauseJob(id)
  const read = (await rowsRead(sql)) - before
  assert.ok(read <= 20, `${read} tasks were read to pause their job`)
})

test('counting reads what is new, and no more, however much has been counted before', async t => {
  const { engine, sql } = await fresh(t, { connections: 1 })
  // Other tests may hold back some of it for a moment.
  const count = (events: number) => {
    let left = events
    return eventually(`${events} events are counted`, async () => {
      left -= (await countMoves(sql, 2000)).events
      return left === 0
    })
  }
  await countMoves(sql, 2000)
  for (let n = 0; n < 300; n++) await engine.enqueue('work', n)
  await engine.enqueueMany(Array.from({ length: 3000 }, (_, n) => ({ type: 'work', payload: n })))
  await count(3300)
  for (let n = 0; n < 10; n++) await engine.enqueue('work', n)
  const before = [await rowsRead(sql, 'change'), await rowsRead(sql)]
  await count(10)
  const changes = (await rowsRead(sql, 'change')) - before[0]!
  const tasks = (await rowsRead(sql)) - before[1]!
  assert.ok(changes <= 20 && tasks <= 20, `${changes} changes and ${tasks} tasks were read to count 10`)
})

for (const open of [true, false]) {
  const many = open ? 'open' : 'closed'
  test(`a claim reads few lanes, though thousands are ${many} that were not when it was planned`, async t => {
    const { engine, sql } = await fresh(t, { connections: 1, rules: 'broken on purpose' })
    const claim = (limit: number) => engine.sync({ worker: 'w', queues: ['work', 'other'], claim: limit })
    await claim(10)
    await engine.enqueue('work', null)
    assert.equal((await claim(10)).claimed.length, 1)
    // Each lane has a row of due that leads to no task, because the number of rows read is counted.
    await sql`
        with made as (
          insert into pawl.lane (queue, stage_id, priority, rank, open)
          select 'work', gen_random_uuid(), 5, n % 7, ${open} from generate_series(1, 5000) as n returning id
        )
        insert into pawl.due (lane_id, run_at, id, ids, type)
        select id, pawl.clock(), gen_random_uuid(), array[gen_random_uuid()], 'work' from made`
    await engine.enqueue('work', null, { priority: open ? 9 : 0 })
    const before = [await rowsRead(sql, 'lane'), await rowsRead(sql, 'due')]
    assert.equal((await claim(1)).claimed.length, 1)
    const lanes = (await rowsRead(sql, 'lane')) - before[0]!
    const places = (await rowsRead(sql, 'due')) - before[1]!
    const most = open ? 450 : 20
    assert.ok(lanes <= most && places <= most, `${lanes} lanes and ${places} places were read to claim one task`)
  })
}
