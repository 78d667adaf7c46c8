import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { laneWith } from '../../../test/harness/lane-with.ts'
import { setLanePriority } from './lanes.ts'

test("a job's tasks are claimed by its new priority, and shown with it", async t => {
  const run = await fresh(t)
  const low = await laneWith(run, 1, { queue: 'a', priority: -1 })
  const high = await laneWith(run, 1, { queue: 'a', priority: 1 })
  await setLanePriority(run.sql, low.jobId, 2)
  const { claimed } = await run.sync({ queues: ['a'], claim: 2 })
  assert.deepEqual(
    claimed.map(({ id }) => id),
    [...low.ids, ...high.ids],
  )
  assert.equal((await run.engine.task(low.ids[0]!)).priority, 2)
})
