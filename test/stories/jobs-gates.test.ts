/** Gates and holds: a stage waits for people, and running work is left alone meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

async function submit({ engine }: Fresh, stages: JobSpec['stages'] & object, more: Partial<JobSpec> = {}) {
  return (await engine.submit({ name: 'j', stages, ...more })).id
}

const gateOf = async (f: Fresh, job: string, name: string) => (await stageOf(f, job, name)).id

test('a gate opens when as many people as it asks for have approved, and each counts once', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2], gate: { approvers: 3 } }])
  const id = await gateOf(f, job, 'a')
  for (const actor of ['ann', 'bob', 'ann', 'bob']) await f.engine.approve(id, { actor })
  assert.equal(await statesOf(f, job), 'pending: a waiting')
  assert.equal((await claim(f, ['a'])).length, 0)
  const { approvals } = await f.engine.approve(id, { actor: 'eve', comment: 'go' })
  assert.deepEqual(approvals, [{ by: 'ann' }, { by: 'bob' }, { by: 'eve', comment: 'go' }])
  assert.equal(await statesOf(f, job), 'pending: a pending')
  assert.equal(await workOff(f, 'a'), 2)
  assert.equal(await statesOf(f, job), 'succeeded: a succeeded')
})

test('a held stage gives out nothing, records what is in hand, and ends only once approved', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2] },
    { name: 'b', task: 'b' },
  ])
  const [one] = await claim(f, ['a'], 1)
  await f.sync({ started: [{ id: one!.id, epoch: one!.epoch }] })
  const id = await gateOf(f, job, 'a')
  await f.engine.hold(id, { reason: 'the printer is out' })
  assert.equal(await statesOf(f, job), 'running: a waiting, b created')
  assert.equal((await claim(f, ['a'])).length, 0)
  await say(f, [one!], 'succeeded')
  assert.equal((await f.engine.stage(id)).progress.good, 1)
  await f.engine.approve(id)
  assert.equal(await statesOf(f, job), 'running: a running, b created')
  const [two] = await claim(f, ['a'])
  await f.engine.hold(id)
  await say(f, [two!], 'succeeded')
  assert.equal(await statesOf(f, job), 'running: a waiting, b created')
  await f.engine.approve(id)
  assert.equal(await statesOf(f, job), 'running: a succeeded, b pending')
})

test('a gate waits for its needs first, and cannot be approved before', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', gate: true },
  ])
  const id = await gateOf(f, job, 'b')
  await assert.rejects(f.engine.approve(id), { code: 'MOVE_REFUSED' })
  await assert.rejects(f.engine.reject(id), { code: 'MOVE_REFUSED' })
  await workOff(f, 'a')
  assert.equal(await statesOf(f, job), 'running: a succeeded, b waiting')
  const { items } = await f.engine.stages({ state: 'waiting' })
  assert.deepEqual(
    items.map(stage => stage.id),
    [id],
  )
  await f.engine.approve(id)
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, job), 'succeeded: a succeeded, b succeeded')
  await assert.rejects(f.engine.approve(id), { code: 'MOVE_REFUSED' })
})

test('a gate that nobody needs to pass is not waited for: its condition is looked at first', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', gate: true, when: 'input.big' }], { input: { big: false } })
  assert.equal(await statesOf(f, job), 'succeeded: a skipped')
})

test('a rejected gate fails its stage and says who and why, and the job with it', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1, 2], gate: { approvers: 2 } },
    { name: 'b', task: 'b' },
  ])
  const id = await gateOf(f, job, 'a')
  await f.engine.approve(id, { actor: 'ann' })
  const stage = await f.engine.reject(id, { actor: 'bob', comment: 'too dear' })
  assert.deepEqual([stage.state, stage.cause, stage.error], ['failed', 'rejected', { message: 'too dear' }])
  assert.equal(await statesOf(f, job), 'failed: a failed, b cancelled')
  const { items } = await f.engine.stageEvents(id)
  assert.deepEqual(
    items.map(({ type, actor }) => `${type} ${actor}`),
    ['created producer', 'waiting engine', 'approved ann', 'rejected bob', 'failed engine'].map(e => `stage.${e}`),
  )
})

test('a rejected gate with onFailure: continue lets the job go on', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', gate: true, onFailure: 'continue' },
    { name: 'b', task: 'b' },
  ])
  await f.engine.reject(await gateOf(f, job, 'a'))
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, job), 'partial: a failed, b succeeded')
})

test('a held stage that is rejected stops: what is in hand is told, and it fails when that has ended', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2] }])
  const [one] = await claim(f, ['a'], 1)
  const id = await gateOf(f, job, 'a')
  await f.engine.hold(id)
  await f.engine.reject(id)
  assert.equal((await f.engine.stage(id)).state, 'stopping')
  assert.deepEqual(
    (await f.sync({ beats: [{ id: one!.id, epoch: one!.epoch }] })).cancel.map(notice => notice.id),
    [one!.id],
  )
  await say(f, [one!], 'succeeded')
  assert.equal(await statesOf(f, job), 'failed: a failed')
})

test('approvals are taken while the job is paused, and what they open is not claimed before it is resumed', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', gate: { approvers: 2 } }])
  const id = await gateOf(f, job, 'a')
  await f.engine.approve(id, { actor: 'ann' })
  await f.engine.pauseJob(job)
  await f.engine.approve(id, { actor: 'bob' })
  assert.equal(await statesOf(f, job), 'paused: a pending')
  assert.equal((await claim(f, ['a'])).length, 0)
  await f.engine.resumeJob(job)
  assert.equal(await statesOf(f, job), 'pending: a pending')
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await statesOf(f, job), 'succeeded: a succeeded')
})

test('a stage that is held before its turn waits when its turn comes', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b' },
  ])
  const id = await gateOf(f, job, 'b')
  await f.engine.hold(id)
  assert.equal(await statesOf(f, job), 'pending: a pending, b created')
  await workOff(f, 'a')
  assert.equal(await statesOf(f, job), 'running: a succeeded, b waiting')
  assert.equal((await claim(f, ['b'])).length, 0)
  await f.engine.approve(id)
  assert.equal(await statesOf(f, job), 'running: a succeeded, b pending')
})

test('a gate that is held too needs somebody to end the hold, and then all its approvers', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', gate: { approvers: 2 } },
  ])
  const id = await gateOf(f, job, 'b')
  await f.engine.hold(id)
  await workOff(f, 'a')
  for (const actor of ['ann', 'bob', 'bob']) await f.engine.approve(id, { actor })
  assert.equal(await statesOf(f, job), 'running: a succeeded, b waiting')
  assert.deepEqual((await f.engine.stage(id)).approvals, [{ by: 'bob' }])
  await f.engine.approve(id, { actor: 'ann' })
  assert.equal(await statesOf(f, job), 'running: a succeeded, b pending')
})

test('a gate of one approver that is held too is not passed by whoever ends the hold', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', gate: true }], { start: false })
  const id = await gateOf(f, job, 'a')
  await f.engine.hold(id)
  await f.engine.startJob(job)
  await f.engine.approve(id)
  assert.equal((await claim(f, ['a'])).length, 0)
  await f.engine.approve(id)
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await statesOf(f, job), 'succeeded: a succeeded')
})

test('a stage that has passed its gate and is held goes on when one approves', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', gate: { approvers: 2 } }])
  const id = await gateOf(f, job, 'a')
  for (const actor of ['ann', 'bob']) await f.engine.approve(id, { actor })
  await f.engine.hold(id)
  assert.equal(await statesOf(f, job), 'pending: a waiting')
  const { approvals } = await f.engine.approve(id, { actor: 'eve' })
  assert.deepEqual(approvals, [{ by: 'ann' }, { by: 'bob' }, { by: 'eve' }])
  assert.equal(await statesOf(f, job), 'pending: a pending')
})

test('a stage that waits, stops or has ended cannot be held', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2], gate: true }])
  const id = await gateOf(f, job, 'a')
  const refused = { code: 'MOVE_REFUSED' }
  await assert.rejects(f.engine.hold(id), refused)
  await f.engine.approve(id)
  const [one, two] = await claim(f, ['a'])
  await say(f, [one!], 'failed')
  assert.equal((await f.engine.stage(id)).state, 'stopping')
  await assert.rejects(f.engine.hold(id), refused)
  await say(f, [two!], 'failed')
  await assert.rejects(f.engine.hold(id), refused)
})

test('a gate before a fan-out can be rejected', async t => {
  const f = await fresh(t)
  const fan = { name: 'a', task: 'a', forEach: 'input', gate: true } as const
  const rejected = await submit(f, [fan], { input: [1, 2, 3] })
  await f.engine.reject(await gateOf(f, rejected, 'a'))
  assert.equal(await statesOf(f, rejected), 'failed: a failed')
})

test('a gate before a fan-out can be cancelled, and approved after a retry', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', forEach: 'input', gate: true }], { input: [1, 2, 3] })
  const id = await gateOf(f, job, 'a')
  await f.engine.cancelStage(id)
  assert.equal(await statesOf(f, job), 'failed: a cancelled')
  await f.engine.retryStage(id)
  assert.equal(await statesOf(f, job), 'pending: a waiting')
  await f.engine.approve(id)
  assert.equal(await workOff(f, 'a'), 3)
  assert.equal(await statesOf(f, job), 'succeeded: a succeeded')
})

test('a revived gate asks again', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', gate: true }])
  const id = await gateOf(f, job, 'a')
  await f.engine.approve(id, { actor: 'ann' })
  await workOff(f, 'a', 'failed')
  await f.engine.retryJob(job)
  assert.equal(await statesOf(f, job), 'pending: a waiting')
  await f.engine.approve(id, { actor: 'ann' })
  assert.equal(await workOff(f, 'a'), 1)
})

test('what comes back to a held stage, or is made in it, waits until it is approved', async t => {
  const f = await fresh(t)
  const retry = { delaySeconds: 0 }
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2, 3], failFast: false, retry }])
  const id = await gateOf(f, job, 'a')
  const [one, two, three] = await claim(f, ['a'])
  await say(f, [one!], 'failed')
  await f.engine.hold(id)
  await f.engine.retry(one!.id)
  await say(f, [two!], { outcome: 'failed', error: { message: 'again' } })
  await say(f, [three!], { outcome: 'succeeded', spawn: [{ payload: 4 }] })
  await f.advance(60)
  assert.equal((await claim(f, ['a'])).length, 0)
  assert.equal((await f.engine.task(one!.id)).state, 'blocked')
  await f.engine.approve(id)
  const tasks = await claim(f, ['a'])
  assert.deepEqual(tasks.map(({ payload }) => payload).sort(), [1, 2, 4])
  await say(f, tasks, 'succeeded')
  assert.equal(await statesOf(f, job), 'succeeded: a succeeded')
})

test('a job that waits at a gate can be cancelled; one approver of two changes nothing about that', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', gate: { approvers: 2 } },
    { name: 'b', task: 'b' },
  ])
  const id = await gateOf(f, job, 'a')
  await f.engine.approve(id)
  await f.engine.cancelJob(job)
  assert.equal(await statesOf(f, job), 'cancelled: a cancelled, b cancelled')
  await assert.rejects(f.engine.approve(id, { actor: 'bob' }), { code: 'MOVE_REFUSED' })
})
