/** Compensation: if the job fails or is cancelled, succeeded work is undone, last stage first. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allChores } from '../../src/babysitter/babysitter.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, statesOf, workOff } from '../harness/jobs.ts'

async function submit({ engine }: Fresh, stages: JobSpec['stages'] & object, more: Partial<JobSpec> = {}) {
  return (await engine.submit({ name: 'j', stages, ...more })).id
}

/** A stage that can be undone, and one after it. */
const twoStages = [
  { name: 'a', task: 'a', compensate: { task: 'undo' } },
  { name: 'b', task: 'b' },
]

/** A job of those two stages, the first of which has succeeded. */
async function halfDone(f: Fresh, more: Partial<JobSpec> = {}) {
  const job = await submit(f, twoStages, more)
  await workOff(f, 'a')
  return job
}

/** The undo task exists and is done; then the job ends as decided. */
async function undoneAs(f: Fresh, job: string, end: string) {
  assert.equal((await f.engine.job(job)).state, 'compensating')
  assert.equal(await workOff(f, 'undo'), 1)
  assert.equal((await f.engine.job(job)).state, end)
}

/** One run of every chore except the rescue, which begins blind. */
async function allRound({ engine }: Fresh) {
  for (const chore of allChores(engine.context)) if (chore.name !== 'rescue') await chore.run(engine.context)
}

test('undoing goes backwards, stage by stage, one task for each that succeeded', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2, 3], tolerate: { count: 1 }, compensate: { task: 'undo', queue: 'ua' } },
    { name: 'b', task: 'b' },
    { name: 'c', task: 'c', compensate: { task: 'undo', queue: 'uc' } },
    { name: 'd', task: 'd' },
  ])
  for (const task of await claim(f, ['a'])) {
    if (task.payload === 1) await say(f, [task], 'failed')
    else if (task.payload === 2) await say(f, [task], 'skipped')
    else await say(f, [task], { outcome: 'succeeded', output: 'made' })
  }
  await workOff(f, 'b')
  await workOff(f, 'c')
  await workOff(f, 'd', 'failed')
  assert.deepEqual((await statesOf(f, job)).split(', ').slice(-2), ['undo c pending', 'undo a created'])
  assert.equal((await claim(f, ['ua'])).length, 0)
  const [undoC] = await claim(f, ['uc'])
  await say(f, [undoC!], 'succeeded')
  const undoA = await claim(f, ['ua'])
  assert.deepEqual(
    undoA.map(({ payload }) => ({ ...(payload as object), taskId: '' })),
    [{ taskId: '', payload: 3, output: 'made' }],
  )
  await say(f, undoA, 'succeeded')
  const { state, compensated } = await f.engine.job(job)
  assert.deepEqual([state, compensated], ['failed', true])
  const done = (await f.engine.jobEvents(job)).items.find(({ type }) => type === 'job.compensated')!
  assert.deepEqual(done.payload, { undone: 2, failed: 0 })
})

test('a cancelled job is undone when what it has in hand has ended, and then is cancelled', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2], compensate: { task: 'undo' } },
    { name: 'b', task: 'b' },
  ])
  const [one, two] = await claim(f, ['a'])
  await say(f, [one!], 'succeeded')
  await f.engine.cancelJob(job)
  assert.equal(await statesOf(f, job), 'stopping: a stopping, b cancelled')
  assert.equal((await claim(f, ['undo'])).length, 0)
  await say(f, [two!], 'succeeded')
  assert.equal(await statesOf(f, job), 'compensating: a cancelled, b cancelled, undo a pending')
  assert.equal(await workOff(f, 'undo'), 2)
  assert.equal(await statesOf(f, job), 'cancelled: a cancelled, b cancelled, undo a succeeded')
})

test('an undoing that fails is a dead letter, and the others are still undone', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', compensate: { task: 'undo-a' } },
    { name: 'b', task: 'b', payloads: [1, 2, 3, 4], compensate: { task: 'undo-b' }, deadLetter: 'never' },
    { name: 'c', task: 'c' },
  ])
  for (const queue of ['a', 'b']) await workOff(f, queue)
  await workOff(f, 'c', 'failed')
  const [one, two, three, four] = await claim(f, ['undo-b'])
  await say(f, [one!], 'permanent')
  await say(f, [two!], { outcome: 'dead_lettered', error: { message: 'odd', reasonCode: 'parse_error' } })
  assert.equal((await f.engine.job(job)).state, 'compensating')
  await say(f, [three!, four!], 'succeeded')
  assert.equal(await workOff(f, 'undo-a'), 1)
  assert.deepEqual((await statesOf(f, job)).split(', ').slice(-2), ['undo b failed', 'undo a succeeded'])
  assert.equal((await f.engine.job(job)).state, 'failed')
  const { items } = await f.engine.tasks({ state: 'dead_lettered', reasonCode: 'compensation_failed' })
  assert.deepEqual(items.map(({ id }) => id).sort(), [one!.id, two!.id].sort())
  const done = (await f.engine.jobEvents(job)).items.find(({ type }) => type === 'job.compensated')!
  assert.deepEqual(done.payload, { undone: 3, failed: 2 })
  assert.deepEqual((await f.engine.redrive({ ids: [one!.id] })).redriven, [])
})

