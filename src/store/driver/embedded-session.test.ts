import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PGlite } from '@electric-sql/pglite'
import { sharedStore } from '../../../test/harness/stores.ts'
import { readEmptyStore } from './empty-store.ts'
import type { Driver } from './sql.ts'

/** The store that the tests of this process share, with an empty table `notes`. */
async function openNotes(): Promise<Driver> {
  const { driver } = await sharedStore('embedded')
  await driver.script(
    'drop table if exists pg_temp.notes; create temp table notes (id int constraint only_once unique)',
  )
  return driver
}

/** How often the session planned the prepared statements with this word, and how many there are. */
async function plansOf(driver: Driver, word: string) {
  const { rows } = await driver.query(
    `select count(*)::int, coalesce(sum(generic_plans), 0)::int, coalesce(sum(custom_plans), 0)::int
       from pg_prepared_statements where statement like $1 and statement not like '%pg_prepared_statements%'`,
    [`%${word}%`],
  )
  const [statements, executed, planned] = rows[0] as [number, number, number]
  return { statements, executed, planned }
}

test('a statement is planned once on the embedded store, however often it is executed', async () => {
  const driver = await openNotes()
  for (let n = 1; n <= 20; n++) {
    const { fields, rows } = await driver.query('select $1::int as twenty', [String(n)])
    assert.deepEqual([fields, rows], [['twenty'], [[n]]])
  }
  assert.deepEqual(await plansOf(driver, 'twenty'), { statements: 1, executed: 20, planned: 0 })
})

test('the embedded store keeps a limited number of statements prepared: those used most recently', async () => {
  const driver = await openNotes()
  for (let n = 0; n < 400; n++) {
    await driver.query(`select ${n} as rare`, [])
    await driver.query('select 1 as frequent', [])
  }
  const { statements } = await plansOf(driver, 'rare')
  assert.ok(statements > 100 && statements < 300, `${statements} statements are prepared`)
  assert.deepEqual(await plansOf(driver, 'frequent'), { statements: 1, executed: 400, planned: 0 })
})

test('columns come out of the embedded store as PGlite itself returns them', async t => {
  const driver = await openNotes()
  const text = `
    select true as yes, false as no, null::text as none, 7::int2 as int2, -7::int as int4, 9007199254740991::int8 as int8,
           1.5::float4 as float4, 1e-300::float8 as float8, 'NaN'::float8 as nan, 1.10::numeric as numeric,
           'it''s "grüße" 🚀'::text as text, 'v'::varchar as varchar, 'n'::name as name, 7::oid as oid, '9'::xid8 as xid8,
           '0198c0de-0000-7000-8000-000000000001'::uuid as uuid, '{"a": [1, null, "x"]}'::json as json,
           '{"a": {"b": 1.50}}'::jsonb as jsonb, 'null'::jsonb as json_null, '"text"'::jsonb as json_text,
           '2026-02-28T23:59:59.999Z'::timestamptz as moment, '2026-02-28T23:59:59.999999Z'::timestamptz as fine,
           'infinity'::timestamptz as never_ends, '-infinity'::timestamptz as never_began,
           '{1,null,3}'::int[] as ints, '{}'::int[] as no_ints, '{0.5,-1}'::float8[] as floats,
           array['a,b', '"', '', null, 'NULL', '\\', '{}']::text[] as texts, '{t,f,null}'::boolean[] as flags,
           '{0198c0de-0000-7000-8000-000000000001}'::uuid[] as uuids,
           '{2026-02-28T23:59:59.999Z,null}'::timestamptz[] as moments, array['{"a": "}\\""}', null]::jsonb[] as jsons,
           '{{1,2},{3,4}}'::int[] as matrix, $1::text as given`
  const direct = await PGlite.create('memory://', { loadDataDir: new Blob([readEmptyStore()!]) })
  t.after(() => direct.close())
  const expected = await direct.query<unknown[]>(text, ['given'], { rowMode: 'array' })
  const fields = expected.fields.map(field => field.name)
  assert.deepEqual(await driver.query(text, ['given']), { fields, rows: expected.rows })
  assert.deepEqual(await driver.query(text, ['given']), { fields, rows: expected.rows }, 'the prepared statement')
})

