/** What people ask of a job: to start, wait, go on, stop, come first, be gone, be done again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

const refused = { code: 'MOVE_REFUSED' }
const twoStages: JobSpec = {
  name: 'j',
  stages: [
    { name: 'a', task: 'a', payloads: [1, 2] },
    { name: 'b', task: 'b' },
  ],
}

async function submit({ engine }: Fresh, spec: Partial<JobSpec> = {}) {
  return (await engine.submit({ ...twoStages, ...spec })).id
}

const payloadsOf = (tasks: readonly { payload: unknown }[]) => tasks.map(({ payload }) => payload)

test('a soft cancel tells what is in hand and records it, a hard one fences it off', async t => {
  const f = await fresh(t)
  for (const mode of ['soft', 'hard'] as const) {
    const id = await submit(f)
    const [one] = await claim(f, ['a'], 1)
    const { state } = await f.engine.cancelJob(id, { mode, reason: 'no longer wanted' })
    assert.equal(state, mode === 'soft' ? 'stopping' : 'cancelled')
    assert.equal((await claim(f, ['a', 'b'])).length, 0)
    const settled = [{ id: one!.id, epoch: one!.epoch, outcome: 'succeeded' as const }]
    const codes = (await f.sync({ settled })).refused.map(({ code }) => code)
    assert.deepEqual(codes, mode === 'soft' ? [] : ['LEASE_LOST'])
    assert.equal(await statesOf(f, id), 'cancelled: a cancelled, b cancelled')
    assert.equal((await f.engine.job(id)).cause, 'no longer wanted')
    const counts = { soft: [3, 1, 2], hard: [3, 0, 3] }[mode]
    const { total, good, bad } = (await f.engine.job(id)).progress
    assert.deepEqual([total, good, bad], counts)
  }
})

test('a job in a transaction that rolls back never was', async t => {
  const f = await fresh(t)
  const ids: string[] = []
  const rolledBack = f.engine.transaction(async tx => {
    ids.push((await f.engine.submit(twoStages, { tx })).id)
    throw new Error('no')
  })
  await assert.rejects(rolledBack, /no/)
  await assert.rejects(f.engine.job(ids[0]!), { code: 'JOB_NOT_FOUND' })
  assert.equal((await f.engine.jobs()).items.length, 0)
  assert.equal((await f.engine.tasks()).items.length, 0)
  assert.equal((await claim(f, ['a'])).length, 0)
  const kept = await f.engine.transaction(tx => f.engine.submit(twoStages, { tx }))
  assert.equal(await workOff(f, 'a'), 2)
  assert.equal(await statesOf(f, kept.id), 'running: a succeeded, b pending')
})

test('a soft cancel can be made hard', async t => {
  const f = await fresh(t)
  const id = await submit(f)
  await claim(f, ['a'], 1)
  await f.engine.cancelJob(id)
  assert.equal(await statesOf(f, id), 'stopping: a stopping, b cancelled')
  await f.engine.cancelJob(id, { mode: 'hard' })
  assert.equal(await statesOf(f, id), 'cancelled: a cancelled, b cancelled')
  await assert.rejects(f.engine.cancelJob(id), refused)
})

test('start: false: nothing of it runs until it is started, and its deadline counts from then', async t => {
  const f = await fresh(t)
  const id = await submit(f, { start: false, deadlineSeconds: 100 })
  assert.equal(await statesOf(f, id), 'created: a created, b created')
  assert.equal((await f.engine.job(id)).deadlineAt, null)
  assert.equal((await claim(f, ['a'])).length, 0)
  await assert.rejects(f.engine.pauseJob(id), refused)
  await f.engine.startJob(id)
  assert.equal(await statesOf(f, id), 'pending: a pending, b created')
  assert.ok((await f.engine.job(id)).deadlineAt)
  assert.equal(await workOff(f, 'a'), 2)
  await assert.rejects(f.engine.startJob(id), refused)
})

test('a job that was never started can be cancelled, and resumed', async t => {
  const f = await fresh(t)
  const id = await submit(f, { start: false })
  await f.engine.cancelJob(id)
  assert.equal(await statesOf(f, id), 'cancelled: a cancelled, b cancelled')
  await f.engine.resumeJob(id)
  assert.equal(await statesOf(f, id), 'pending: a pending, b created')
  assert.equal(await workOff(f, 'a'), 2)
})

test('a paused job goes on where it was: pending if nothing had started in this round, else running', async t => {
  const f = await fresh(t)
  const id = await submit(f)
  await f.engine.pauseJob(id)
  await assert.rejects(f.engine.pauseJob(id), refused)
  assert.equal((await f.engine.resumeJob(id)).state, 'pending')
  const [one, two] = await claim(f, ['a'])
  await f.engine.pauseJob(id)
  await say(f, [one!], 'failed')
  await say(f, [two!], 'failed')
  await f.engine.retryJob(id)
  await f.engine.pauseJob(id)
  assert.equal((await f.engine.resumeJob(id)).state, 'pending', 'in this round nothing has started')
  const [again] = await claim(f, ['a'], 1)
  await f.sync({ started: [{ id: again!.id, epoch: again!.epoch }] })
  await f.engine.pauseJob(id)
  assert.equal((await f.engine.resumeJob(id)).state, 'running')
})

test('a paused job gives out nothing that comes back to it: no retry, no task given back', async t => {
  const f = await fresh(t)
  const stages = [{ name: 'a', task: 'a', payloads: [1, 2], retry: { delaySeconds: 0 } }]
  const id = await submit(f, { stages })
  const [one, two] = await claim(f, ['a'])
  await f.engine.pauseJob(id)
  await say(f, [one!], { outcome: 'failed', error: { message: 'again' } })
  await say(f, [two!], 'released')
  await f.advance(60)
  assert.equal((await claim(f, ['a'])).length, 0)
  await f.engine.resumeJob(id)
  assert.equal(await workOff(f, 'a'), 2)
})

test('a paused job can be cancelled', async t => {
  const f = await fresh(t)
  const id = await submit(f)
  await f.engine.pauseJob(id)
  assert.equal((await f.engine.cancelJob(id)).state, 'cancelled')
})

test('the job of the higher priority is claimed first, also when that changes later', async t => {
  const f = await fresh(t)
  const stages = (payload: string) => [{ name: 'a', task: 'a', payloads: [payload, payload] }]
  const low = await submit(f, { stages: stages('low'), priority: 1 })
  await submit(f, { stages: stages('high'), priority: 5 })
  assert.deepEqual(payloadsOf(await claim(f, ['a'], 1)), ['high'])
  assert.equal((await f.engine.internals.setJobPriority(low, 9)).priority, 9)
  assert.deepEqual(payloadsOf(await claim(f, ['a'], 3)), ['low', 'low', 'high'])
  const event = (await f.engine.jobEvents(low)).items.at(-1)!
  assert.deepEqual([event.type, event.payload], ['job.priority_changed', { before: 1, priority: 9 }])
})

test('an ended job can be deleted, with all that it had; one that is stopping is made to end first', async t => {
  const f = await fresh(t)
  const id = await submit(f)
  await assert.rejects(f.engine.deleteJob(id), refused)
  const [one] = await claim(f, ['a'], 1)
  const stage = await stageOf(f, id, 'a')
  await f.engine.cancelJob(id)
  await f.engine.deleteJob(id)
  await assert.rejects(f.engine.job(id), { code: 'JOB_NOT_FOUND' })
  await assert.rejects(f.engine.stage(stage.id), { code: 'STAGE_NOT_FOUND' })
  await assert.rejects(f.engine.task(one!.id), { code: 'TASK_NOT_FOUND' })
  await assert.rejects(f.engine.jobEvents(id), { code: 'JOB_NOT_FOUND' })
  const { refused: late } = await f.sync({ settled: [{ id: one!.id, epoch: one!.epoch, outcome: 'succeeded' }] })
  assert.equal(late[0]!.code, 'LEASE_LOST')
})

test('a clone is a new job with just what did not succeed; the old one stays as it is', async t => {
  const f = await fresh(t)
  const id = await submit(f)
  const [one, two] = await claim(f, ['a'])
  await say(f, [one!], 'succeeded')
  await say(f, [two!], 'failed')
  const clone = await f.engine.retryJob(id, { clone: true })
  assert.deepEqual([clone.clonedFrom, clone.round, clone.progress.total], [id, 1, 2])
  assert.deepEqual(payloadsOf(await claim(f, ['a'])), [two!.payload])
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
  assert.equal((await f.engine.job(id)).round, 1)
  await assert.rejects(f.engine.retryJob(clone.id, { clone: true }), refused)
})

test('a clone can have a name of its own, and a retry in place cannot', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'x', stages: [{ name: 'a', task: 'a' }] })
  await workOff(f, 'a', 'permanent')
  const named = { clone: true, name: 'x-again' }
  const clone = await f.engine.retryJob(id, { ...named, idempotencyKey: 'k' })
  assert.deepEqual([clone.name, clone.clonedFrom], ['x-again', id])
  assert.equal((await f.engine.jobs({ name: 'x-again' })).items[0]!.id, clone.id)
  assert.equal((await f.engine.retryJob(id, { ...named, idempotencyKey: 'k' })).id, clone.id)
  const other = f.engine.retryJob(id, { ...named, name: 'y', idempotencyKey: 'k' })
  await assert.rejects(other, { code: 'IDEMPOTENCY_MISMATCH' })
  await assert.rejects(f.engine.retryJob(id, { name: 'y' }), { code: 'OPTION_INVALID' })
})

test('a job that was undone can be cloned: all of it is done again', async t => {
  const f = await fresh(t)
  const id = await submit(f, {
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2], compensate: { task: 'undo' } },
      { name: 'b', task: 'b' },
    ],
  })
  await workOff(f, 'a')
  await workOff(f, 'b', 'failed')
  await workOff(f, 'undo')
  const clone = await f.engine.retryJob(id, { clone: true })
  assert.equal(await workOff(f, 'a'), 2)
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, clone.id), 'succeeded: a succeeded, b succeeded')
})

const fan: JobSpec['stages'] = [
  { name: 'list', task: 'list', compensate: { task: 'undo' } },
  { name: 'each', task: 'each', forEach: 'stages.list.output', failFast: false },
]

test('a clone of a fan-out does the elements that did not succeed', async t => {
  const f = await fresh(t)
  const stages = fan.map(({ compensate: _, ...stage }) => stage)
  const id = await submit(f, { stages })
  await workOff(f, 'list', { outcome: 'succeeded', output: [1, 2, 3] })
  const [one, two, three] = await claim(f, ['each'])
  await say(f, [one!, three!], 'succeeded')
  await say(f, [two!], 'failed')
  const clone = await f.engine.retryJob(id, { clone: true })
  const tasks = await claim(f, ['each'])
  assert.deepEqual(payloadsOf(tasks), [2])
  await say(f, tasks, 'succeeded')
  assert.equal(await statesOf(f, clone.id), 'succeeded: list succeeded, each succeeded')
})

test('a clone of a fan-out does the elements, too, that had not become tasks', async t => {
  const f = await fresh(t)
  const id = await submit(f, {
    input: [3, 1, 2],
    stages: [{ name: 'each', task: 'each', forEach: 'input', gate: true }],
  })
  await f.engine.cancelJob(id)
  const clone = await f.engine.retryJob(id, { clone: true })
  await f.engine.approve(clone.stages[0]!.id)
  const tasks = await claim(f, ['each'])
  assert.deepEqual(payloadsOf(tasks), [3, 1, 2])
  await say(f, tasks, 'succeeded')
  assert.equal(await statesOf(f, clone.id), 'succeeded: each succeeded')
})

test('a clone of a fan-out that was undone does each element once', async t => {
  const f = await fresh(t)
  const id = await submit(f, { stages: fan })
  const list = { outcome: 'succeeded', output: [1, 2] } as const
  await workOff(f, 'list', list)
  await workOff(f, 'each', 'failed')
  await workOff(f, 'undo')
  await f.engine.retryJob(id, { clone: true })
  await workOff(f, 'list', list)
  assert.deepEqual(payloadsOf(await claim(f, ['each'])), [1, 2])
})

test('a submit and a request that are sent again with their key have one effect, and the first answer', async t => {
  const f = await fresh(t)
  const key = { idempotencyKey: 'k1' }
  const first = await f.engine.submit(twoStages, key)
  assert.deepEqual(await f.engine.submit(twoStages, key), first)
  await assert.rejects(f.engine.submit({ ...twoStages, name: 'other' }, key), { code: 'IDEMPOTENCY_MISMATCH' })
  assert.equal((await f.engine.jobs()).items.length, 1)
  const paused = await f.engine.pauseJob(first.id, { idempotencyKey: 'k2' })
  await f.engine.resumeJob(first.id)
  assert.deepEqual(await f.engine.pauseJob(first.id, { idempotencyKey: 'k2' }), paused)
  assert.equal((await f.engine.job(first.id)).state, 'pending')
  await assert.rejects(f.engine.cancelJob(first.id, { idempotencyKey: 'k2' }), { code: 'IDEMPOTENCY_MISMATCH' })
})

test('a stage that is cancelled by itself ends its job as failed, or lets it go on', async t => {
  const f = await fresh(t)
  for (const onFailure of ['fail', 'continue'] as const) {
    const stages = twoStages.stages!.map(stage => ({ ...stage, onFailure }))
    const id = await submit(f, { stages })
    const [one] = await claim(f, ['a'], 1)
    await f.engine.cancelStage((await stageOf(f, id, 'a')).id)
    assert.equal(await statesOf(f, id), 'pending: a stopping, b created')
    await say(f, [one!], 'succeeded')
    const end = onFailure === 'fail' ? 'failed: a cancelled, b cancelled' : 'running: a cancelled, b pending'
    assert.equal(await statesOf(f, id), end)
    if (onFailure === 'continue') assert.equal(await workOff(f, 'b'), 1)
  }
})
