import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { needsServer } from '../../test/harness/databases.ts'
import { fresh } from '../../test/harness/fresh.ts'
import type { CallerTransaction } from '../kernel/transactions.ts'
import type { Sql } from '../store/driver/sql.ts'

test('an object that is no transaction is refused with the libraries that are known', async t => {
  const { engine } = await fresh(t)
  const cases: [unknown, RegExp][] = [
    ['begin', /given: "string"/],
    [7, /given: "number"/],
    [null, /given: "null"/],
    [{}, /given: "object/],
    [{ commit() {}, LOCK: 1 }, /given: "object with commit, LOCK"/],
    [new Map(), /given: "Map"/],
    [() => {}, /given: "function"/],
    [{ query: () => {} }, /given: "object with query"/],
  ]
  for (const [given, message] of cases) {
    const options = { tx: given as CallerTransaction }
    const refused = { code: 'TRANSACTION_UNKNOWN', status: 400, message }
    await assert.rejects(engine.enqueue('a', null, options), refused)
    await assert.rejects(engine.enqueueMany([{ type: 'a', payload: null }], options), refused)
    await assert.rejects(engine.submit({ name: 'j', stages: [] }, options), refused)
    await assert.rejects(engine.cancel('00000000-0000-4000-8000-000000000000', options), refused)
  }
  assert.deepEqual((await engine.tasks()).items, [])
  await assert.rejects(
    engine.enqueue('a', null, { tx: {} as CallerTransaction }),
    /engine\.transaction, postgres\.js, Knex, MikroORM, Prisma, Kysely, Drizzle, TypeORM, pg/,
  )
})

test('the handle of a transaction of the engine is refused once the transaction has ended', async t => {
  const { engine } = await fresh(t)
  const handles: Sql[] = []
  await engine.transaction(async tx => {
    handles.push(tx)
    await tx.begin(async inner => void handles.push(inner))
  })
  await engine
    .transaction(async tx => {
      handles.push(tx)
      throw new Error('rolled back')
    })
    .catch(() => {})
  assert.equal(handles.length, 3)
  for (const tx of handles) await assert.rejects(engine.enqueue('a', null, { tx }), { code: 'TRANSACTION_NOT_OPEN' })
  assert.deepEqual((await engine.tasks()).items, [])
})

test('a transaction of another database is refused', needsServer(), async t => {
  const { engine, url } = await fresh(t)
  const client = new pg.Client({ connectionString: url!.replace(/\/\w+$/, '/template1') })
  await client.connect()
  t.after(() => client.end())
  await client.query('begin')
  await assert.rejects(engine.enqueue('a', null, { tx: client }), { code: 'TRANSACTION_ELSEWHERE', status: 409 })
  await client.query('select 1')
  const embedded = await fresh(t, { database: 'embedded' })
  await assert.rejects(embedded.engine.enqueue('a', null, { tx: client }), { code: 'TRANSACTION_ELSEWHERE' })
})

test(
  'counts and times in a transaction of a client are what they are outside, whatever its own types',
  needsServer(),
  async t => {
    const { engine, url } = await fresh(t)
    const getTypeParser = (type: number) => (text: string) => (type === pg.types.builtins.TEXT ? text : 'of the caller')
    const types = { getTypeParser } as unknown as pg.CustomTypesConfig
    const client = new pg.Client({ connectionString: url, types })
    await client.connect()
    t.after(() => client.end())
    await client.query('begin')
    const job = await engine.submit({ name: 'j', stages: [{ name: 's', task: 'a', payloads: [1, 2] }] }, { tx: client })
    await client.query('commit')
    assert.deepEqual(job, await engine.job(job.id))
  },
)
