/** The next round: what comes back with a task, a stage or a job, and what stays unchanged. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, type Word, workOff } from '../harness/jobs.ts'

const letter: Word = { outcome: 'dead_lettered', error: { message: 'odd', reasonCode: 'parse_error' } }

/** The tasks of a stage as `payload state round`, sorted by payload. */
async function tasksIn({ engine }: Fresh, stageId: string) {
  const { items } = await engine.tasks({ stageId, limit: 1000 })
  return items.map(({ payload, state, round }) => `${payload} ${state} ${round}`).sort()
}

async function submit({ engine }: Fresh, stages: JobSpec['stages'] & object, more: Partial<JobSpec> = {}) {
  return (await engine.submit({ name: 'j', stages, ...more })).id
}

/** Settles the tasks of a queue, by their payloads. */
async function sayEach(f: Fresh, queue: string, words: Record<string, Word>) {
  for (const task of await claim(f, [queue])) await say(f, [task], words[String(task.payload)]!)
}

test('one of two dead letters is redriven: it runs again, and the other counts when the stage ends', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2, 3], failFast: false },
    { name: 'b', task: 'b' },
  ])
  await sayEach(f, 'a', { 1: letter, 2: letter, 3: 'succeeded' })
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
  const stage = await stageOf(f, id, 'a')
  const { items } = await f.engine.tasks({ stageId: stage.id })
  const one = items.find(({ payload }) => payload === 1)!.id
  assert.deepEqual((await f.engine.redrive({ ids: [one] })).redriven, [one])
  assert.equal(await statesOf(f, id), 'pending: a pending, b created')
  assert.deepEqual(await tasksIn(f, stage.id), ['1 queued 2', '2 dead_lettered 1', '3 succeeded 1'])
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
})

test('with failFast, a dead letter that is redriven is not stopped for what went bad in an earlier round', async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2, 3, 4], tolerate: { count: 1 } }])
  const [one, two, three, four] = await claim(f, ['a'])
  await say(f, [one!, two!], letter)
  await say(f, [three!], 'failed')
  await say(f, [four!], 'succeeded')
  assert.equal(await statesOf(f, id), 'failed: a failed')
  await f.engine.redrive({ ids: [one!.id] })
  const [again] = await claim(f, ['a'])
  assert.equal(again!.id, one!.id)
  await f.sync({ started: [{ id: again!.id, epoch: again!.epoch }] })
  assert.equal(await statesOf(f, id), 'running: a running')
  await say(f, [again!], 'succeeded')
  assert.equal(await statesOf(f, id), 'failed: a failed')
  const { items } = await f.engine.tasks({ state: ['dead_lettered', 'cancelled'], jobId: id })
  for (const { id: task, state } of items) {
    if (state === 'cancelled') await f.engine.resume(task)
    else await f.engine.redrive({ ids: [task] })
    await workOff(f, 'a')
  }
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded')
})

test('with failFast, what goes bad in the new round stops the stage again', async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2, 3] }])
  const [one, two, three] = await claim(f, ['a'])
  await say(f, [one!], 'failed')
  await say(f, [two!, three!], 'failed')
  await f.engine.retryJob(id)
  const [first, ...others] = await claim(f, ['a'])
  await say(f, [first!], 'failed')
  assert.equal(await statesOf(f, id), 'running: a stopping')
  await say(f, others, 'succeeded')
  assert.equal(await statesOf(f, id), 'failed: a failed')
})

test('a task comes back with fresh budgets, and a job with a fresh deadline', async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', retry: { attempts: 1 } }], { deadlineSeconds: 1000 })
  const before = (await f.engine.job(id)).deadlineAt!
  await workOff(f, 'a', { outcome: 'failed', error: { message: 'no' } })
  const { items } = await f.engine.tasks({ jobId: id })
  assert.deepEqual([items[0]!.state, items[0]!.failures], ['dead_lettered', 1])
  await f.advance(500)
  await f.engine.retryJob(id)
  const { failures, error, round } = await f.engine.task(items[0]!.id)
  assert.deepEqual([failures, error, round], [0, null, 2])
  const moved = Date.parse((await f.engine.job(id)).deadlineAt!) - Date.parse(before)
  assert.ok(moved >= 500_000 && moved < 600_000, String(moved))
})

