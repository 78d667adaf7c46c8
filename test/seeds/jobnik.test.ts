/** Seed 001, Jobnik: the allowed transitions of jobs, stages and tasks, who may make them, and how they cascade. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Engine } from '../../src/engine/engine.ts'
import type { JobState } from '../../src/kernel/job.ts'
import type { StageState } from '../../src/kernel/stage.ts'
import { fresh } from '../harness/fresh.ts'
import {
  begin,
  everyJobState,
  everyStageState,
  jobIn,
  movesIn,
  refusalOf,
  stageIn,
  twoStages,
} from '../harness/job-in.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

/** The requests that users may make for a job: Jobnik's word, Pawl's request, and its result in each state. */
const onJobs: [
  row: string,
  ask: (engine: Engine, id: string) => Promise<unknown>,
  to: Partial<Record<JobState, JobState>>,
][] = [
  ['start a created job: → PENDING', (engine, id) => engine.startJob(id), { created: 'pending' }],
  ['→ PAUSED', (engine, id) => engine.pauseJob(id), { pending: 'paused', running: 'paused' }],
  [
    'resume a paused job: → PENDING',
    (engine, id) => engine.resumeJob(id),
    { paused: 'pending', failed: 'pending', cancelled: 'pending', expired: 'pending', partial: 'pending' },
  ],
  [
    '→ ABORTED',
    (engine, id) => engine.cancelJob(id),
    {
      created: 'cancelled',
      pending: 'cancelled',
      paused: 'cancelled',
      running: 'stopping',
      stopping: 'stopping',
      compensating: 'compensating',
    },
  ],
]

const isOfTheSystem = (move: string) =>
  ['start', 'succeed', 'settle', 'fail', 'skip', 'expire', 'compensate'].includes(move)

for (const [row, ask, granted] of onJobs) {
  for (const state of everyJobState) {
    const to = granted[state]
    const title = `jobnik 001, job, user: ${row}, from ${state}`
    if (to !== undefined) {
      test(title, async t => {
        const f = await fresh(t)
        const id = await jobIn(f, state)
        await ask(f.engine, id)
        assert.equal((await f.engine.job(id)).state, to)
        for (const queue of ['a', 'b']) assert.ok((await workOff(f, queue)) === 0 || to === 'pending')
        if (to === 'pending') assert.equal((await f.engine.job(id)).state, 'succeeded')
      })
      continue
    }
    test(`${title}, is refused`, async t => {
      const f = await fresh(t)
      const id = await jobIn(f, state)
      const before = await f.engine.job(id)
      assert.equal(before.state, state)
      const { code, state: isIn, possible } = await refusalOf(ask(f.engine, id))
      assert.deepEqual([code, isIn], ['MOVE_REFUSED', state])
      // IN_PROGRESS, COMPLETED and FAILED cannot be set by users: there is no such request.
      assert.deepEqual(possible.filter(isOfTheSystem), [])
      assert.deepEqual(await f.engine.job(id), before)
    })
  }
}

test('jobnik 001, job: CREATED → PENDING → IN_PROGRESS with its first task → COMPLETED with its last stage', async t => {
  const f = await fresh(t)
  const { id, state } = await f.engine.submit({ name: 'j', stages: twoStages })
  assert.equal(state, 'pending')
  const first = await begin(f, 'a')
  assert.equal(await statesOf(f, id), 'running: a running, b created')
  await say(f, first, 'succeeded')
  await workOff(f, 'b')
  const moves = ['* → created', 'created → pending', 'pending → running', 'running → succeeded']
  assert.deepEqual(movesIn(await f.engine.jobEvents(id)), moves)
})

test('jobnik 001, job: IN_PROGRESS → FAILED when a stage fails', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: twoStages })
  await workOff(f, 'a', 'failed')
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
  assert.equal(await workOff(f, 'b'), 0)
})

test('jobnik 001, job: a paused job that had begun is resumed to IN_PROGRESS, and what was in hand counts', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: twoStages })
  const held = await begin(f, 'a')
  await f.engine.pauseJob(id)
  await say(f, held, 'succeeded')
  assert.equal(await statesOf(f, id), 'paused: a succeeded, b pending')
  assert.equal((await claim(f, ['a', 'b'])).length, 0)
  assert.equal((await f.engine.resumeJob(id)).state, 'running')
  assert.equal(movesIn(await f.engine.jobEvents(id)).at(-1), 'paused → running')
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('jobnik 001, stage: CREATED → PENDING if it is the first, or the one before is COMPLETED; else it stays', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', open: true })
  const [a, b] = twoStages
  await f.engine.addStages(id, [a!])
  assert.equal(await statesOf(f, id), 'pending: a pending')
  await f.engine.addStages(id, [b!])
  assert.equal(await statesOf(f, id), 'pending: a pending, b created')
  await workOff(f, 'a')
  assert.equal(await statesOf(f, id), 'running: a succeeded, b pending')
  await workOff(f, 'b')
  await f.engine.addStages(id, [{ name: 'c', task: 'c' }])
  assert.equal(await statesOf(f, id), 'running: a succeeded, b succeeded, c pending')
})

