/** The integrity alarm of the babysitter reads new rows only. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { brokenRules, startOfWatch, type Watch } from './integrity.ts'

/** An id begins with its time. */
const timeOf = (id: string) => new Date(Number.parseInt(id.replace('-', '').slice(0, 12), 16))
/** This task and all later ones. */
const from = (id: string): Watch => ({ since: timeOf(id), from: id, until: 'ffffffff-ffff-ffff-ffff-ffffffffffff' })

/** The rows of these tables that were read, or how often one of their indexes was used. */
async function counted({ sql, schema }: Fresh, what: 'rows' | 'lookups', tables: readonly string[]): Promise<number> {
  await sql`select pg_stat_force_next_flush()`
  const [row] = await sql<{ rows: number; lookups: number }>`
    select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 as rows,
           sum(coalesce(idx_scan, 0))::float8 as lookups
      from pg_stat_user_tables where schemaname = ${schema} and relname = any(${tables}::text[])`
  return row![what]
}

const read = ['task', 'stage', 'job', 'change', 'due', 'claim', 'expiry', 'trouble', 'lane']
const many = (count: number) => Array.from({ length: count }, (_, n) => n)

test('the alarm reads nothing of older tasks, jobs and events', needsServer(), async t => {
  const run = await fresh(t, { connections: 1 })
  const { engine, sql, sync } = run
  await engine.submit({ name: 'old', stages: [{ name: 'only', task: 'a', payloads: many(500) }] })
  const { claimed } = await sync({ queues: ['a'], claim: 500 })
  await sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' })) })
  await engine.enqueueMany(many(500).map(() => ({ type: 'c', expireInSeconds: 900 })))
  await sql`update pawl.change set at = at - interval '1 hour'`
  const { id } = await engine.enqueue('b', null, { expireInSeconds: 800 })
  await engine.enqueue('c', null)
  const earlier = await counted(run, 'rows', read)
  assert.deepEqual(await brokenRules(sql, from(id)), [])
  const rows = (await counted(run, 'rows', read)) - earlier
  assert.ok(rows < 400, `it read ${rows} rows`)
})

test(
  'the alarm reads a limited number of rows, however large a job is and whatever ids were chosen',
  needsServer(),
  async t => {
    const run = await fresh(t, { connections: 1 })
    const { engine, sql } = run
    await engine.enqueueMany(many(500).map(() => ({ id: randomUUID(), type: 'a' })))
    const payloads = many(3000)
    await engine.submit({ name: 'large', stages: [{ name: 'only', task: 'a', payloads }] })
    const earlier = await counted(run, 'rows', read)
    const watch = await startOfWatch(sql, { seconds: 900, rows: 20 })
    assert.deepEqual(await brokenRules(sql, watch), [])
    const rows = (await counted(run, 'rows', read)) - earlier
    assert.ok(rows < 500, `it read ${rows} rows`)
    // A task whose place in the queue is found by an id that seems much older.
    await engine.enqueueMany([{ id: '00000000-0000-4000-8000-000000000001', type: 'a' }, { type: 'a' }])
    assert.deepEqual(await brokenRules(sql, await startOfWatch(sql, { seconds: 900, rows: 20 })), [])
  },
)

test('the alarm looks at the newest tasks only if very many were created', async t => {
  const { engine, sql } = await fresh(t)
  const create = async () => (await engine.enqueue('a', null)).id
  const ids = [await create(), await create(), await create()]
  const newest = await startOfWatch(sql, { seconds: 900, rows: 2 })
  assert.equal(newest.from, ids[1])
  assert.equal(newest.since.toISOString(), (await engine.task(ids[1]!)).createdAt)
  const all = await startOfWatch(sql, { seconds: 900, rows: 20 })
  assert.ok(timeOf(all.from).getTime() < timeOf(ids[0]!).getTime() - 800_000)
  assert.ok(all.since.getTime() < timeOf(ids[0]!).getTime() - 800_000)
})

test('a caller’s transaction that began long ago raises no false alarm', async t => {
  const { engine, sql } = await fresh(t)
  const ids = [(await engine.enqueue('a', null)).id, (await engine.enqueue('a', null)).id]
  // Events are recorded with the time at which their transaction began.
  await sql`update pawl.change set at = at - interval '20 minutes' where ${ids[1]!}::uuid = any(ids)`
  assert.deepEqual(await brokenRules(sql, await startOfWatch(sql, { seconds: 900, rows: 20 })), [])
})

test('the full check reads tables whole, and looks up nothing row by row', needsServer(), async t => {
  const run = await fresh(t, { connections: 1 })
  await run.engine.submit({ name: 'j', stages: [{ name: 'only', task: 'a', payloads: many(500) }] })
  const earlier = await counted(run, 'lookups', read)
  assert.deepEqual(await brokenRules(run.sql), [])
  const lookups = (await counted(run, 'lookups', read)) - earlier
  assert.ok(lookups < 100, `${lookups} lookups`)
})
