/** Sessions that hold the store back from outside: the doctor names them, and a metric shows them. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import pg from 'pg'
import { parse } from 'yaml'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { makeMetrics } from '../../src/server/metrics.ts'
import { startCluster } from '../harness/cluster.ts'
import { eventually } from '../harness/eventually.ts'

const bounded = { timeout: 600_000 }

async function ownServer(t: TestContext) {
  const settings = { fsync: 'off', max_prepared_transactions: '2', wal_level: 'replica' }
  const cluster = await startCluster({ version: 18, settings })
  const engine = await openEngine({ database: cluster.url })
  const admin = new pg.Client(cluster.url)
  await admin.connect()
  await admin.query('create database elsewhere')
  const other = new pg.Client(cluster.url.replace(/\/postgres$/, '/elsewhere'))
  await other.connect()
  await other.query('create table notes (note text)')
  t.after(async () => {
    await Promise.all([engine.close(), admin.end(), other.end()])
    await cluster.stop()
  })
  return { engine, admin, other, cluster }
}

/** All findings of the doctor, including those that have only just begun. */
async function findings(engine: Engine): Promise<string> {
  const { findings } = await engine.doctor({ longSeconds: 0 })
  return findings.map(({ what, todo }) => `${what} ${todo}`).join('\n')
}

test('a transaction in another database that holds the event feed back is named, and measured', bounded, async t => {
  const { engine, other } = await ownServer(t)
  await other.query('begin')
  await other.query(`insert into notes values ('open')`)
  await engine.enqueue('a', 1)
  assert.deepEqual((await engine.events()).items, [])
  const found = await findings(engine)
  assert.match(found, /The event feed is held back/)
  assert.match(found, /A transaction has been open for \d+ s: .* on database elsewhere/)
  const lag = async () => Number(/^pawl_feed_lag_seconds (.*)$/m.exec(await makeMetrics(engine).text())![1])
  assert.ok((await lag()) > 0)
  await other.query('commit')
  // Sessions that are open for a moment, such as autovacuum, are ignored.
  await eventually('the feed goes on', async () => (await engine.events()).items.length === 1)
  await eventually('nothing is held back', async () => (await lag()) === 0)
  assert.doesNotMatch(await findings(engine), /database elsewhere/)
})

test('the doctor sees that the feed is held back by a transaction that its user may not see', bounded, async t => {
  const { engine, admin, other, cluster } = await ownServer(t)
  await admin.query('create role plain login')
  await admin.query('grant usage on schema pawl to plain; grant select on all tables in schema pawl to plain')
  await other.query('begin')
  await other.query(`insert into notes values ('open')`)
  await engine.enqueue('a', 1)
  const plain = await openEngine({ database: cluster.url.replace('postgres@', 'plain@'), migrate: false })
  t.after(() => plain.close())
  const found = await findings(plain)
  assert.match(found, /The event feed is held back.*grant it pg_read_all_stats/)
  assert.doesNotMatch(found, /database elsewhere/)
})

test('a prepared transaction that nobody ended is named with what ends it', bounded, async t => {
  const { engine, other } = await ownServer(t)
  await other.query('begin')
  await other.query(`insert into notes values ('prepared')`)
  await other.query(`prepare transaction 'forgotten'`)
  assert.match(await findings(engine), /'forgotten' of postgres on database elsewhere.*rollback prepared 'forgotten'/)
  await other.query(`rollback prepared 'forgotten'`)
  assert.doesNotMatch(await findings(engine), /prepared/)
})

test('a replication slot that nobody uses is named before it fills the disk', bounded, async t => {
  const { engine, admin } = await ownServer(t)
  await admin.query(`select pg_create_physical_replication_slot('old_standby', true)`)
  assert.doesNotMatch(await findings(engine), /old_standby/)
  const { findings: found } = await engine.doctor({ slotBytes: -1 })
  assert.match(found.map(({ what }) => what).join('\n'), /Replication slot old_standby \(not in use\) keeps \d+ MiB/)
})

test('every alert in docs/alerts.yaml is about a figure that servers tell', bounded, async t => {
  const { engine } = await ownServer(t)
  const { groups } = parse(readFileSync('docs/alerts.yaml', 'utf8')) as {
    groups: { rules: { alert: string; expr: string }[] }[]
  }
  const metrics = await makeMetrics(engine).text()
  for (const { alert, expr } of groups.flatMap(({ rules }) => rules)) {
    // A histogram has the name of its series, and its count as the value.
    const isTold = (name: string) => metrics.includes(`# TYPE ${name} `)
    for (const [name] of expr.matchAll(/pawl_\w+/g))
      assert.ok(isTold(name) || isTold(name.replace(/_count$/, '')), `${alert}: ${name}`)
  }
})
