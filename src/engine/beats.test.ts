import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { fresh } from '../../test/harness/fresh.ts'

test('a checkpoint that finds its task locked is tried again or refused, never acknowledged and lost', async t => {
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
  assert.deepEqual(plain.refused, [], 'a beat that carries nothing is passed over in silence')
  const { refused } = await sync({ beats: [{ id, epoch, checkpoint: { page: 1 } }] })
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['TASK_BUSY'],
  )

  const trying = sync({ beats: [{ id, epoch, checkpoint: { page: 2 } }] })
  await other.query('commit')
  assert.deepEqual((await trying).refused, [])
  assert.deepEqual((await engine.task(id)).checkpoint, { page: 2 })
})
