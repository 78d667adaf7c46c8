/**
 * The number of rows that an operation reads must depend on its answer, and not on the size of the store. Here the store
 * has 200,000 tasks and 20,000 jobs, and the rows that each operation reads are compared with those it returns or changes.
 */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { namedOperations, type OperationName } from '../../src/protocol/operations.ts'
import { startCluster } from '../harness/cluster.ts'
import { filtered, operations, someOf } from './operations.ts'

const jobs = 19_000
const alone = 20_000
/** One stage with very many tasks, beside many small ones. */
const vast = 28_000
/** A row is looked up a few times: by the operation, by guards, by the answer. */
const rowsPerOperation = 150
const rowsPerItem = 12

/** Tables that these read whole, on purpose and in a transaction with bounds of its own. */
const readWhole: Partial<Record<OperationName, readonly string[] | 'all'>> = {
  // It checks every row against the rules.
  doctor: 'all',
  // They add up what is due in each lane.
  queues: ['due', 'lane'],
  stats: ['due', 'lane'],
}

/** Through a connection without a time limit for statements, because it takes long on a busy machine. */
async function analyze(url: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query('analyze')
  await client.end()
}

describe('on a store of 200,000 tasks and 20,000 jobs', { timeout: 900_000 }, () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>
  /** An engine that planned its statements while the store was empty. */
  let early: Engine
  /** An engine that planned them when it was full, before the server had new statistics. */
  let late: Engine
  /** An engine that planned them with current statistics. */
  let analyzed: Engine
  before(async () => {
    cluster = await startCluster({ version: 18, settings: { fsync: 'off', autovacuum: 'off' } })
    early = await openEngine({ database: cluster.url, connections: 1 })
    for (const [, ask] of Object.values(operations)) await ask(early, someOf(early)).catch(() => {})
    const filling = await openEngine({ database: cluster.url, connections: 4 })
    for (let done = 0; done < alone; done += 10_000) {
      await filling.enqueueMany(Array.from({ length: 10_000 }, () => ({ type: 'alone' })))
    }
    let submitted = 0
    const submit = async () => {
      while (submitted++ < jobs) await someOf(filling).job()
    }
    await Promise.all(Array.from({ length: 8 }, submit))
    const payloads = Array.from({ length: vast }, (_, n) => n)
    await filling.submit({ name: 'vast', stages: [{ name: 'a', task: 'vast', payloads }] })
    await filling.close()
    late = await openEngine({ database: cluster.url, connections: 1 })
  })
  after(async () => {
    await Promise.all([early?.close(), late?.close(), analyzed?.close()])
    await cluster?.stop()
  })

  const rowsRead = async ({ context: { sql } }: Engine) => {
    await sql`select pg_stat_force_next_flush()`
    const tables = await sql<{ name: string; rows: number }>`
      select relname as name, (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 as rows
        from pg_stat_user_tables where schemaname = 'pawl'`
    return new Map(tables.map(({ name, rows }) => [name, rows]))
  }
  test('every operation is asked', () => {
    assert.deepEqual(Object.keys(operations).sort(), namedOperations.map(([name]) => name).sort())
  })
  const checkAll = (engineOf: () => Engine) => {
    for (const [name, [items, ask]] of Object.entries({ ...operations, ...filtered })) {
      const whole = readWhole[name as OperationName] ?? []
      if (whole === 'all') continue
      test(`${name}: no more is read than must be`, async () => {
        const engine = engineOf()
        const some = someOf(engine)
        const earlier = await rowsRead(engine)
        await ask(engine, some)
        const later = await rowsRead(engine)
        const read = [...later]
          .map(([table, rows]) => [table, rows - (earlier.get(table) ?? 0)] as const)
          .filter(([table]) => !whole.includes(table))
        const most = rowsPerOperation + items * rowsPerItem
        const total = read.reduce((sum, [, rows]) => sum + rows, 0)
        const detail = read.flatMap(([table, rows]) => (rows > 0 ? [`${table} ${rows}`] : [])).join(', ')
        assert.ok(total <= most, `it read ${total} rows, more than ${most}: ${detail}`)
      })
    }
  }
  describe('by a server that began when it was empty', () => checkAll(() => early))
  describe('by a server that began when it was full', () => checkAll(() => late))
  describe('by a server that began after the database had analyzed its tables', () => {
    before(async () => {
      await analyze(cluster.url)
      analyzed = await openEngine({ database: cluster.url, connections: 1 })
    })
    checkAll(() => analyzed)
  })
})