test('a partial job is retried: what was bad is done again, and it can still succeed', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2], tolerate: { count: 1 } },
    { name: 'b', task: 'b', onFailure: 'continue' },
    { name: 'c', task: 'c' },
  ])
  await sayEach(f, 'a', { 1: 'failed', 2: 'succeeded' })
  await workOff(f, 'b', 'failed')
  await workOff(f, 'c')
  assert.equal(await statesOf(f, id), 'partial: a partial, b failed, c succeeded')
  await f.engine.retryJob(id)
  assert.equal(await statesOf(f, id), 'pending: a pending, b created, c succeeded')
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded, c succeeded')
  assert.equal(await workOff(f, 'c'), 0)
})

test('what a handler skipped stays skipped when its stage is retried', async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2, 3], failFast: false }])
  await sayEach(f, 'a', { 1: 'skipped', 2: 'failed', 3: 'succeeded' })
  await f.engine.retryJob(id)
  const { id: stageId } = await stageOf(f, id, 'a')
  assert.deepEqual(await tasksIn(f, stageId), ['1 skipped 1', '2 queued 2', '3 succeeded 1'])
})

test('what a handler skipped stays skipped, also where nothing else was in its stage', async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a', payloads: [1], open: true }])
  await workOff(f, 'a', 'skipped')
  const { id: stageId } = await stageOf(f, id, 'a')
  await f.engine.cancelStage(stageId)
  assert.equal(await statesOf(f, id), 'failed: a cancelled')
  await f.engine.retryStage(stageId)
  assert.deepEqual(await tasksIn(f, stageId), ['1 skipped 1'])
})

test('a stage that was skipped because of another comes back with it, and looks at its condition again', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', onFailure: 'continue' },
    { name: 'b', task: 'b', payloads: [1, 2], needs: ['a'], when: 'stages.a.state == "succeeded"' },
    { name: 'c', task: 'c', needs: ['b'] },
    { name: 'd', task: 'd', needs: [], when: 'false' },
  ])
  await workOff(f, 'a', 'failed')
  assert.equal(await statesOf(f, id), 'failed: a failed, b skipped, c skipped, d skipped')
  const stage = await stageOf(f, id, 'a')
  await f.engine.retryStage(stage.id)
  assert.equal(await statesOf(f, id), 'pending: a pending, b created, c created, d skipped')
  await workOff(f, 'a')
  assert.deepEqual(await tasksIn(f, (await stageOf(f, id, 'b')).id), ['1 queued 2', '2 queued 2'])
  assert.equal(await workOff(f, 'b'), 2)
  assert.equal(await workOff(f, 'c'), 1)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded, c succeeded, d skipped')
})

test('a retried task brings back a branch beside it that was called off because of it', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'c', task: 'c', needs: [] },
  ])
  const [one] = await claim(f, ['a'])
  await say(f, [one!], 'failed')
  assert.equal(await statesOf(f, id), 'failed: a failed, c cancelled')
  await f.engine.retry(one!.id)
  assert.equal((await f.engine.task(one!.id)).state, 'queued')
  assert.equal(await statesOf(f, id), 'pending: a pending, c pending')
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await workOff(f, 'c'), 1)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, c succeeded')
})

test('a retried stage brings back a branch beside it that was called off because of it', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'c', task: 'c', needs: [] },
  ])
  await workOff(f, 'a', 'failed')
  await f.engine.retryStage((await stageOf(f, id, 'a')).id)
  assert.equal(await statesOf(f, id), 'pending: a pending, c pending')
})