for (const state of ['created', 'pending', 'running'] as const) {
  test(`jobnik 001, stage: ${state} → WAITING for an outside condition, and → PENDING by a user`, async t => {
    const f = await fresh(t)
    const { id } = await stageIn(f, state)
    await f.engine.hold(id)
    if (state === 'created') await workOff(f, 'a')
    // A held task may be reported, but the stage still waits.
    const { items } = await f.engine.tasks({ stageId: id, state: 'running' })
    await say(f, items as never, 'succeeded')
    assert.equal((await f.engine.stage(id)).state, 'waiting')
    assert.equal((await claim(f, ['b'])).length, 0)
    await f.engine.approve(id)
    assert.equal((await f.engine.stage(id)).state, state === 'running' ? 'succeeded' : 'pending')
    assert.equal(await workOff(f, 'b'), state === 'running' ? 0 : 1)
    assert.equal((await f.engine.stage(id)).state, 'succeeded')
    const moves = movesIn(await f.engine.stageEvents(id))
    const around = [`${state} → waiting`, `waiting → ${state === 'running' ? 'running' : 'pending'}`]
    assert.deepEqual(
      moves.filter(move => move.includes('waiting')),
      around,
    )
  })
}

test('jobnik 001, stage: WAITING → PENDING by a user, and only then can its tasks be dequeued', async t => {
  const f = await fresh(t)
  const { id } = await stageIn(f, 'waiting')
  assert.equal((await claim(f, ['b'])).length, 0)
  assert.equal((await f.engine.approve(id)).state, 'pending')
  assert.equal((await claim(f, ['b'])).length, 1)
})

for (const state of everyStageState.filter(each => each !== 'waiting')) {
  test(`jobnik 001, stage: a user cannot set PENDING from ${state}, nor fail it by hand`, async t => {
    const f = await fresh(t)
    const { id } = await stageIn(f, state)
    const before = await f.engine.stage(id)
    assert.equal(before.state, state)
    await assert.rejects(f.engine.approve(id), { code: 'MOVE_REFUSED' })
    await assert.rejects(f.engine.reject(id), { code: 'MOVE_REFUSED' })
    assert.deepEqual(await f.engine.stage(id), before)
  })
}

test('jobnik 001, stage: IN_PROGRESS, COMPLETED, FAILED are never offered to a user', async t => {
  const f = await fresh(t)
  for (const state of everyStageState.filter(each => each !== 'waiting')) {
    const { id } = await stageIn(f, state)
    const { possible } = await refusalOf(f.engine.approve(id))
    assert.deepEqual(possible.filter(isOfTheSystem), [], state)
    await f.engine.cancelJob((await f.engine.stage(id)).jobId, { mode: 'hard' }).catch(() => {})
  }
})

test('jobnik 001, stage: no PENDING before the one before is COMPLETED, though a user asks at its gate', async t => {
  const f = await fresh(t)
  const [a, b] = twoStages
  const { id } = await f.engine.submit({ name: 'j', stages: [a!, { ...b!, gate: true }] })
  const { id: gated } = await stageOf(f, id, 'b')
  await assert.rejects(f.engine.approve(gated), { code: 'MOVE_REFUSED' })
  await workOff(f, 'a')
  assert.equal((await f.engine.approve(gated)).state, 'pending')
})

test('jobnik 001, stage: PENDING → IN_PROGRESS with its first task → COMPLETED with its last', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a', payloads: [1, 2] }] })
  const stage = await stageOf(f, id, 'a')
  const first = await begin(f, 'a', 1)
  assert.equal((await f.engine.stage(stage.id)).state, 'running')
  await say(f, first, 'succeeded')
  assert.equal((await f.engine.stage(stage.id)).state, 'running')
  await workOff(f, 'a')
  const moves = ['* → created', 'created → pending', 'pending → running', 'running → succeeded']
  assert.deepEqual(movesIn(await f.engine.stageEvents(stage.id)), moves)
})

const aborted: Partial<Record<StageState, StageState>> = { running: 'stopping', stopping: 'stopping' }
for (const state of ['created', 'waiting', 'pending', 'running', 'stopping'] as const) {
  test(`jobnik 001, stage: ${state} → ABORTED with its job, and so do its tasks`, async t => {
    const f = await fresh(t)
    const { id, jobId } = await stageIn(f, state)
    await f.engine.cancelJob(jobId)
    assert.equal((await f.engine.stage(id)).state, aborted[state] ?? 'cancelled')
    const { items } = await f.engine.tasks({ stageId: id, state: ['assigned', 'running'] })
    await say(f, items as never, 'cancelled')
    assert.deepEqual([(await f.engine.stage(id)).state, (await f.engine.job(jobId)).state], ['cancelled', 'cancelled'])
    const tasks = await f.engine.tasks({ stageId: id })
    assert.deepEqual(
      tasks.items.map(task => task.state),
      ['cancelled'],
    )
  })
}
