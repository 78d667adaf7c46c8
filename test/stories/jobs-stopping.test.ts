/** Stopping: the end is decided, running work is cancelled or awaited, and the job always ends. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allChores } from '../../src/babysitter/babysitter.ts'
import { endGraces } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, type Word, workOff } from '../harness/jobs.ts'

async function submit({ engine }: Fresh, stages: JobSpec['stages'] & object, more: Partial<JobSpec> = {}) {
  return (await engine.submit({ name: 'j', stages, ...more })).id
}

/** A stage that is stopping: one of its tasks failed, `held` is held, and others were open. */
async function stoppingStage(f: Fresh) {
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2, 3, 4], retry: { delaySeconds: 1000 } },
    { name: 'b', task: 'b' },
  ])
  const [bad, held, later] = await claim(f, ['a'], 3)
  await f.sync({ started: [{ id: held!.id, epoch: held!.epoch }] })
  await say(f, [later!], { outcome: 'failed', error: { message: 'try again' } })
  assert.equal((await f.engine.task(later!.id)).state, 'retrying')
  await say(f, [bad!], 'failed')
  assert.equal(await statesOf(f, job), 'running: a stopping, b created')
  return { job, held: held!, later: later! }
}

/** The end of a task that is told to stop, for each of these handlers. */
const ends: [string, Word, string][] = [
  ['succeeds', 'succeeded', 'succeeded'],
  ['succeeds in part', 'partial', 'succeeded'],
  ['says there is nothing to do', 'skipped', 'skipped'],
  ['fails', { outcome: 'failed', error: { message: 'no' } }, 'cancelled'],
  ['fails for good', 'permanent', 'cancelled'],
  ['asks to be tried again later', { outcome: 'failed', error: { message: 'no', retryInSeconds: 1 } }, 'cancelled'],
  ['gives the task back', 'released', 'cancelled'],
  ['sets the task aside', { outcome: 'dead_lettered', error: { message: 'odd' } }, 'cancelled'],
  ['stops as it was told', 'cancelled', 'cancelled'],
]

for (const [handler, word, end] of ends) {
  test(`a handler that ${handler} while its stage stops leaves its task ${end}, and the stage fails`, async t => {
    const f = await fresh(t)
    const { job, held } = await stoppingStage(f)
    await say(f, [held], word)
    assert.equal((await f.engine.task(held.id)).state, end)
    assert.equal(await statesOf(f, job), 'failed: a failed, b cancelled')
    const { progress } = await f.engine.job(job)
    assert.deepEqual([progress.percent, progress.good], [100, end === 'cancelled' ? 0 : 1])
  })
}

test('a worker that dies while its stage stops does not keep it from ending', async t => {
  const f = await fresh(t)
  const { job, held } = await stoppingStage(f)
  await f.advance(21)
  assert.equal((await rescue({ beginsBlind: false, now: () => 0 }).run(f.engine.context)).rescued, 1)
  assert.equal((await f.engine.task(held.id)).state, 'cancelled')
  assert.equal(await statesOf(f, job), 'failed: a failed, b cancelled')
})

test('a handler that does not answer is fenced off when its grace has passed', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', heartbeatSeconds: null, leaseSeconds: 3000, graceSeconds: 500 }])
  const [one] = await claim(f, ['a'])
  await f.engine.cancelJob(job)
  await f.advance(400)
  assert.equal((await endGraces.run(f.engine.context)).cancelled, 0)
  assert.equal(await statesOf(f, job), 'stopping: a stopping')
  await f.advance(101)
  assert.equal((await endGraces.run(f.engine.context)).cancelled, 1)
  assert.equal(await statesOf(f, job), 'cancelled: a cancelled')
  const { refused } = await f.sync({ settled: [{ id: one!.id, epoch: one!.epoch, outcome: 'succeeded' }] })
  assert.equal(refused[0]!.code, 'LEASE_LOST')
})

