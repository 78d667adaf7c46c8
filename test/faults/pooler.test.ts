/** Behind a real PgBouncer in transaction mode: everything works, and no state leaks to other applications. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { startServer } from '../../src/server/server.ts'
import { defineTask, startWorker } from '../../src/worker/index.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { hasPgBouncer, startPgBouncer } from '../harness/pgbouncer.ts'

const bounded = { timeout: 600_000, skip: !hasPgBouncer && 'needs PgBouncer' }

/** A pooler whose clients share few connections, so that each transaction may get a different one. */
async function pooled(t: TestContext, serverConnections: number) {
  const run = await fresh(t)
  const bouncer = await startPgBouncer(run.url!, serverConnections)
  const engines: Engine[] = []
  t.after(async () => {
    await Promise.all(engines.map(engine => engine.close()))
    await bouncer.stop()
  })
  const open = async (listenDatabase?: string) => {
    const listening = listenDatabase === undefined ? {} : { listenDatabase }
    const engine = await openEngine({ database: bouncer.url, schema: run.schema, migrate: false, ...listening })
    engines.push(engine)
    return engine
  }
  return { ...run, bouncer, open }
}

test('a server behind PgBouncer is ready and does its work', bounded, async t => {
  const { open } = await pooled(t, 3)
  const engine = await open()
  const server = await startServer(engine, { port: 0, blockedSeconds: 0 })
  t.after(() => server.close())
  assert.equal((await fetch(`${server.url}/readyz`)).status, 200)
  const double = defineTask({ type: 'double', handler: (n: number) => 2 * n })
  const worker = startWorker(engine, [double], { waitSeconds: 1 })
  t.after(() => worker.stop(0))
  const tasks = await engine.enqueueMany(Array.from({ length: 100 }, (_, n) => ({ type: 'double', payload: n })))
  for (const { id } of tasks) assert.equal((await ended(engine, id)).state, 'succeeded')
})

test('no setting, prepared statement or LISTEN stays behind on connections that others share', bounded, async t => {
  const { bouncer, open } = await pooled(t, 1)
  const other = new pg.Client(bouncer.url)
  // The pooler is stopped first.
  other.on('error', () => {})
  await other.connect()
  t.after(() => other.end())
  const check = async () => {
    const { rows } = await other.query(`
      select (select jsonb_object_agg(name, setting) from pg_settings
               where name like 'enable%' or name like '%timeout' or name in ('jit', 'plan_cache_mode')) as settings,
             (select count(*) from pg_prepared_statements) as prepared,
             (select count(*) from pg_listening_channels()) as channels`)
    return rows[0]
  }
  const before = await check()
  const engine = await open()
  await engine.enqueue('a', 1)
  await engine.claims({ worker: 'w', queues: ['b'], waitSeconds: 1 })
  await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  await engine.tasks({ total: true })
  await engine.brokenRules()
  assert.deepEqual(await check(), before)
})

test(
  'workers behind PgBouncer find what others queue, and listen if they are given the server itself',
  bounded,
  async t => {
    const { engine: direct, url, sql, open } = await pooled(t, 3)
    const listeners = async () =>
      (
        await sql`select from pg_stat_activity where application_name = 'pawl listen' and query like ${`%${sql.schema}%`}`
      ).length
    const polling = await open()
    const found = polling.claims({ worker: 'w', queues: ['a'], waitSeconds: 30 })
    await direct.enqueue('a', 1)
    assert.equal((await found).length, 1)
    assert.equal(await listeners(), 0)
    const listening = await open(url)
    const claimed = listening.claims({ worker: 'w', queues: ['a'], waitSeconds: 30 })
    await eventually('it listens', async () => (await listeners()) === 1)
    await direct.enqueue('a', 2)
    assert.equal((await claimed).length, 1)
  },
)
