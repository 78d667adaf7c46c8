/** Code in the docs is code that runs: every example is in a file that is compiled and tested. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { roles } from '../../src/kernel/role.ts'
import { taskFields } from '../../src/protocol/tasks/new-task.ts'

const root = findRoot(import.meta.dirname)

test('the examples in docs/testing.md are the files in examples/testing, word for word', () => {
  const page = readFileSync(join(root, 'docs/testing.md'), 'utf8')
  const blocks = [...page.matchAll(/```ts\n(.*?)```/gs)].map(match => match[1])
  const folder = join(root, 'examples/testing')
  const files = readdirSync(folder).map(name => readFileSync(join(folder, name), 'utf8'))
  assert.deepEqual(blocks.toSorted(), files.toSorted())
})

test('the examples in docs/transactions.md are the files in examples/transactions, word for word', () => {
  const page = readFileSync(join(root, 'docs/transactions.md'), 'utf8')
  const blocks = [...page.matchAll(/```ts\n(.*?)```/gs)].map(match => match[1])
  const folder = join(root, 'examples/transactions')
  const names = readdirSync(folder).filter(name => name.endsWith('.ts'))
  const files = names.map(name => readFileSync(join(folder, name), 'utf8'))
  assert.deepEqual(blocks.toSorted(), files.toSorted())
})

test('the examples in docs/typescript.md are the files in examples/typescript, word for word', () => {
  const page = readFileSync(join(root, 'docs/typescript.md'), 'utf8')
  const blocks = [...page.matchAll(/```ts \S+\n(.*?)```/gs)].map(match => match[1])
  const folder = join(root, 'examples/typescript')
  const files = readdirSync(folder).map(name => readFileSync(join(folder, name), 'utf8'))
  assert.deepEqual(blocks.toSorted(), files.toSorted())
})

test('docs/workers.md lists every option of a task', () => {
  const page = readFileSync(join(root, 'docs/workers.md'), 'utf8')
  const section = page.split('\n## ').find(text => text.startsWith('Options of a task'))!
  const rows = section.split('\n').filter(line => line.startsWith('| `'))
  const listed = rows.flatMap(row => [...row.split(' | ')[0]!.matchAll(/`(\w+)/g)].map(match => match[1]!))
  const { type: _, payload: _payload, ...options } = taskFields
  assert.deepEqual([...new Set(listed)].sort(), Object.keys(options).sort())
})

test('SECURITY.md says what every role may do, and the README leads there', () => {
  const page = readFileSync(join(root, 'SECURITY.md'), 'utf8')
  for (const role of Object.keys(roles)) assert.match(page, new RegExp(`^\\| \`${role}\` \\|`, 'm'))
  assert.match(readFileSync(join(root, 'README.md'), 'utf8'), /\(SECURITY\.md\)/)
})

test('every field of a job spec has a description in docs/job.schema.json, for editors', () => {
  interface Described {
    readonly description?: string
    readonly properties: Record<string, Described>
    readonly anyOf?: readonly Described[]
  }
  const schema = JSON.parse(readFileSync(join(root, 'docs/job.schema.json'), 'utf8'))
  const stage = schema.$defs.stage as Described
  const { gate, compensate, retry, run } = stage.properties
  const objects = { job: schema as Described, stage, gate: gate!.anyOf![1]!, compensate, retry, run }
  const missing = Object.entries(objects).flatMap(([at, object]) =>
    Object.entries(object!.properties).flatMap(([name, { description }]) => (description ? [] : [`${at}.${name}`])),
  )
  assert.deepEqual(missing, [])
})