test('a stage that stops calls off what is open, with the cause, and tells whoever holds the rest', async t => {
  const f = await fresh(t)
  const { job, held, later } = await stoppingStage(f)
  const { items } = await f.engine.tasks({ jobId: job, limit: 10 })
  assert.deepEqual(items.map(({ payload, state }) => `${payload} ${state}`).sort(), [
    '1 failed',
    '2 running',
    '3 cancelled',
    '4 cancelled',
    'null blocked',
  ])
  const last = (await f.engine.taskEvents(later.id)).items.at(-1)!
  assert.deepEqual([last.type, last.payload], ['task.cancelled', { mode: 'soft', reason: 'too_many_bad' }])
  const beat = await f.sync({ beats: [{ id: held.id, epoch: held.epoch }] })
  assert.deepEqual(
    beat.cancel.map(({ id, mode }) => [id, mode]),
    [[held.id, 'soft']],
  )
  await f.advance(2000)
  assert.equal((await claim(f, ['a', 'b'])).length, 0)
  const { cause, endsAs } = await stageOf(f, job, 'a')
  assert.deepEqual([endsAs, cause], ['failed', 'too_many_bad'])
})

test('failFast: false waits for every task to end by itself, and retries what can be', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2, 3], failFast: false, retry: { delaySeconds: 0 } },
    { name: 'b', task: 'b' },
  ])
  const [one, two, three] = await claim(f, ['a'])
  await say(f, [one!], 'failed')
  await say(f, [two!], { outcome: 'failed', error: { message: 'again' } })
  assert.equal(await statesOf(f, job), 'running: a running, b created')
  assert.deepEqual((await f.sync({ beats: [{ id: three!.id, epoch: three!.epoch }] })).cancel, [])
  await say(f, [three!], 'succeeded')
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await statesOf(f, job), 'failed: a failed, b cancelled')
  assert.deepEqual((await stageOf(f, job, 'a')).progress.good, 2)
})

test('a stage stops when more is bad than it tolerates, and not before', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2, 3, 4, 5], tolerate: { percent: 40 } }])
  const [one, two, three, four, five] = await claim(f, ['a'])
  await say(f, [one!, two!], 'failed')
  assert.equal(await statesOf(f, job), 'running: a running')
  await say(f, [three!], 'failed')
  assert.equal(await statesOf(f, job), 'running: a stopping')
  await say(f, [four!, five!], 'succeeded')
  assert.equal(await statesOf(f, job), 'failed: a failed')
})

test('a job stops when a stage that matters has failed: the branch beside it is called off, what it has in hand is told', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', needs: [], payloads: [1, 2] },
    { name: 'c', task: 'c' },
  ])
  const [held] = await claim(f, ['b'], 1)
  await workOff(f, 'a', 'failed')
  assert.equal(await statesOf(f, job), 'stopping: a failed, b stopping, c cancelled')
  assert.equal((await f.engine.job(job)).cause, 'stage a failed')
  assert.equal((await claim(f, ['b'])).length, 0)
  await say(f, [held!], 'succeeded')
  assert.equal((await f.engine.task(held!.id)).state, 'succeeded')
  assert.equal(await statesOf(f, job), 'failed: a failed, b cancelled, c cancelled')
})

test('a stage with onFailure: continue that fails stops nothing', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', onFailure: 'continue' },
    { name: 'b', task: 'b', needs: [] },
  ])
  await workOff(f, 'a', 'failed')
  assert.equal(await statesOf(f, job), 'running: a failed, b pending')
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, job), 'partial: a failed, b succeeded')
})

test('how a job ends is decided once: a cancel while it fails makes it no other', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', needs: [] },
  ])
  const [held] = await claim(f, ['b'])
  await workOff(f, 'a', 'failed')
  const { state, endsAs } = await f.engine.cancelJob(job, { mode: 'hard' })
  assert.deepEqual([state, endsAs], ['failed', 'failed'])
  const { refused } = await f.sync({ settled: [{ id: held!.id, epoch: held!.epoch, outcome: 'succeeded' }] })
  assert.equal(refused[0]!.code, 'LEASE_LOST')
})

