/** Held tasks of a job that is paused, aborted or failed: every report is accepted and recorded. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endGraces } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { begin, jobnikServed, oneStage, someType, work } from './jobnik-in.ts'

const three = [{ data: {} }, { data: {}, maxAttempts: 2 }, { data: {} }]

test('a job that is PAUSED with work in hand takes its reports, gives out nothing, and goes on where it was', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, type, stage } = await oneStage(jobnik, three)
  const one = await begin(jobnik, type)
  const two = await begin(jobnik, type)
  assert.equal((await jobnik.setJob(jobId, 'PAUSED')).status, 200)
  assert.equal(await jobnik.dequeue(type), null)
  assert.deepEqual((await jobnik.report(one.id, 'COMPLETED')).body.status, 'COMPLETED')
  assert.deepEqual((await jobnik.report(two.id, 'FAILED')).body.status, 'RETRIED')
  assert.equal(await jobnik.dequeue(type), null, 'what is to be tried again waits, too')
  const paused = await jobnik.job(jobId)
  assert.deepEqual([paused.status, paused.stages![0]!.status], ['PAUSED', 'IN_PROGRESS'])
  const { summary } = await jobnik.stage(stage.id)
  assert.deepEqual([summary.completed, summary.retried, summary.pending, summary.total], [1, 1, 1, 3])
  assert.equal((await jobnik.setJob(jobId, 'PENDING')).status, 200)
  await work(jobnik, type)
  await work(jobnik, type)
  assert.equal((await jobnik.job(jobId)).status, 'COMPLETED')
})

test('a job that is resumed in its last stage ends as it should, though that stage was done while it was PAUSED', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, type } = await oneStage(jobnik)
  const last = await jobnik.createStage(jobId, someType())
  await jobnik.createTasks(last.id, [{ data: {} }, { data: {} }])
  await work(jobnik, type)
  const [one, two] = [await begin(jobnik, last.type), await begin(jobnik, last.type)]
  await jobnik.setJob(jobId, 'PAUSED')
  await jobnik.report(one.id, 'COMPLETED')
  await jobnik.setJob(jobId, 'PENDING')
  // The job had started and has a held task, so it is in progress again at once.
  assert.equal((await jobnik.job(jobId)).status, 'IN_PROGRESS')
  await jobnik.setJob(jobId, 'PAUSED')
  assert.equal((await jobnik.report(two.id, 'COMPLETED')).status, 200)
  const paused = await jobnik.job(jobId)
  assert.deepEqual([paused.status, paused.percentage], ['PAUSED', 100])
  assert.equal((await jobnik.setJob(jobId, 'PENDING')).status, 200)
  assert.equal((await jobnik.job(jobId)).status, 'COMPLETED')
})

test('a job that begins just as it is PAUSED or ABORTED is so all the same', async t => {
  const { jobnik } = await jobnikServed(t)
  for (const status of ['PAUSED', 'ABORTED', 'PAUSED', 'ABORTED']) {
    const { jobId, type } = await oneStage(jobnik)
    const [answer] = await Promise.all([jobnik.setJob(jobId, status), jobnik.dequeue(type)])
    assert.deepEqual([answer.status, (await jobnik.job(jobId)).status], [200, status])
  }
})

test('a PAUSED job whose work in hand fails for good is FAILED, and cannot be resumed', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, type } = await oneStage(jobnik)
  const task = await begin(jobnik, type)
  await jobnik.setJob(jobId, 'PAUSED')
  assert.equal((await jobnik.report(task.id, 'FAILED')).body.status, 'FAILED')
  assert.equal((await jobnik.job(jobId)).status, 'FAILED')
  const { status, body } = await jobnik.setJob(jobId, 'PENDING')
  assert.deepEqual([status, body.message], [400, 'Illegal status transition from FAILED to PENDING'])
})

test('a job that is ABORTED with work in hand is ABORTED at once, and takes its reports', async t => {
  const { jobnik, engine } = await jobnikServed(t)
  const { jobId, type, stage } = await oneStage(jobnik, three)
  const [one, two] = [await begin(jobnik, type), await begin(jobnik, type)]
  assert.equal((await jobnik.setJob(jobId, 'ABORTED')).status, 200)
  const aborted = await jobnik.job(jobId)
  assert.deepEqual([aborted.status, aborted.stages![0]!.status], ['ABORTED', 'ABORTED'])
  assert.equal(await jobnik.dequeue(type), null)
  assert.deepEqual((await jobnik.task(one.id)).status, 'IN_PROGRESS')
  const done = await jobnik.report(one.id, 'COMPLETED')
  assert.deepEqual([done.status, done.body.status], [200, 'COMPLETED'])
  // The task has attempts left, but they will not be used.
  const failed = await jobnik.report(two.id, 'FAILED')
  assert.deepEqual([failed.status, failed.body.status, failed.body.attempts], [200, 'FAILED', 1])
  const { status, summary } = await jobnik.stage(stage.id)
  assert.deepEqual([status, summary.completed, summary.failed], ['ABORTED', 1, 2])
  assert.equal((await jobnik.job(jobId)).status, 'ABORTED')
  assert.equal((await engine.job(jobId)).state, 'cancelled')
})

test('a stage that fails while others of it are in hand is FAILED at once, and takes their reports', async t => {
  const { jobnik, engine } = await jobnikServed(t)
  const { jobId, type, stage } = await oneStage(jobnik, three)
  const [one, two] = [await begin(jobnik, type), await begin(jobnik, type)]
  await jobnik.report(one.id, 'FAILED')
  assert.deepEqual([(await jobnik.stage(stage.id)).status, (await jobnik.job(jobId)).status], ['FAILED', 'FAILED'])
  for (const to of ['PENDING', 'PAUSED', 'ABORTED']) assert.equal((await jobnik.setJob(jobId, to)).status, 400)
  assert.equal((await jobnik.report(two.id, 'COMPLETED')).body.status, 'COMPLETED')
  assert.equal((await engine.job(jobId)).state, 'failed')
})

test('work in hand may be reported after any time within the lease, whatever became of its job', async t => {
  const { jobnik, engine, advance } = await jobnikServed(t)
  const { jobId, type } = await oneStage(jobnik)
  const task = await begin(jobnik, type)
  await advance(60_000)
  await jobnik.setJob(jobId, 'ABORTED')
  await advance(26_000)
  for (const chore of [endGraces, rescue({ beginsBlind: false })]) await chore.run(engine.context)
  assert.equal((await jobnik.report(task.id, 'COMPLETED')).body.status, 'COMPLETED')
})

test('a job is deleted right after its abort, with work in hand; a report after that is 404', async t => {
  const { jobnik } = await jobnikServed(t)
  const { jobId, type, stage } = await oneStage(jobnik, three)
  const task = await begin(jobnik, type)
  for (const status of ['IN_PROGRESS', 'PAUSED']) {
    const { status: code, body } = await jobnik.ask('DELETE', `/v1/jobs/${jobId}`)
    const expected = { message: 'JOB_NOT_IN_FINITE_STATE', code: 'JOB_NOT_IN_FINITE_STATE' }
    assert.deepEqual([code, body], [400, expected], status)
    await jobnik.setJob(jobId, 'PAUSED')
  }
  await jobnik.setJob(jobId, 'ABORTED')
  const deleted = await jobnik.ask('DELETE', `/v1/jobs/${jobId}`)
  assert.deepEqual([deleted.status, deleted.body], [200, { code: 'JOB_DELETED_SUCCESSFULLY' }])
  const late = await jobnik.report(task.id, 'COMPLETED')
  assert.deepEqual([late.status, late.body], [404, { message: 'TASK_NOT_FOUND', code: 'TASK_NOT_FOUND' }])
  for (const path of [`jobs/${jobId}`, `stages/${stage.id}`, `tasks/${task.id}`]) {
    assert.equal((await jobnik.ask('GET', `/v1/${path}`)).status, 404)
  }
  assert.equal((await jobnik.ask('DELETE', `/v1/jobs/${jobId}`)).body.code, 'JOB_NOT_FOUND')
})
