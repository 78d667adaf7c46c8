import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'

test('a sync that waits finds a task that another claim has put back below the place from which it began', async t => {
  const { engine } = await fresh(t)
  const ids = (await engine.enqueueMany(Array.from({ length: 60 }, () => ({ type: 'a' })))).map(({ id }) => id)
  const { sql, claimHints } = engine.context
  const [lane] = await sql<{ id: number; us: number }>`
    select lane_id as id, (date_part('epoch', max(run_at)) * 1000000)::bigint as us from pawl.due group by lane_id`
  const place = { laneId: lane!.id, runAtUs: Number(lane!.us), id: ids.at(-1)! }
  claimHints.learn([place], { usedHints: false, isFull: true, tookMs: 60_000 })
  const { claimed } = await engine.sync({ worker: 'w', queues: ['a'], claim: 1, waitSeconds: 2 })
  assert.equal(claimed[0]?.id, ids[0])
})

test('places are remembered only while claims get all that they ask for', async t => {
  const { claimHints } = (await fresh(t)).engine.context
  const place = { laneId: 1, runAtUs: 1, id: '00000000-0000-7000-8000-000000000001' }
  claimHints.learn([place], { usedHints: false, isFull: true, tookMs: 60_000 })
  assert.deepEqual(claimHints.current(), [place])
  claimHints.learn([place], { usedHints: true, isFull: false, tookMs: 1 })
  assert.deepEqual(claimHints.current(), [])
})
