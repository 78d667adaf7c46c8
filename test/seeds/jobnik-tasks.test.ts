/** Seed 001, Jobnik: the moves of its tasks, and how they cascade to stages and jobs and back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskState } from '../../src/kernel/task.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { begin, movesIn, twoStages } from '../harness/job-in.ts'
import { claim, say, statesOf, workOff } from '../harness/jobs.ts'
import { taskIn } from '../harness/task-in.ts'

/** A job of one stage `a` with one task, which has two attempts without a delay. */
async function oneTask({ engine }: Fresh, spec: Partial<StageSpec> = {}) {
  const retry = { attempts: 2, delaySeconds: 0 }
  const job = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a', retry, ...spec }] })
  const { items } = await engine.tasks({ jobId: job.id })
  return { jobId: job.id, id: items[0]!.id }
}
const threw = { outcome: 'failed', error: { message: 'no' } } as const

test('jobnik 001, task: CREATED → PENDING at once when it is created in an open stage', async t => {
  const f = await fresh(t)
  const { id } = await oneTask(f)
  assert.equal((await f.engine.task(id)).state, 'queued')
})

test('jobnik 001, task: PENDING → IN_PROGRESS atomically, so of many who dequeue one gets it', async t => {
  const f = await fresh(t)
  const { id } = await oneTask(f)
  const claims = await Promise.all(Array.from({ length: 8 }, () => claim(f, ['a'], 1)))
  assert.deepEqual(
    claims.flat().map(task => task.id),
    [id],
  )
  assert.equal((await f.engine.task(id)).state, 'assigned')
})

test('jobnik 001, task: IN_PROGRESS → COMPLETED when the handler returns', async t => {
  const f = await fresh(t)
  const { id } = await oneTask(f)
  await workOff(f, 'a', { outcome: 'succeeded', output: 7 })
  const { state, output } = await f.engine.task(id)
  assert.deepEqual([state, output], ['succeeded', 7])
})

for (const [deadLetter, end] of [
  ['never', 'failed'],
  ['exhausted', 'dead_lettered'],
] as const) {
  test(`jobnik 001, task: IN_PROGRESS → RETRIED → IN_PROGRESS → FAILED (${end}) when attempts are used up`, async t => {
    const f = await fresh(t)
    const { id, jobId } = await oneTask(f, { deadLetter })
    const [first] = await begin(f, 'a')
    await say(f, [first!], threw)
    assert.equal((await f.engine.task(id)).state, 'retrying')
    assert.equal(await statesOf(f, jobId), 'running: a running')
    const [second] = await begin(f, 'a')
    assert.deepEqual([second!.id, second!.attempt], [id, 2])
    await say(f, [second!], threw)
    assert.equal((await f.engine.task(id)).state, end)
    assert.equal(await statesOf(f, jobId), 'failed: a failed')
    const moves = [
      'assigned → running',
      'running → retrying',
      'retrying → assigned',
      'assigned → running',
      `running → ${end}`,
    ]
    assert.deepEqual(movesIn(await f.engine.taskEvents(id)).slice(-5), moves)
  })
}

for (const state of ['blocked', 'queued', 'assigned', 'running', 'retrying', 'succeeded', 'skipped'] as TaskState[]) {
  test(`jobnik 001, task: PENDING cannot be set by hand from ${state}`, async t => {
    const f = await fresh(t)
    const { id } = await taskIn(f, state)
    for (const ask of [f.engine.retry, f.engine.resume]) await assert.rejects(ask(id), { code: 'MOVE_REFUSED' })
    assert.equal((await f.engine.redrive({ ids: [id] })).refused[0]!.code, 'MOVE_REFUSED')
    assert.equal((await f.engine.task(id)).state, state)
  })
}

test('jobnik 001, task: IN_PROGRESS cannot be set by hand: a start without a dequeue is refused', async t => {
  const f = await fresh(t)
  const { id } = await oneTask(f)
  const { refused } = await f.sync({
    started: [
      { id, epoch: 0 },
      { id, epoch: 1 },
    ],
  })
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['LEASE_LOST', 'LEASE_LOST'],
  )
  assert.equal((await f.engine.task(id)).state, 'queued')
})

test('jobnik 001, cascade: all tasks complete → stage COMPLETED → all stages → job COMPLETED', async t => {
  const f = await fresh(t)
  const stages = twoStages.map(({ name }) => ({ name, task: name, payloads: [1, 2] }))
  const { id } = await f.engine.submit({ name: 'j', stages })
  for (const [queue, half, whole] of [
    ['a', 'running: a running, b created', 'running: a succeeded, b pending'],
    ['b', 'running: a succeeded, b running', 'succeeded: a succeeded, b succeeded'],
  ] as const) {
    const [one, two] = await claim(f, [queue])
    await say(f, [one!], 'succeeded')
    assert.equal(await statesOf(f, id), half)
    await say(f, [two!], 'succeeded')
    assert.equal(await statesOf(f, id), whole)
  }
})

test('jobnik 001, cascade: any task permanently fails → stage FAILED → job FAILED', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [{ name: 'a', task: 'a', payloads: [1, 2, 3] }, twoStages[1]!],
  })
  const [one, two, three] = await claim(f, ['a'])
  await say(f, [one!], 'succeeded')
  await say(f, [two!], 'failed')
  await say(f, [three!], 'succeeded')
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
})

test('jobnik 001, cascade: a user aborts a job → job ABORTED → all its stages ABORTED', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: [...twoStages, { name: 'c', gate: true, task: 'c' }] })
  await workOff(f, 'a')
  await f.engine.cancelJob(id)
  // Completed work stays completed.
  assert.equal(await statesOf(f, id), 'cancelled: a succeeded, b cancelled, c cancelled')
  const { items } = await f.engine.tasks({ jobId: id, state: 'cancelled' })
  assert.equal(items.length, 2)
})

test('jobnik 001, cascade: work in hand can be reported after the abort, and is kept', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: twoStages })
  const held = await begin(f, 'a')
  await f.engine.cancelJob(id)
  await say(f, held, 'succeeded')
  assert.equal(await statesOf(f, id), 'cancelled: a cancelled, b cancelled')
  assert.equal((await f.engine.task(held[0]!.id)).state, 'succeeded')
})

test('jobnik 001, delete: right after an abort, with work in hand, and a late report finds nothing', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', stages: twoStages })
  const [held] = await begin(f, 'a')
  await assert.rejects(f.engine.deleteJob(id), { code: 'MOVE_REFUSED' })
  await f.engine.cancelJob(id)
  await f.engine.deleteJob(id)
  await assert.rejects(f.engine.job(id), { code: 'JOB_NOT_FOUND' })
  const { refused } = await f.sync({ settled: [{ id: held!.id, epoch: held!.epoch, outcome: 'succeeded' }] })
  assert.equal(refused[0]!.code, 'LEASE_LOST')
  await assert.rejects(f.engine.task(held!.id), { code: 'TASK_NOT_FOUND' })
})

test('jobnik 001, dequeue: the highest priority first, also after it was changed, then the oldest', async t => {
  const f = await fresh(t)
  const ids: string[] = []
  for (const priority of [0, 0, 5]) ids.push((await f.engine.submit({ name: 'j', priority, stages: twoStages })).id)
  await f.engine.internals.setJobPriority(ids[1]!, 9)
  const order: (string | null)[] = []
  for (const _ of ids) {
    const [next] = await claim(f, ['a'], 1)
    order.push((await f.engine.task(next!.id)).jobId)
  }
  assert.deepEqual(order, [ids[1], ids[2], ids[0]])
})
