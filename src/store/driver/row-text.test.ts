import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { parseRow, withTextRows, withTextValues } from './row-text.ts'

test('every text comes back as it went in a row that is sent as text', async t => {
  const { sql } = await fresh(t)
  const words = ['', ' ', ',', '"', '""', '\\', '(a,b)', '()', "it's", 'a\n\tb', 'NULL', 'plain', '日本 🚀', null]
  for (const word of words) {
    const [row] = await sql<{ row: string }>`
      select r::text as row from (select ${word}::text, 1, ${words}::text[], ${word}::text) as r`
    const [first, one, list, last] = parseRow(row!.row)
    assert.deepEqual([first, one, last], [word, '1', word])
    const [same] = await sql<{ same: boolean }>`select ${list!}::text[] = ${words}::text[] as same`
    assert.equal(same!.same, true)
  }
  const [nothing] = await sql<{ row: string }>`select r::text as row from (select null, null, null) as r`
  assert.deepEqual(parseRow(nothing!.row), [null, null, null])
  const [empty] = await sql<{ row: string }>`select r::text as row from (select) as r`
  assert.deepEqual(parseRow(empty!.row), [])
})

test('a statement returns its rows as text, whatever it begins with', () => {
  const end = '\n) select pawl_row::text from pawl_row'
  const cases = {
    'select 1': 'with pawl_row as (select 1',
    '\n -- (with\n delete from a returning *': '\n -- (with\n with pawl_row as (delete from a returning *',
    "with a as (select ')'), b (c) as materialized (insert into d select 1 returning c) update e set f = 1":
      "with a as (select ')'), b (c) as materialized (insert into d select 1 returning c) , pawl_row as (update e set f = 1",
    'with "select" as (values (1)) values (2)': 'with "select" as (values (1)) , pawl_row as (values (2)',
  }
  for (const [text, expected] of Object.entries(cases)) assert.equal(withTextRows(text), expected + end)
})

test('every parameter is text, and is cast to its type once', () => {
  assert.equal(withTextValues('a = any ($1)', ['uuid[]']), 'a = any ((select $1::text::uuid[])::uuid[])')
})
