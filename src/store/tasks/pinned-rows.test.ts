import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { needsServer } from '../../../test/harness/databases.ts'
import { fresh } from '../../../test/harness/fresh.ts'

test('while an old snapshot keeps all versions of a row, a task still stays on its page', needsServer(), async t => {
  const { engine, sql, sync, url, schema } = await fresh(t)
  const pages = async () => {
    const rows = await sql<{
      id: string
      page: string
    }>`select id, split_part(ctid::text, ',', 1) as page from pawl.task`
    return new Map(rows.map(({ id, page }) => [id, page]))
  }
  const pin = new pg.Client(url)
  await pin.connect()
  try {
    await pin.query('begin isolation level repeatable read')
    await pin.query(`select count(*) from "${schema}".task`)
    for (const length of [100, 400, 1000]) {
      const payload = 'x'.repeat(length)
      await engine.enqueueMany(Array.from({ length: 100 }, () => ({ type: `a${length}`, payload })))
      const before = await pages()
      const { claimed } = await sync({ worker: 'host-12345-ab12', queues: [`a${length}`], claim: 100 })
      const settled = claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const }))
      await sync({ worker: 'host-12345-ab12', settled })
      const after = await pages()
      const moved = claimed.filter(({ id }) => before.get(id) !== after.get(id))
      assert.equal(moved.length, 0, `with payloads of ${length} characters`)
    }
    await pin.query('commit')
  } finally {
    await pin.end()
  }
})
