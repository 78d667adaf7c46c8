import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEmbedded } from './embedded.ts'

test('whoever waits too long for a turn on the embedded store is told that it is busy, and nothing of it is done', async t => {
  const store = await openEmbedded(undefined, 0.05)
  t.after(() => store.close())
  await store.driver.script('create table notes (note text)')
  let go = () => {}
  const gone = new Promise<void>(resolve => {
    go = resolve
  })
  const holder = store.driver.begin(async tx => {
    await tx.query(`insert into notes values ('first')`, [])
    await gone
  })
  await assert.rejects(store.driver.query(`insert into notes values ('late')`, []), { code: 'STORE_BUSY', status: 503 })
  go()
  await holder
  const { rows } = await store.driver.query('select note from notes', [])
  assert.deepEqual(rows, [['first']])
})