test('a task that is resumed in a job that was cancelled runs', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2] },
    { name: 'b', task: 'b' },
  ])
  await f.engine.cancelJob(id)
  const stage = await stageOf(f, id, 'a')
  const [one] = (await f.engine.tasks({ stageId: stage.id })).items
  await f.engine.resume(one!.id)
  assert.equal((await f.engine.task(one!.id)).state, 'queued')
  assert.equal(await statesOf(f, id), 'pending: a pending, b created')
})

test('a dead letter can be redriven though another stage failed, too: it runs before the job fails again', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2] },
    { name: 'c', task: 'c', needs: [] },
  ])
  const [one, two] = await claim(f, ['a'])
  await say(f, [one!], letter)
  await workOff(f, 'c', letter)
  await say(f, [two!], 'failed')
  assert.equal(await statesOf(f, id), 'failed: a failed, c failed')
  await f.engine.redrive({ ids: [one!.id] })
  assert.equal((await f.engine.task(one!.id)).state, 'queued')
})

test('what succeeded is never reopened: not the task, not the stage, not the job', async t => {
  const f = await fresh(t)
  const id = await submit(f, [{ name: 'a', task: 'a' }])
  const [one] = await claim(f, ['a'])
  await say(f, [one!], 'succeeded')
  const stage = await stageOf(f, id, 'a')
  const refused = { code: 'MOVE_REFUSED' }
  await assert.rejects(f.engine.retry(one!.id), refused)
  await assert.rejects(f.engine.resume(one!.id), refused)
  await assert.rejects(f.engine.retryStage(stage.id), refused)
  await assert.rejects(f.engine.retryJob(id), refused)
  await assert.rejects(f.engine.resumeJob(id), refused)
})

test('after compensation nothing of a job comes back', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', compensate: { task: 'undo' } },
    { name: 'b', task: 'b' },
  ])
  await workOff(f, 'a')
  const [one] = await claim(f, ['b'])
  await say(f, [one!], 'failed')
  const stage = await stageOf(f, id, 'b')
  assert.equal((await f.engine.job(id)).state, 'compensating')
  await assert.rejects(f.engine.retryJob(id), { code: 'MOVE_REFUSED' })
  await assert.rejects(f.engine.retryStage(stage.id), { code: 'MOVE_REFUSED' })
  await workOff(f, 'undo')
  const compensated = { code: 'JOB_COMPENSATED' }
  await assert.rejects(f.engine.retryJob(id), compensated)
  await assert.rejects(f.engine.resumeJob(id), compensated)
  await assert.rejects(f.engine.retryStage(stage.id), compensated)
  await assert.rejects(f.engine.retry(one!.id), compensated)
  assert.equal((await f.engine.job(id)).round, 1)
})

test('no stage comes back while its job is being stopped', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', onFailure: 'continue' },
    { name: 'b', task: 'b' },
  ])
  await workOff(f, 'a', 'failed')
  const [two] = await claim(f, ['b'])
  await f.engine.cancelJob(id)
  await assert.rejects(f.engine.retryStage((await stageOf(f, id, 'a')).id), { code: 'MOVE_REFUSED' })
  await assert.rejects(f.engine.retryJob(id), { code: 'MOVE_REFUSED' })
  await say(f, [two!], 'succeeded')
})

test('no task comes back while its job is being stopped or undone', async t => {
  const f = await fresh(t)
  const id = await submit(f, [
    { name: 'a', task: 'a', onFailure: 'continue' },
    { name: 'b', task: 'b' },
  ])
  const [one] = await claim(f, ['a'])
  await say(f, [one!], 'failed')
  const [two] = await claim(f, ['b'])
  await f.engine.cancelJob(id)
  assert.equal(await statesOf(f, id), 'stopping: a failed, b stopping')
  await assert.rejects(f.engine.retry(one!.id), { code: 'MOVE_REFUSED' })
  assert.equal(await statesOf(f, id), 'stopping: a failed, b stopping')
  await say(f, [two!], 'succeeded')
  assert.equal(await statesOf(f, id), 'cancelled: a failed, b cancelled')
})
