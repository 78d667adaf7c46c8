/** Requests that apply only in the state the caller has seen. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { jobIn, stageIn } from '../../../test/harness/job-in.ts'
import { served } from '../../../test/harness/served.ts'
import { taskIn } from '../../../test/harness/task-in.ts'

test('a request for a state that it is not in any more is refused and says which it is in', async t => {
  const run = await fresh(t)
  const { engine } = run
  const failed = await jobIn(run, 'failed')
  // Without `ifState`, a job that has failed meanwhile would get another round.
  const late = engine.resumeJob(failed, { ifState: 'paused' })
  await assert.rejects(late, { code: 'MOVE_REFUSED', details: { job: failed, state: 'failed', ifState: ['paused'] } })
  const waiting = await stageIn(run, 'waiting')
  await assert.rejects(engine.approve(waiting.id, { ifState: ['created', 'pending'] }), { code: 'MOVE_REFUSED' })
  const queued = await taskIn(run, 'queued')
  await assert.rejects(engine.cancel(queued.id, { ifState: 'running' }), { code: 'MOVE_REFUSED' })
  await assert.rejects(engine.deleteJob(failed, { ifState: 'succeeded' }), { code: 'MOVE_REFUSED' })
  await assert.rejects(engine.retryJob(failed, { clone: true, ifState: 'cancelled' }), { code: 'MOVE_REFUSED' })
  assert.deepEqual(
    [(await engine.job(failed)).state, (await engine.stage(waiting.id)).state, (await engine.task(queued.id)).state],
    ['failed', 'waiting', 'queued'],
  )
  await assert.rejects(engine.cancel(queued.id, { ifState: 'queueing' }), { code: 'OPTION_INVALID' })
})

test('in the state that it was seen in, the request is granted, also over HTTP', async t => {
  const run = await served(t)
  const paused = await jobIn(run, 'paused')
  assert.equal((await run.client.resumeJob(paused, { ifState: ['paused'] })).state, 'pending')
  const { id } = await stageIn(run, 'waiting')
  assert.equal((await run.client.approve(id, { ifState: 'waiting' })).state, 'pending')
  const task = await taskIn(run, 'queued')
  assert.equal((await run.client.cancel(task.id, { ifState: 'queued' })).state, 'cancelled')
})
