import assert from 'node:assert/strict'
import { test } from 'node:test'
import { latch } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { sync } from './sync.ts'

test('a sync that fails claims nothing later, for nobody would hear of it', async t => {
  const { engine } = await fresh(t)
  const { sql } = engine.context
  const looked = latch()
  let hasLooked = false
  const late: string[] = []
  const tag = async (...[strings, ...values]: Parameters<Sql>) => {
    const text = strings.join('?')
    if (hasLooked) late.push(text)
    if (text.includes('from pawl.cancel ')) {
      await looked.opened
      throw new Error('the store is away')
    }
    const rows = await sql(strings, ...values)
    if (!text.includes('into pawl.claim ')) return rows
    hasLooked = true
    looked.open()
    return rows
  }
  const context = { ...engine.context, sql: Object.assign(tag, sql) as Sql }
  const request = { worker: 'w', queues: ['a'], claim: 1, waitSeconds: 60 }
  await assert.rejects(sync(context, request), /the store is away/)
  await new Promise(setImmediate)
  assert.deepEqual(late, [], 'after its look it asks for nothing more')
  const { id } = await engine.enqueue('a', null)
  await new Promise(setImmediate)
  assert.equal((await engine.task(id)).state, 'queued')
  assert.deepEqual(late, [])
})