test('a paused job whose stage fails stops; one whose stages have all ended well stays paused until it is resumed', async t => {
  const f = await fresh(t)
  const jobs: string[] = []
  for (const word of ['failed', 'succeeded'] as const) {
    const job = await submit(f, [{ name: 'a', task: 'a' }])
    const held = await claim(f, ['a'])
    await f.engine.pauseJob(job)
    await say(f, held, word)
    jobs.push(job)
  }
  assert.equal(await statesOf(f, jobs[0]!), 'failed: a failed')
  assert.equal(await statesOf(f, jobs[1]!), 'paused: a succeeded')
  await f.engine.resumeJob(jobs[1]!)
  assert.equal(await statesOf(f, jobs[1]!), 'succeeded: a succeeded')
})

test('stopping is passed over where nothing is in hand', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a' }])
  await f.engine.cancelJob(job)
  const typesOf = (events: { items: readonly { type: string }[] }) => events.items.map(({ type }) => type)
  assert.deepEqual(
    typesOf(await f.engine.jobEvents(job)),
    ['created', 'pending', 'cancel_requested', 'cancelled'].map(word => `job.${word}`),
  )
  const stage = await stageOf(f, job, 'a')
  assert.deepEqual(
    typesOf(await f.engine.stageEvents(stage.id)),
    ['created', 'pending', 'cancelled'].map(word => `stage.${word}`),
  )
})

test('what a handler makes while its stage stops is not added', async t => {
  const f = await fresh(t)
  const { job, held } = await stoppingStage(f)
  await say(f, [held], { outcome: 'succeeded', spawn: [{ payload: 9 }] })
  assert.equal(await statesOf(f, job), 'failed: a failed, b cancelled')
  assert.equal((await f.engine.job(job)).progress.total, 5)
})

test('a job that is not done by its deadline stops and expires', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2] }], { deadlineSeconds: 1000 })
  const [held] = await claim(f, ['a'], 1)
  await f.advance(1001)
  await allRound(f)
  assert.equal(await statesOf(f, job), 'stopping: a stopping')
  await say(f, [held!], 'succeeded')
  assert.equal(await statesOf(f, job), 'expired: a cancelled')
})

test('a pause does not keep a deadline from passing', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a' }], { deadlineSeconds: 1000 })
  await f.engine.pauseJob(job)
  await f.advance(1001)
  await allRound(f)
  assert.equal(await statesOf(f, job), 'expired: a cancelled')
  await f.engine.retryJob(job)
  await allRound(f)
  assert.equal(await statesOf(f, job), 'pending: a pending', 'the new round has a deadline of its own')
})

/** One run of every chore except the rescue, which plays no part in these tests. */
async function allRound({ engine }: Fresh) {
  for (const chore of allChores(engine.context)) if (chore.name !== 'rescue') await chore.run(engine.context)
}

test('a stage that fails at once takes its job with it, and what it has in hand is awaited and counts', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2], onFailure: 'failAtOnce' },
    { name: 'b', task: 'b', needs: [] },
    { name: 'c', task: 'c', needs: ['a'] },
  ])
  const [bad, held] = await claim(f, ['a'])
  await say(f, [bad!], 'failed')
  assert.equal(await statesOf(f, job), 'stopping: a stopping, b cancelled, c cancelled')
  assert.equal((await f.engine.job(job)).cause, 'stage a failed')
  await say(f, [held!], 'succeeded')
  assert.equal((await f.engine.task(held!.id)).state, 'succeeded')
  assert.equal(await statesOf(f, job), 'failed: a failed, b cancelled, c cancelled')
  // Its next round begins like any other.
  await f.engine.retryJob(job)
  assert.equal(await statesOf(f, job), 'pending: a pending, b pending, c created')
})
