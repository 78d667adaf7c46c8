import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { begin, twoStages } from '../../../test/harness/job-in.ts'
import { say, workOff } from '../../../test/harness/jobs.ts'

test('a job and a stage say when their first task of the round began', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: twoStages })
  const starts = async () => {
    const { startedAt, stages } = await f.engine.job(id)
    return [startedAt, ...stages.map(stage => stage.startedAt)]
  }
  assert.deepEqual(await starts(), [null, null, null])
  const held = await begin(f, 'a')
  const [job, a, b] = await starts()
  assert.deepEqual([a, b], [job, null])
  assert.ok(job !== null)
  // Pausing and resuming does not count as another start.
  await f.advance(10)
  await f.engine.pauseJob(id)
  await f.engine.resumeJob(id)
  await say(f, held, 'succeeded')
  await workOff(f, 'b', 'failed')
  assert.deepEqual((await starts()).slice(0, 2), [job, a])
  // A metadata change of a finished job does not begin a round either.
  await f.engine.patchJob(id, { metadata: { seen: true } })
  assert.deepEqual((await starts()).slice(0, 2), [job, a])
  await f.advance(10)
  await f.engine.retryJob(id)
  assert.deepEqual(await starts(), [null, a, null])
  await workOff(f, 'b')
  const [again, , second] = await starts()
  assert.ok(again !== null && again! > job! && second === again)
})

test('jobs are counted, whatever page of them is read', async t => {
  const f = await fresh(t)
  assert.equal((await f.engine.jobs({ total: true })).total, 0)
  for (const name of ['x', 'x', 'y']) await f.engine.submit({ name, stages: twoStages })
  await begin(f, 'a', 1)
  const page = await f.engine.jobs({ limit: 1, total: true })
  assert.deepEqual([page.items.length, page.total], [1, 3])
  assert.equal((await f.engine.jobs({ limit: 1, cursor: page.next!, total: true })).total, 3)
  assert.equal((await f.engine.jobs({ name: 'x', total: true })).total, 2)
  assert.equal((await f.engine.jobs({ state: ['running', 'paused'], total: true })).total, 1)
  assert.equal('total' in (await f.engine.jobs()), false)
})
