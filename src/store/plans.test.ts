/** A plan that was made while the store was empty must be good when it is full. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../test/harness/fresh.ts'
import type { Sql } from './sql.ts'

/** Rows of `task` that were read so far, by index or otherwise. */
async function rowsRead(sql: Sql): Promise<number> {
  await sql`select pg_stat_force_next_flush()`
  const [row] = await sql<{ read: number }>`
    select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as read
      from pg_stat_user_tables where schemaname = ${sql.schema} and relname = 'task'`
  return row!.read
}

test('a worker that began on an empty store reads what it claims and settles, and no more, when it has filled', async t => {
  const { engine, sql } = await fresh(t, 'postgres 18', { connections: 1 })
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
  // Each row is looked up a few times: by the claim, by the settle, by the guards.
  assert.ok(read <= 20 * 10, `${read} rows were read to claim and settle 20`)
})
