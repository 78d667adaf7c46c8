import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { encode, inList, json, literal, makeSql } from './sql.ts'

/** Values that are easily damaged in transit: quotes, braces, empty values, other alphabets, very long text. */
const words = [
  '',
  ' ',
  'plain',
  "it's",
  '"quoted"',
  'back\\slash',
  '\\"',
  '{a,b}',
  '{}',
  'NULL',
  'null',
  'a,b',
  'two\nlines\ttab\r',
  '$1 :: text',
  'grüße 日本 🚀',
  'x'.repeat(100_000),
]

test('every text comes back as it went, alone and in a list', async t => {
  const { sql } = await fresh(t)
  for (const word of words) {
    const [row] = await sql<{ word: string }>`select ${word}::text as word`
    assert.equal(row!.word, word)
  }
  const [row] = await sql<{ list: string[]; size: number }>`
      select ${words}::text[] as list, cardinality(${words}::text[]) as size`
  assert.deepEqual(row, { list: words, size: words.length })
})

test('nothing is nothing, and never the word for it', async t => {
  const { sql } = await fresh(t)
  const [row] = await sql`
      select ${null}::text as none, ${[null, 'NULL', null]}::text[] as texts, ${[null, 1]}::int[] as numbers,
             ${[]}::text[] as empty, ${null}::text[] as no_list`
  assert.deepEqual(row, {
    none: null,
    texts: [null, 'NULL', null],
    numbers: [null, 1],
    empty: [],
    noList: null,
  })
})

test('numbers, booleans and dates come back as they went, alone and in lists', async t => {
  const { sql } = await fresh(t)
  const dates = [new Date(0), new Date('2026-02-28T23:59:59.999Z'), new Date('9999-12-31T00:00:00Z')]
  const floats = [0, -1.5, 0.1, 1e-300, 1.7976931348623157e308]
  const [row] = await sql`
      select ${7}::int as seven, ${2 ** 52}::bigint as great, ${0.1}::float8 as tenth, ${true}::boolean as yes,
             ${false}::boolean as no, ${dates[1]!}::timestamptz as moment, ${floats}::float8[] as floats,
             ${[true, false, null]}::boolean[] as flags, ${dates}::timestamptz[] as moments, ${[3, -4]}::int[] as ints`
  assert.deepEqual(row, {
    seven: 7,
    great: 2 ** 52,
    tenth: 0.1,
    yes: true,
    no: false,
    moment: dates[1],
    floats,
    flags: [true, false, null],
    moments: dates,
    ints: [3, -4],
  })
})

test('JSON in a list keeps its quotes, its nulls and its missing ones apart', async t => {
  const { sql } = await fresh(t)
  const values = [{ a: '"}\\' }, [1, null], 'text', 0, false, null, undefined]
  const rows = await sql<{ value: unknown; isMissing: boolean }>`
      select v as value, v is null as is_missing
        from unnest(${values.map(json)}::jsonb[]) with ordinality as u (v, n) order by n`
  assert.deepEqual(
    rows.map(row => row.value),
    [...values.slice(0, -2), null, null],
  )
  assert.deepEqual(
    rows.map(row => row.isMissing),
    [false, false, false, false, false, true, true],
  )
})

test('a value is never read as part of the statement', async t => {
  const { sql } = await fresh(t)
  const evil = `'); drop table pawl.task; --`
  const [row] = await sql<{ text: string; list: string[] }>`select ${evil}::text as text, ${[evil]}::text[] as list`
  assert.deepEqual(row, { text: evil, list: [evil] })
  await sql`select from pawl.task`
})

test('columns are named in camel case, and words of our own go into the text', async t => {
  const { sql } = await fresh(t)
  const rows = await sql`
      select s as one_two_three, ${1}::int + ${literal('2')} as sum
        from unnest(${['queued', 'running', 'failed']}::text[]) as s where s in (${inList(['queued', 'failed'])})`
  assert.deepEqual(rows, [
    { oneTwoThree: 'queued', sum: 3 },
    { oneTwoThree: 'failed', sum: 3 },
  ])
})

test('a transaction that fails leaves nothing; inside another, only its own part is undone', async t => {
  const { sql } = await fresh(t)
  const names = async () => (await sql<{ type: string }>`select type from pawl.task_type order by 1`).map(r => r.type)
  const fails = async () => Promise.reject(new Error('no'))
  await assert.rejects(
    sql.begin(async tx => {
      await tx`insert into pawl.task_type (type) values ('lost')`
      await fails()
    }),
    /no/,
  )
  assert.deepEqual(await names(), [])
  await sql.begin(async tx => {
    assert.equal(tx.isTransaction, true)
    await tx`insert into pawl.task_type (type) values ('outer')`
    const inner = tx.begin(async again => {
      await again`insert into pawl.task_type (type) values ('inner')`
      await again`select 1 / 0`
    })
    await assert.rejects(inner, { code: '22012' })
    await tx`insert into pawl.task_type (type) values ('after')`
  })
  assert.deepEqual(await names(), ['after', 'outer'])
})

test('a schema of another name is put in where ours is spelled, and only there', async () => {
  const sent: string[] = []
  const driver = {
    isTransaction: false,
    checkTurn() {},
    query: async (text: string) => {
      sent.push(text)
      return { fields: [], rows: [] }
    },
    script: async (text: string) => void sent.push(text),
    begin: () => Promise.reject(new Error('not asked')),
  }
  const sql = makeSql(driver, 'mine')
  await sql`select * from pawl.task t join pawl.lane l on spawl.x = ${'pawl.task'}`
  await sql.script('vacuum pawl.task')
  await makeSql(driver, 'pawl')`select from pawl.task`
  assert.deepEqual(sent, [
    'select * from "mine".task t join "mine".lane l on spawl.x = $1',
    'vacuum "mine".task',
    'select from pawl.task',
  ])
})

test('a date that is none is refused before it is sent', () => {
  assert.throws(() => encode(new Date('never')), RangeError)
  assert.throws(() => encode([new Date('never')]), RangeError)
})

test('comment lines of a statement are not sent to the database', async t => {
  const { sql } = await fresh(t)
  const [row] = await sql<{ text: string; dashes: string }>`
    -- Explains the statement.
    select current_query() as text,
    -- Explains the column,
    -- in two lines.
           ${'-- sent'} || '-- kept' as dashes`
  assert.equal(row!.dashes, '-- sent-- kept')
  assert.doesNotMatch(row!.text, /Explains|in two lines/)
})
