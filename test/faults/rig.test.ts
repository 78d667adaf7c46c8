/** Faults under load. Each time the installation must recover without help, and an independent check must pass. */
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { openEngine } from '../../src/engine/engine.ts'
import { startCluster } from '../harness/cluster.ts'
import { freePort } from '../harness/free-port.ts'
import { fresh } from '../harness/fresh.ts'
import { hasPgBouncer, startPgBouncer } from '../harness/pgbouncer.ts'
import { startProgram } from '../harness/program.ts'
import { smallDiskCluster } from '../harness/small-disk.ts'
import { primarySettings, startStandby } from '../harness/standby.ts'
import { tcpProxy } from '../harness/tcp-proxy.ts'
import { underFault } from './rig.ts'

const bounded = { timeout: 600_000 }

async function onShared(t: TestContext) {
  const { url, schema, sql } = await fresh(t)
  const proxy = await tcpProxy(t, Number(new URL(url!).port))
  return {
    proxy,
    sql,
    url: url!,
    schema,
    rig: { store: { database: proxy.through(url!) }, directUrl: () => url!, schema },
  }
}

test('connections hang for good', bounded, async t => {
  const { proxy, rig } = await onShared(t)
  await underFault(t, rig, async () => proxy.freeze())
})

test('the database cannot be reached for five seconds, and hangs', bounded, async t => {
  const { proxy, rig } = await onShared(t)
  await underFault(t, rig, async () => {
    proxy.freezeAll()
    await sleep(5000)
    proxy.thaw()
  })
})

test('connections are reset again and again, while answers arrive in lumps', bounded, async t => {
  const { proxy, rig } = await onShared(t)
  await underFault(t, rig, async () => {
    proxy.coalesceMs = 3
    for (let n = 0; n < 20; n++) {
      await sleep(200)
      proxy.reset()
    }
    proxy.coalesceMs = 0
  })
})

test('every session of the server is terminated again and again', bounded, async t => {
  const { rig, url, schema } = await onShared(t)
  await underFault(t, rig, async () => {
    const killer = new pg.Client(url)
    await killer.connect()
    for (let n = 0; n < 20; n++) {
      await killer.query(`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'pawl' and pid <> pg_backend_pid() and query like '%${schema}%'`)
      await sleep(200)
    }
    await killer.end()
  })
})

test('somebody locks every job, then every task, for four seconds each', bounded, async t => {
  const { rig, sql } = await onShared(t)
  await underFault(t, rig, async () => {
    await sql.begin(tx => tx`select from pawl.job for update`.then(() => sleep(4000)))
    await sql.begin(tx => tx`select from pawl.task for update`.then(() => sleep(4000)))
  })
})

test('a second server is stopped for eight seconds, in the middle of whatever it does', bounded, async t => {
  const { rig, url, schema } = await onShared(t)
  const port = await freePort()
  const program = startProgram(t, 'faults/programs/server.js', { database: url, schema, port }, line => line)
  await program.printed('it serves', () => true)
  await underFault(t, { ...rig, servers: [`http://127.0.0.1:${port}`] }, async () => {
    program.signal('SIGSTOP')
    await sleep(8000)
    program.signal('SIGCONT')
  })
})

test('the disk of the database is full for five seconds', bounded, async t => {
  const small = await smallDiskCluster(t, 400)
  if (small === undefined) return t.skip('mounting a small disk needs root on Linux')
  const { disk, cluster } = small
  await (await openEngine({ database: cluster.url })).close()
  await underFault(t, { store: { database: cluster.url }, directUrl: () => cluster.url, schema: 'pawl' }, async () => {
    disk.fill()
    await sleep(5000)
    disk.empty()
  })
})

for (const isSynchronous of [true, false]) {
  const kind = isSynchronous ? 'synchronous' : 'asynchronous'
  test(`the primary dies, and a standby that followed it by ${kind} replication is promoted`, bounded, async t => {
    const primary = await startCluster({ version: 18, settings: primarySettings })
    const migrated = await openEngine({ database: primary.url })
    await migrated.close()
    const standby = await startStandby(primary)
    t.after(async () => {
      await standby.stop()
      await primary.stop()
    })
    if (isSynchronous) {
      const admin = new pg.Client(primary.url)
      await admin.connect()
      await admin.query(`alter system set synchronous_standby_names = '*'`)
      await admin.query('select pg_reload_conf()')
      await admin.end()
    }
    const proxy = await tcpProxy(t, primary.port)
    const store = { database: proxy.through(primary.url) }
    const rig = { store, directUrl: () => standby.url, schema: 'pawl', mayLose: !isSynchronous }
    await underFault(t, rig, async () => {
      if (!isSynchronous) {
        await standby.cutOff()
        await sleep(1000)
      }
      await primary.kill()
      await standby.promote()
      proxy.target = standby.port
      proxy.reset()
    })
  })
}

test('PgBouncer is killed and started again', { ...bounded, skip: !hasPgBouncer && 'needs PgBouncer' }, async t => {
  const { url, schema } = await fresh(t)
  const first = await startPgBouncer(url!)
  const proxy = await tcpProxy(t, Number(new URL(first.url).port))
  const store = { database: proxy.through(first.url) }
  await underFault(t, { store, directUrl: () => url!, schema }, async () => {
    await first.stop()
    const second = await startPgBouncer(url!)
    t.after(() => second.stop())
    proxy.target = Number(new URL(second.url).port)
  })
})
