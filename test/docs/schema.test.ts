import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { schemaPage } from '../../scripts/schema-page.ts'
import { fresh } from '../harness/fresh.ts'

const page = readFileSync(join(findRoot(import.meta.dirname), 'docs/schema.sql'), 'utf8')

test('docs/schema.sql is the schema of a new store', async t => {
  const { sql } = await fresh(t)
  assert.equal(await schemaPage(sql), page, 'docs/schema.sql is stale: npm run docs')
})

test('running docs/schema.sql creates that schema', async t => {
  const { sql } = await fresh(t, { rules: 'broken on purpose' })
  const copy = page.replace('create schema pawl;', `create schema "${sql.schema}";`)
  await sql.begin(tx => tx.script(`drop schema "${sql.schema}" cascade;\n${copy}\nreset check_function_bodies;`))
  assert.equal(await schemaPage(sql), page)
})

test('docs/schema.sql says for every table what it is for', () => {
  const tables = page.match(/^(.*\n)create table pawl\.\w+/gm) ?? []
  assert.ok(tables.length > 25)
  assert.deepEqual(
    tables.filter(text => !text.startsWith('-- ')),
    [],
  )
})
