import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { fresh } from '../../test/harness/fresh.ts'

test('a beat that finds its task locked is tried again or refused, never taken for one that renewed the lease', async t => {
  const { engine, sync, schema, url } = await fresh(t)
  const { id } = await engine.enqueue('long', {})
  const { claimed } = await sync({ queues: ['long'], claim: 1 })
  const { epoch } = claimed[0]!
  const other = new pg.Client(url)
  await other.connect()
  t.after(() => other.end())
  await other.query('begin')
  await other.query(`select 1 from ${schema}.task where id = $1 for update`, [id])

  const plain = await sync({ beats: [{ id, epoch }] })
  assert.deepEqual(
    plain.refused.map(({ code }) => code),
    ['TASK_BUSY'],
  )
  const { refused } = await sync({ beats: [{ id, epoch, checkpoint: { page: 1 } }] })
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['TASK_BUSY'],
  )

  const trying = sync({ beats: [{ id, epoch, checkpoint: { page: 2 } }] })
  await other.query('commit')
  assert.deepEqual((await trying).refused, [])
  assert.deepEqual((await engine.task(id)).checkpoint, { page: 2 })

  await other.query('begin')
  await other.query(`select 1 from ${schema}.task where id = $1 for update`, [id])
  const cancelling = engine.cancel(id, { mode: 'hard' })
  const late = sync({ beats: [{ id, epoch, checkpoint: { page: 3 } }] })
  await other.query('commit')
  await cancelling
  const codes = (await late).refused.map(({ code }) => code)
  // Whichever came first: what is not kept is never acknowledged.
  assert.deepEqual((await engine.task(id)).checkpoint, { page: codes.length === 0 ? 3 : 2 })
  if (codes.length > 0) assert.ok(['LEASE_LOST', 'TASK_BUSY'].includes(codes[0]!))
})
