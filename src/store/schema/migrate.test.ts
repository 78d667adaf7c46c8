import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { dumpSchema } from '../../../scripts/dump-schema.ts'
import { findRoot } from '../../../scripts/job-schema-page.ts'
import { database, serverUrl } from '../../../test/harness/databases.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { sharedStore } from '../../../test/harness/stores.ts'
import { type Engine, openEngine } from '../../engine/engine.ts'
import { defaultBounds, openPools } from '../driver/postgres.ts'
import { makeSql, type Sql } from '../driver/sql.ts'
import { currentGeneration } from '../feed/generation.ts'
import { migrate, schemaVersion } from './migrate.ts'

/** The baseline is version 13, and each later version is one more. */
const steps = schemaVersion - 12

/** Opens a pool for each process, all on one schema that does not exist yet. */
async function emptySchema(t: TestContext, version: 15 | 18, processes: number): Promise<Sql[]> {
  const schema = `t_${randomBytes(6).toString('hex')}`
  const url = await serverUrl(version)
  const pools = Array.from({ length: processes }, () =>
    openPools(url, { connections: 2, prepare: true, bounds: defaultBounds }),
  )
  t.after(async () => {
    await pools[0]!.pool.query(`drop schema if exists "${schema}" cascade`)
    for (const { pool } of pools) await pool.end()
  })
  return pools.map(({ driver }) => makeSql(driver, schema))
}

/** Everything that a migration can change: columns, rules, triggers, functions, and the row of the meta table. */
async function picture(sql: Sql): Promise<unknown> {
  const tables = await sql`
    select table_name, column_name, data_type, column_default, is_nullable
      from information_schema.columns where table_schema = ${sql.schema} order by 1, 2`
  const rules = await sql`
    select conrelid::regclass::text as place, conname, pg_get_constraintdef(oid) as text
      from pg_constraint where connamespace = ${sql.schema}::regnamespace
     union all
    select tgrelid::regclass::text, tgname, pg_get_triggerdef(t.oid)
      from pg_trigger t join pg_class c on c.oid = tgrelid
     where relnamespace = ${sql.schema}::regnamespace and not tgisinternal
     union all
    select '', proname, prosrc from pg_proc where pronamespace = ${sql.schema}::regnamespace
     order by 1, 2`
  const meta = await sql`select generation, system, guards from pawl.meta`
  const versions = await sql`select version, at from pawl.migration order by 1`
  return { tables, rules, meta, versions }
}

for (const version of [15, 18] as const) {
  test(`processes that migrate at once do no harm: one does the work, the others find it done (postgres ${version})`, async t => {
    const processes = await emptySchema(t, version, 4)
    const results = await Promise.all(processes.map(migrate))
    const versions = results.map(result => result.version)
    assert.deepEqual(new Set(versions), new Set([schemaVersion]))
    assert.deepEqual(results.map(({ applied }) => applied).sort(), [0, 0, 0, steps])
    const [row] = await processes[0]!<{ rows: number; steps: number }>`
      select (select count(*) from pawl.meta) as rows, (select count(*) from pawl.migration) as steps`
    assert.deepEqual(row, { rows: 1, steps })
  })
}

test('a migration that fails leaves nothing behind, and the next one succeeds', async t => {
  const [sql] = await emptySchema(t, 18, 1)
  await assert.rejects(
    sql!.begin(async tx => {
      await migrate(tx)
      throw new Error('power cut')
    }),
    /power cut/,
  )
  const [before] = await sql!<{ schemas: number }>`
    select count(*) as schemas from pg_namespace where nspname = ${sql!.schema}`
  assert.equal(before!.schemas, 0)
  assert.equal((await migrate(sql!)).applied, steps)
})

test('a second migrate applies nothing and changes nothing', async t => {
  const { sql } = await fresh(t)
  const before = await picture(sql)
  assert.deepEqual(await migrate(sql), { applied: 0, version: schemaVersion })
  assert.deepEqual(await picture(sql), before)
})

test('a database of a newer Pawl is refused, and left as it is', async t => {
  const { sql } = await fresh(t)
  const newer = schemaVersion + 1
  await sql`insert into pawl.migration (version) values (${newer})`
  await sql`update pawl.meta set system = 'another', guards = 'newer'`
  const before = await picture(sql)
  await assert.rejects(migrate(sql), {
    code: 'SCHEMA_NEWER',
    status: 503,
    details: { database: newer, program: schemaVersion },
  })
  assert.deepEqual(await picture(sql), before)
})

test('a store that finds itself on another system begins a new generation, once', async t => {
  const { sql } = await fresh(t)
  const first = await currentGeneration(sql)
  await migrate(sql)
  assert.equal(await currentGeneration(sql), first, 'the same system, the same generation')

  await sql`update pawl.meta set system = 'the server that it was backed up from'`
  await migrate(sql)
  const second = await currentGeneration(sql)
  assert.notEqual(second, first)

  await migrate(sql)
  assert.equal(await currentGeneration(sql), second)
})

test('a store from before the first release is refused, and left as it is', async t => {
  const { sql } = await fresh(t)
  await sql`delete from pawl.migration where version > 12`
  await sql`insert into pawl.migration (version) values (12)`
  const before = await picture(sql)
  await assert.rejects(migrate(sql), { code: 'SCHEMA_TOO_OLD', status: 409, details: { database: 12, oldest: 13 } })
  assert.deepEqual(await picture(sql), before)
})

test('what a store of an earlier version holds is listed and told as before, after it was migrated', async t => {
  const { sql, engine } = await storeAt13(t)
  assert.deepEqual(await migrate(sql), { applied: schemaVersion - 13, version: schemaVersion })
  assert.equal(await dumpSchema(sql), await dumpSchema((await fresh(t)).sql))

  const names = async () => (await engine.jobs()).items.map(({ name }) => name)
  assert.deepEqual(await names(), ['three', 'two', 'one'])
  const troubles = (await engine.troubles()).map(({ state, type, message }) => [state, type, message])
  assert.deepEqual(troubles.toSorted(), [
    ['dead_lettered', 'call', 'line # is dead'],
    ['failed', 'a', 'no host #'],
  ])
  assert.deepEqual(
    (await engine.deadLetters()).items.map(({ payload }) => payload),
    [{ to: 'Bob' }],
  )
  assert.deepEqual(
    (await engine.keys()).map(({ name, roles }) => [name, roles]),
    [['ops', ['operator']]],
  )
  const [task] = await engine.claims({ worker: 'w', queues: ['mail'] })
  assert.deepEqual(task!.payload, { to: 'Ada' })
  await engine.submit({ name: 'four', stages: [{ name: 'a', task: 'a' }] })
  assert.deepEqual(await names(), ['four', 'three', 'two', 'one'])
  assert.deepEqual(await engine.brokenRules(), [])
})

/** A store of version 13, and an engine on it that does not migrate. */
async function storeAt13(t: TestContext): Promise<{ sql: Sql; engine: Engine }> {
  const { driver, open } = await sharedStore(database())
  const schema = `t_${randomBytes(6).toString('hex')}`
  const text = readFileSync(join(findRoot(import.meta.dirname), 'test/harness/store-at-13.sql'), 'utf8')
  const sql = makeSql(driver, schema)
  await sql.begin(tx => tx.script(text.replace('create schema pawl;', `create schema "${schema}";`)))
  const engine = await openEngine({ schema, store: open(schema), migrate: false })
  t.after(async () => {
    await engine.close()
    await driver.script(`drop schema "${schema}" cascade`)
  })
  return { sql, engine }
}