test('a failed undoing cannot be redriven, and the refusal says that the job was undone', async t => {
  const f = await fresh(t)
  await halfDone(f)
  await workOff(f, 'b', 'failed')
  const [undo] = await claim(f, ['undo'])
  await say(f, [undo!], 'failed')
  const { refused } = await f.engine.redrive({ ids: [undo!.id] })
  assert.equal(refused[0]!.code, 'JOB_COMPENSATED')
})

test('an undoing is retried like any other task before it is given up', async t => {
  const f = await fresh(t)
  const retry = { attempts: 2, delaySeconds: 0 }
  const job = await submit(f, [
    { name: 'a', task: 'a', compensate: { task: 'undo' }, retry },
    { name: 'b', task: 'b' },
  ])
  await workOff(f, 'a')
  await workOff(f, 'b', 'failed')
  const failing = { outcome: 'failed', error: { message: 'away' } } as const
  const [first] = await claim(f, ['undo'])
  await say(f, [first!], failing)
  assert.equal((await f.engine.task(first!.id)).state, 'retrying')
  await workOff(f, 'undo', failing)
  assert.equal((await f.engine.task(first!.id)).deadLetter!.reasonCode, 'compensation_failed')
  assert.equal((await f.engine.job(job)).state, 'failed')
})

test('a worker that dies while it undoes is replaced', async t => {
  const f = await fresh(t)
  const job = await halfDone(f)
  await workOff(f, 'b', 'failed')
  await claim(f, ['undo'])
  await f.advance(21)
  await rescue({ beginsBlind: false, now: () => 0 }).run(f.engine.context)
  await undoneAs(f, job, 'failed')
})

test('nothing to undo: what was skipped, failed or has no compensation is passed over, and so is compensating', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', compensate: { task: 'undo' } },
    { name: 'b', task: 'b' },
    { name: 'c', task: 'c', compensate: { task: 'undo' } },
  ])
  await workOff(f, 'a', 'skipped')
  await workOff(f, 'b')
  await workOff(f, 'c', 'failed')
  assert.equal(await statesOf(f, job), 'failed: a succeeded, b succeeded, c failed')
  const { items } = await f.engine.jobEvents(job)
  assert.ok(!items.some(({ type }) => /stopping|compensat/.test(type)))
  assert.equal((await f.engine.job(job)).compensated, false)
  await f.engine.retryJob(job)
  assert.equal(await workOff(f, 'c'), 1)
  assert.equal((await f.engine.job(job)).state, 'succeeded')
})

test('a job that succeeds, or is partial, is not undone', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', compensate: { task: 'undo' } },
    { name: 'b', task: 'b', onFailure: 'continue' },
  ])
  await workOff(f, 'a')
  await workOff(f, 'b', 'failed')
  assert.equal(await statesOf(f, job), 'partial: a succeeded, b failed')
  assert.equal((await claim(f, ['undo'])).length, 0)
})

test('undoing cannot be stopped: neither by a pause nor by another cancel', async t => {
  const f = await fresh(t)
  const job = await halfDone(f)
  await f.engine.cancelJob(job)
  await assert.rejects(f.engine.pauseJob(job), { code: 'MOVE_REFUSED' })
  await f.engine.cancelJob(job, { mode: 'hard' })
  await undoneAs(f, job, 'cancelled')
})

test('undoing is not bound by the deadline of the job', async t => {
  const f = await fresh(t)
  const job = await halfDone(f, { deadlineSeconds: 1000 })
  await workOff(f, 'b', 'failed')
  await f.advance(1001)
  await allRound(f)
  await undoneAs(f, job, 'failed')
})

test('a job whose deadline passes is undone, and then expires', async t => {
  const f = await fresh(t)
  const job = await halfDone(f, { deadlineSeconds: 1000 })
  await f.advance(1001)
  await allRound(f)
  await undoneAs(f, job, 'expired')
})
