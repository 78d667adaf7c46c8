/** Jobs that need attention. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../test/harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../../test/harness/jobs.ts'
import { succeedTasks } from '../store/tasks/settle.ts'
import { continueJobs, failStale, jobDeadlines, jobRetention } from './job-chores.ts'

const two = {
  name: 'j',
  stages: [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b' },
  ],
}

test('a job whose settler died before it could drive it on is driven on', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit(two)
  // The settle is committed, and its process has died.
  await succeedTasks(f.sql, await claim(f, ['a']))
  assert.equal(await statesOf(f, id), 'pending: a pending, b created')
  await continueJobs().run(f.engine.context)
  assert.equal(await statesOf(f, id), 'pending: a pending, b created', 'it may still be about to')
  await f.advance(10)
  await continueJobs().run(f.engine.context)
  assert.equal(await statesOf(f, id), 'running: a succeeded, b pending')
})

test('an errand that was left half done is done', async t => {
  const f = await fresh(t)
  const payloads = Array.from({ length: 2500 }, (_, n) => n)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a' },
      { name: 'b', task: 'b', payloads },
    ],
  })
  // The commit of a caller's own transaction is not reported, so only its first batch is done.
  await f.sql.begin(tx => f.engine.cancelJob(id, { tx }))
  assert.equal((await f.engine.job(id)).state, 'stopping')
  await f.advance(10)
  for (let round = 0; round < 3; round++) await continueJobs().run(f.engine.context)
  assert.equal(await statesOf(f, id), 'cancelled: a cancelled, b cancelled')
})

test('a job whose deadline passes is stopped, and has expired when what it had in hand is back', async t => {
  const f = await fresh(t)
  const { id, deadlineAt } = await f.engine.submit({ ...two, deadlineSeconds: 60 })
  assert.notEqual(deadlineAt, null)
  const held = await claim(f, ['a'])
  await f.advance(50)
  await jobDeadlines.run(f.engine.context)
  assert.equal((await f.engine.job(id)).state, 'pending')
  await f.advance(11)
  await jobDeadlines.run(f.engine.context)
  assert.equal(await statesOf(f, id), 'stopping: a stopping, b cancelled')
  await say(f, held, 'failed')
  assert.equal(await statesOf(f, id), 'expired: a cancelled, b cancelled')
  await f.engine.retryJob(id)
  await jobDeadlines.run(f.engine.context)
  assert.equal(await statesOf(f, id), 'pending: a pending, b created', 'a fresh round has a fresh deadline')
})

test('a gate that nobody passes in time fails its stage', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', gate: { timeoutSeconds: 60 }, task: 'a' },
      { name: 'b', task: 'b' },
    ],
  })
  await f.advance(50)
  await jobDeadlines.run(f.engine.context)
  assert.equal(await statesOf(f, id), 'pending: a waiting, b created')
  await f.advance(11)
  await jobDeadlines.run(f.engine.context)
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
  assert.match((await stageOf(f, id, 'a')).error!.message, /timed out/)
})

test('a job that has come to a halt fails in the words of seed 003', async t => {
  const f = await fresh(t, { rules: 'broken on purpose' })
  const { id } = await f.engine.submit({ ...two, staleSeconds: 7200 })
  const { id: patient } = await f.engine.submit({ ...two, staleSeconds: 7200 })
  await workOff(f, 'a')
  // A fault that our code cannot cause: the pending work of b is gone.
  await f.sql.script(`
    delete from pawl.due where lane_id in (select lane_id from pawl.stage where job_id = '${id}');
    alter table pawl.task disable trigger user;
    delete from pawl.task where job_id = '${id}' and ended_at is null;
    alter table pawl.task enable trigger user`)
  await f.advance(7100)
  await failStale.run(f.engine.context)
  assert.equal((await f.engine.job(id)).state, 'running')
  await f.advance(200)
  await failStale.run(f.engine.context)
  const { endsAs, cause } = await f.engine.job(id)
  assert.deepEqual([endsAs, cause], ['failed', 'Job timed out or was orphaned'])
  assert.equal((await f.engine.job(patient)).state, 'running', 'one that only lacks a worker is not stale')
})

test('a job at its gate is never stale', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', staleSeconds: 60, stages: [{ name: 'a', gate: true }] })
  await f.advance(7300)
  await failStale.run(f.engine.context)
  assert.equal((await f.engine.job(id)).state, 'pending')
})

test('a job that was kept for long enough is gone, with all that belongs to it', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit(two)
  const { id: open } = await f.engine.submit(two)
  await workOff(f, 'a')
  await f.engine.cancelJob(open)
  await workOff(f, 'b', 'failed')
  await jobRetention.run(f.engine.context)
  assert.equal((await f.engine.job(id)).state, 'failed')
  await f.advance(15 * 86_400)
  await jobRetention.run(f.engine.context)
  await assert.rejects(f.engine.job(id), { code: 'JOB_NOT_FOUND' })
  const [left] = await f.sql<{ n: number }>`
    select (select count(*) from pawl.task) + (select count(*) from pawl.stage) + (select count(*) from pawl.lane) as n`
  assert.equal(left!.n, 0)
})