test('a long text and many rows come back whole from the embedded store', async () => {
  const driver = await openNotes()
  const long = 'grüße🚀'.repeat(300_000)
  const { rows } = await driver.query('select $1::text || n::text from generate_series(1, 3) n', [long])
  assert.deepEqual(
    rows.map(([text]) => text === `${long}${rows.findIndex(row => row[0] === text) + 1}`),
    [true, true, true],
  )
  const many = await driver.query('select n from generate_series(1, 50000) n', [])
  assert.deepEqual([many.rows.length, many.rows.at(-1)], [50_000, [50_000]])
})

test('a failed statement names its cause, and the embedded store works on', async () => {
  const driver = await openNotes()
  const insert = (id: string) => driver.query('insert into notes values ($1) returning id', [id])
  await insert('1')
  await assert.rejects(insert('1'), { code: '23505', constraint: 'only_once', detail: 'Key (id)=(1) already exists.' })
  await assert.rejects(insert('x'), { code: '22P02' })
  await assert.rejects(driver.query('select * from nowhere', []), { code: '42P01' })
  await assert.rejects(driver.query('selec', []), { code: '42601' })
  await assert.rejects(driver.script('select 1; select * from nowhere; create table late ()'), { code: '42P01' })
  assert.deepEqual((await insert('2')).rows, [[2]])
  assert.deepEqual((await driver.query(`select to_regclass('late')`, [])).rows, [[null]])
})

test('a transaction on the embedded store that fails with any of its statements leaves nothing', async () => {
  const driver = await openNotes()
  const insert = (tx: Driver, id: number) => tx.query('insert into notes values ($1)', [String(id)])
  await driver.begin(tx => insert(tx, 1))
  await assert.rejects(
    driver.begin(tx => insert(tx, 1)),
    { code: '23505' },
  )
  await assert.rejects(
    driver.begin(async tx => {
      await insert(tx, 2)
      await insert(tx, 1)
    }),
    { code: '23505' },
  )
  await assert.rejects(
    driver.begin(async tx => {
      await tx.script('insert into notes values (3)')
      throw new Error('changed my mind')
    }),
    { message: 'changed my mind' },
  )
  await driver.begin(async tx => {
    await assert.rejects(tx.begin(inner => insert(inner, 1)))
    await Promise.all([insert(tx, 4), insert(tx, 5)])
  })
  await driver.begin(async () => {})
  const { rows } = await driver.query('select id from notes order by id', [])
  assert.deepEqual(rows, [[1], [4], [5]])
})

test('a transaction on the embedded store can be rolled back to before a schema change', async () => {
  const driver = await openNotes()
  const read = async (from: Driver) => (await from.query('select * from notes', [])).fields
  await assert.rejects(
    driver.begin(async tx => {
      assert.deepEqual(await read(tx), ['id'])
      await tx.script('alter table notes add column text text')
      assert.deepEqual(await read(tx), ['id', 'text'])
      throw new Error('changed my mind')
    }),
    { message: 'changed my mind' },
  )
  assert.deepEqual(await read(driver), ['id'])
})

test('a statement returns the columns of the changed table, and works when the session has forgotten it', async () => {
  const driver = await openNotes()
  const read = async () => (await driver.query('select * from notes', [])).fields
  assert.deepEqual(await read(), ['id'])
  await driver.script('alter table notes add column text text')
  assert.deepEqual(await read(), ['id', 'text'])
  await driver.query('alter table notes add column author text', [])
  assert.deepEqual(await read(), ['id', 'text', 'author'])
  await driver.script('deallocate all')
  assert.deepEqual(await read(), ['id', 'text', 'author'])
})
