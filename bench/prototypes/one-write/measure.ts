// node bench/run.mjs --prototype one-write [--quick]
//
// The present shape and the prototype in turn, on one PostgreSQL: two connections that claim a batch and settle it.

import { pawl } from '../../../dist/index.js'
import { defaultBounds, openPools } from '../../../dist/store/driver/postgres.js'
import { type Driver, makeSql, type Sql } from '../../../dist/store/driver/sql.js'
import { claimTasks } from '../../../dist/store/tasks/claim.js'
import { succeedTasks } from '../../../dist/store/tasks/settle.js'
import { type Cluster, startCluster } from '../../../test/harness/cluster.ts'
import { measureFsync } from '../../disk.ts'
import { createDatabase, openConnection } from '../../entrants.ts'
import { table, whole } from '../../markdown.ts'
import { postgresMs } from '../../processor-time.ts'
import { median } from '../../statistics.ts'
import { fill } from '../../work.ts'
import { adaptSchema, oneWriteDriver } from './one-write.ts'

const isQuick = process.argv.includes('--quick')
const rounds = isQuick ? 3 : 5
const connections = 2
const settings = { fsync: 'on', synchronous_commit: 'on', shared_buffers: '1GB', max_wal_size: '4GB' }
/** Tasks of a batch, and tasks of a round. */
const sizes = isQuick
  ? ([
      [500, 10_000],
      [1, 500],
    ] as const)
  : ([
      [500, 60_000],
      [50, 20_000],
      [1, 2000],
    ] as const)

interface Shape {
  name: string
  fillfactor: number
  isOneWrite: boolean
}

const shapes: Shape[] = [
  { name: 'two writes (present)', fillfactor: 30, isOneWrite: false },
  { name: 'one write', fillfactor: 30, isOneWrite: true },
  { name: 'one write, fillfactor 45', fillfactor: 45, isOneWrite: true },
]

interface Cost {
  rate: number
  processorMs: number
  logBytes: number
  hotShare: number
}

const cluster = await startCluster({ version: 18, settings })
try {
  const rigs = await Promise.all(shapes.map((shape, index) => openRig(cluster, shape, `one-write-${index}`)))
  const rows: string[][] = []
  for (const [batch, count] of sizes) {
    const costs = rigs.map((): Cost[] => [])
    // The first round warms up. Each round begins with another shape.
    for (let round = 0; round <= rounds; round++) {
      for (let turn = 0; turn < rigs.length; turn++) {
        const index = (round + turn) % rigs.length
        const cost = await rigs[index]!.measureRound(batch, count)
        if (round > 0) costs[index]!.push(cost)
      }
    }
    for (const [index, { name }] of shapes.entries()) {
      const of = (part: keyof Cost, from = index) => median(costs[from]!.map(cost => cost[part]))
      const versus = (part: keyof Cost) => `${(of(part) / of(part, 0)).toFixed(2)}x`
      rows.push([
        whole(batch),
        name,
        `${whole(of('rate'))} (${versus('rate')})`,
        `${of('processorMs').toFixed(4)} ms (${versus('processorMs')})`,
        `${whole(of('logBytes'))} (${versus('logBytes')})`,
        `${whole(100 * of('hotShare'))} %`,
      ])
    }
  }
  const fsync = await measureFsync()
  console.log(table(['batch', 'shape', 'tasks/s', 'PostgreSQL CPU per task', 'log bytes per task', 'HOT'], rows))
  console.log(`\nMedians of ${rounds} rounds; a write of 8 kB with fsync takes ${fsync.p50.toFixed(1)} ms.`)
  for (const rig of rigs) await rig.close()
} finally {
  await cluster.stop()
}

async function openRig(own: Cluster, { fillfactor, isOneWrite }: Shape, name: string) {
  const url = await createDatabase(own, name)
  const engine = await pawl({ database: url })
  const client = await openConnection(url)
  if (isOneWrite) await adaptSchema(text => client.query(text))
  await client.query(`alter table pawl.task set (fillfactor = ${fillfactor})`)
  const pools = openPools(url, { connections, prepare: true, bounds: defaultBounds })
  const sqlOf = (driver: Driver) => makeSql(isOneWrite ? oneWriteDriver(driver) : driver, 'pawl')
  const workers = Array.from({ length: connections }, () => sqlOf(pools.driver))
  const tidy = async () => {
    const claims = isOneWrite ? ', pawl.batch_claim' : ''
    await client.query(`truncate pawl.task, pawl.due, pawl.claim, pawl.change${claims}`)
  }

  // Proof that the prototype writes the same history and feed.
  await fill(engine, 200)
  await Promise.all(workers.map(sql => work(sql, 7)))
  const broken = await engine.brokenRules()
  if (broken.length > 0) throw new Error(`${name} breaks rules: ${JSON.stringify(broken.slice(0, 3))}`)

  return {
    async measureRound(batch: number, count: number): Promise<Cost> {
      await tidy()
      await fill(engine, count)
      await client.query('vacuum analyze')
      await client.query('checkpoint')
      const before = await numbers()
      const began = performance.now()
      const done = await Promise.all(workers.map(sql => work(sql, batch)))
      const seconds = (performance.now() - began) / 1000
      const after = await numbers()
      const total = done.reduce((sum, one) => sum + one, 0)
      if (total !== count) throw new Error(`${total} of ${count} tasks were done`)
      return {
        rate: count / seconds,
        processorMs: (after.processorMs - before.processorMs) / count,
        logBytes: (after.logBytes - before.logBytes) / count,
        hotShare: (after.hot - before.hot) / Math.max(1, after.updates - before.updates),
      }
    },
    async close() {
      await client.end()
      await pools.close()
      await engine.close()
    },
  }

  async function numbers() {
    await client.query('select pg_stat_force_next_flush()')
    const { rows } = await client.query(
      `select pg_current_wal_insert_lsn() - '0/0'::pg_lsn as bytes, n_tup_upd as updates, n_tup_hot_upd as hot
         from pg_stat_user_tables where schemaname = 'pawl' and relname = 'task'`,
    )
    const [row] = rows
    return {
      processorMs: postgresMs(own.pid()),
      logBytes: Number(row.bytes),
      updates: Number(row.updates),
      hot: Number(row.hot),
    }
  }
}

/** Works until nothing is due. Returns the number of tasks. */
async function work(sql: Sql, batch: number): Promise<number> {
  const request = {
    queues: ['noop'],
    limit: batch,
    workers: ['bench'],
    session: null,
    syncId: null,
    terms: null,
    hints: [],
  }
  for (let done = 0, empty = 0; ; ) {
    const { tasks } = await claimTasks(sql, request)
    // Another claim may have locked the place that is left.
    if (tasks.length === 0 && ++empty > 5) return done
    if (tasks.length === 0) continue
    empty = 0
    const { missed } = await succeedTasks(sql, tasks)
    if (missed.length > 0) throw new Error(`${missed.length} reports were refused`)
    done += tasks.length
  }
}
