/** A job from its spec to its end, on both kinds of store. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

test('stages follow one another, and the job ends when the last has', async t => {
  const f = await fresh(t)
  const job = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2] },
      { name: 'b', task: 'b' },
    ],
  })
  assert.equal(await statesOf(f, job.id), 'pending: a pending, b created')
  assert.equal(await workOff(f, 'b'), 0)
  const [one, two] = await claim(f, ['a'])
  await say(f, [one!], 'succeeded')
  assert.equal(await statesOf(f, job.id), 'running: a running, b created')
  await say(f, [two!], 'succeeded')
  assert.equal(await statesOf(f, job.id), 'running: a succeeded, b pending')
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, job.id), 'succeeded: a succeeded, b succeeded')
})

test('a stage that fails stops its siblings and its job, and nothing is left open', async t => {
  const f = await fresh(t)
  const job = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2, 3] },
      { name: 'after', task: 'after' },
      { name: 'beside', task: 'beside', needs: [] },
    ],
  })
  const [one, two] = await claim(f, ['a'], 2)
  await say(f, [one!], 'failed')
  // The job continues until the stage has ended: another branch may still be worth finishing.
  assert.equal(await statesOf(f, job.id), 'running: a stopping, after created, beside pending')
  await say(f, [two!], 'failed')
  assert.equal(await statesOf(f, job.id), 'failed: a failed, after cancelled, beside cancelled')
  const { items } = await f.engine.tasks({ jobId: job.id })
  assert.deepEqual(items.map(({ state }) => state).sort(), [...Array(4).fill('cancelled'), 'failed'])
})

test('a paused job gives out nothing, records what is in hand, and goes on', async t => {
  const f = await fresh(t)
  const job = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2] },
      { name: 'b', task: 'b' },
    ],
  })
  const [one] = await claim(f, ['a'], 1)
  await f.engine.pauseJob(job.id)
  assert.equal((await claim(f, ['a'])).length, 0)
  await say(f, [one!], 'succeeded')
  assert.equal(await statesOf(f, job.id), 'paused: a running, b created')
  await f.engine.resumeJob(job.id)
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, job.id), 'succeeded: a succeeded, b succeeded')
})

test('a gate waits for its approvers, and what they said can be read by later stages', async t => {
  const f = await fresh(t)
  const job = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'review', gate: { approvers: 2 } },
      { name: 'b', task: 'b', when: 'stages.review.approvals[0].data.go == true' },
    ],
  })
  assert.equal(await statesOf(f, job.id), 'pending: review waiting, b created')
  const { id } = await stageOf(f, job.id, 'review')
  await f.engine.approve(id, { actor: 'ann', data: { go: true }, comment: 'fine' })
  await f.engine.approve(id, { actor: 'ann' })
  assert.equal(await statesOf(f, job.id), 'pending: review waiting, b created')
  await f.engine.approve(id, { actor: 'bob' })
  assert.equal(await statesOf(f, job.id), 'pending: review succeeded, b pending')
  await workOff(f, 'b')
  assert.equal(await statesOf(f, job.id), 'succeeded: review succeeded, b succeeded')
})

test('what succeeded is undone in reverse order when the job fails', async t => {
  const f = await fresh(t)
  const job = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2], compensate: { task: 'undo-a' } },
      { name: 'b', task: 'b', compensate: { task: 'undo-b' } },
      { name: 'c', task: 'c' },
    ],
  })
  await workOff(f, 'a', { outcome: 'succeeded', output: 'done' })
  await workOff(f, 'b')
  await workOff(f, 'c', 'failed')
  assert.equal(
    await statesOf(f, job.id),
    'compensating: a succeeded, b succeeded, c failed, undo b pending, undo a created',
  )
  assert.equal(await workOff(f, 'undo-a'), 0)
  assert.equal(await workOff(f, 'undo-b'), 1)
  const undo = await claim(f, ['undo-a'])
  assert.deepEqual(
    undo.map(({ payload }) => (payload as { payload: number }).payload),
    [2, 1],
  )
  await say(f, undo, 'succeeded')
  assert.equal(
    await statesOf(f, job.id),
    'failed: a succeeded, b succeeded, c failed, undo b succeeded, undo a succeeded',
  )
  const { items } = await f.engine.jobEvents(job.id)
  assert.equal(items.filter(({ type }) => type === 'job.compensated').length, 1)
  await assert.rejects(f.engine.retryJob(job.id), { code: 'JOB_COMPENSATED' })
})

test('a retry does again what did not succeed, and only that', async t => {
  const f = await fresh(t)
  const job = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2] },
      { name: 'b', task: 'b' },
    ],
  })
  const [one, two] = await claim(f, ['a'])
  await say(f, [one!], 'succeeded')
  await say(f, [two!], 'failed')
  assert.equal(await statesOf(f, job.id), 'failed: a failed, b cancelled')
  await f.engine.retryJob(job.id)
  assert.equal(await statesOf(f, job.id), 'pending: a pending, b created')
  const again = await claim(f, ['a'])
  assert.deepEqual(
    again.map(({ id }) => id),
    [two!.id],
  )
  await say(f, again, 'succeeded')
  assert.equal(await workOff(f, 'b'), 1)
  const { state, round } = await f.engine.job(job.id)
  assert.deepEqual([state, round], ['succeeded', 2])
})
