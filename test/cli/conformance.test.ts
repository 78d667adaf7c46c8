import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { cli } from '../harness/cli.ts'

const worker = join(import.meta.dirname, '../conformance/programs/worker.js')

test('pawl conformance says of a worker program which promises it keeps, and ends with 1 if it breaks one', async t => {
  const pawl = await cli(t, {})
  const good = await pawl.run(['conformance', '--worker', `${process.execPath} ${worker}`, '--only', 'output'])
  assert.equal(good.code, 0, good.out + good.err)
  assert.match(good.out, /It conforms/)
  const bad = await pawl.run(['conformance', '--worker', 'true', '--only', 'output', '--json'])
  assert.equal(bad.code, 1, bad.out + bad.err)
  assert.equal(JSON.parse(bad.out).passed, false)
})
