/** Jobs and stages that accept additions until they are sealed, or until their work is done. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { defineTask } from '../../src/worker/define-task.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { eventually } from '../harness/eventually.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

const bounded = { timeout: 600_000 }

async function submit({ engine }: Fresh, stages: JobSpec['stages'] & object, more: Partial<JobSpec> = {}) {
  return (await engine.submit({ name: 'j', stages, ...more })).id
}

test('an open stage takes tasks and does not end before it is sealed', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', open: true },
    { name: 'b', task: 'b' },
  ])
  assert.equal(await statesOf(f, job), 'pending: a pending, b created')
  const { id } = await stageOf(f, job, 'a')
  await f.engine.addTasks(id, [{ payload: 1 }, { payload: 2 }])
  assert.equal(await workOff(f, 'a'), 2)
  assert.equal(await statesOf(f, job), 'running: a running, b created')
  await f.engine.addTasks(id, [{ payload: 3, type: 'other' }])
  const [other] = await claim(f, ['a'])
  assert.deepEqual([other!.type, other!.payload], ['other', 3])
  await f.engine.sealStage(id)
  await say(f, [other!], 'succeeded')
  assert.equal(await statesOf(f, job), 'running: a succeeded, b pending')
})

test('an open job takes stages and does not end before it is sealed', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', open: true })
  assert.equal(await statesOf(f, id), 'pending: ')
  await f.engine.addStages(id, [{ name: 'a', task: 'a', payloads: [1, 2] }])
  assert.equal(await workOff(f, 'a'), 2)
  assert.equal(await statesOf(f, id), 'running: a succeeded')
  await f.engine.addStages(id, [
    { name: 'b', task: 'b' },
    { name: 'c', task: 'c', needs: ['a'] },
  ])
  assert.equal(await statesOf(f, id), 'running: a succeeded, b pending, c pending')
  await f.engine.sealJob(id)
  await workOff(f, 'b')
  await workOff(f, 'c')
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded, c succeeded')
})

test('an empty sealed stage and an empty sealed job succeed at once; empty open ones wait for their seal', async t => {
  const f = await fresh(t)
  assert.equal(await statesOf(f, await submit(f, [])), 'succeeded: ')
  assert.equal(await statesOf(f, await submit(f, [{ name: 'a', task: 'a', payloads: [] }])), 'succeeded: a succeeded')
  const open = await submit(f, [{ name: 'a', task: 'a', open: true }])
  assert.equal(await statesOf(f, open), 'pending: a pending')
  await f.engine.sealStage((await stageOf(f, open, 'a')).id)
  assert.equal(await statesOf(f, open), 'succeeded: a succeeded')
  const { id } = await f.engine.submit({ name: 'j', open: true })
  await f.engine.sealJob(id)
  assert.equal(await statesOf(f, id), 'succeeded: ')
})

test('untilDone: it waits while it is empty, and ends when what it has had has ended', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'j', open: 'untilDone' })
  assert.equal(await statesOf(f, id), 'pending: ')
  await f.engine.addStages(id, [{ name: 'a', task: 'a', open: 'untilDone' }])
  assert.equal(await statesOf(f, id), 'pending: a pending')
  const stage = await stageOf(f, id, 'a')
  await f.engine.addTasks(stage.id, [{ payload: 1 }])
  const [one] = await claim(f, ['a'])
  await f.engine.addTasks(stage.id, [{ payload: 2 }])
  await say(f, [one!], 'succeeded')
  assert.equal(await statesOf(f, id), 'running: a running')
  assert.equal(await workOff(f, 'a'), 1)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded')
  await assert.rejects(f.engine.addTasks(stage.id, [{ payload: 3 }]), { code: 'MOVE_REFUSED' })
  await assert.rejects(f.engine.addStages(id, [{ name: 'b', task: 'b' }]), { code: 'MOVE_REFUSED' })
})

test('what is sealed takes nothing more, and sealing it again changes nothing', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1] }])
  const { id } = await stageOf(f, job, 'a')
  const { seq } = await f.engine.sealJob(job)
  assert.equal((await f.engine.job(job)).seq, seq)
  await f.engine.sealStage(id)
  await assert.rejects(f.engine.addTasks(id, [{ payload: 2 }]), { code: 'SEALED' })
  await assert.rejects(f.engine.addStages(job, [{ name: 'b', task: 'b' }]), { code: 'SEALED' })
  assert.equal((await f.engine.job(job)).progress.total, 1)
})

test('what is stopping takes nothing more', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a', payloads: [1, 2], open: true }], { open: true })
  const { id } = await stageOf(f, job, 'a')
  const [one] = await claim(f, ['a'], 1)
  await f.engine.cancelJob(job)
  assert.equal(await statesOf(f, job), 'stopping: a stopping')
  await assert.rejects(f.engine.addTasks(id, [{ payload: 3 }]), { code: 'MOVE_REFUSED' })
  await assert.rejects(f.engine.addStages(job, [{ name: 'b', task: 'b' }]), { code: 'MOVE_REFUSED' })
  await say(f, [one!], 'succeeded')
  assert.equal(await statesOf(f, job), 'cancelled: a cancelled')
})

test('tasks that are added before their stage opens wait for it', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', open: true },
  ])
  const { id } = await stageOf(f, job, 'b')
  await f.engine.addTasks(id, [{ payload: 1 }])
  assert.equal((await f.engine.tasks({ stageId: id })).items[0]!.state, 'blocked')
  await workOff(f, 'a')
  assert.equal(await workOff(f, 'b'), 1)
})

test('an open stage without a type takes tasks of any, under its own name', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'mixed', open: true }])
  const { id } = await stageOf(f, job, 'mixed')
  await assert.rejects(f.engine.addTasks(id, [{ payload: 1 }]), { code: 'OPTION_INVALID' })
  const tasks = ['x', 'y'].map(type => ({ type }))
  await f.engine.addTasks(id, tasks, { idempotencyKey: 'k' })
  await f.engine.addTasks(id, tasks, { idempotencyKey: 'k' })
  const claimed = await claim(f, ['mixed'])
  assert.deepEqual(
    claimed.map(({ type }) => type),
    ['x', 'y'],
  )
})

test('a stage that is added must fit the graph that is there', async t => {
  const f = await fresh(t)
  const job = await submit(f, [{ name: 'a', task: 'a' }], { open: true })
  const add = (stage: { name: string; needs?: string[] }) => f.engine.addStages(job, [{ task: 't', ...stage }])
  await assert.rejects(add({ name: 'a' }), { code: 'SPEC_INVALID' })
  await assert.rejects(add({ name: 'b', needs: ['z'] }), { code: 'SPEC_INVALID' })
  assert.equal(await statesOf(f, job), 'pending: a pending')
})

test('a handler makes more tasks, in its own stage and in a later one that is open', bounded, async t => {
  const f = await fresh(t)
  const leaves: unknown[] = []
  const walk = defineTask({
    type: 'walk',
    handler: async (depth: number, ctx) => {
      if (depth > 0) ctx.spawn({ payload: depth - 1 }, { payload: depth - 1 })
      else ctx.spawn({ stage: 'gather', payload: 'leaf' })
    },
  })
  const gather = defineTask({ type: 'gather', handler: async (leaf: unknown) => void leaves.push(leaf) })
  const job = await submit(f, [
    { name: 'walk', task: 'walk', payload: 3 },
    { name: 'gather', task: 'gather', open: 'untilDone' },
  ])
  await using _worker = startWorker(f.engine, [walk, gather], { concurrency: 4, drainSeconds: 2 })
  await eventually('the job has ended', async () => (await f.engine.job(job)).endedAt)
  assert.equal(await statesOf(f, job), 'succeeded: walk succeeded, gather succeeded')
  const { stages } = await f.engine.job(job)
  assert.deepEqual(
    stages.map(({ progress }) => progress.good),
    [15, 8],
  )
  assert.equal(leaves.length, 8)
})

test('what a task makes is written with its settle or not at all', async t => {
  const f = await fresh(t)
  const job = await submit(f, [
    { name: 'a', task: 'a', payloads: [1] },
    { name: 'b', task: 'b', payloads: [1] },
  ])
  const [one] = await claim(f, ['a'])
  const settle = (epoch: number, stage?: string) =>
    f.sync({
      settled: [{ id: one!.id, epoch, outcome: 'succeeded', spawn: [{ payload: 2, ...(stage && { stage }) }] }],
    })
  assert.equal((await settle(one!.epoch, 'b')).refused[0]!.code, 'SPAWN_REFUSED')
  assert.equal((await settle(one!.epoch, 'nowhere')).refused[0]!.code, 'SPAWN_REFUSED')
  assert.equal((await settle(one!.epoch + 1)).refused[0]!.code, 'LEASE_LOST')
  assert.equal((await f.engine.task(one!.id)).state, 'assigned')
  assert.equal((await f.engine.job(job)).progress.total, 2)
  assert.deepEqual((await settle(one!.epoch)).refused, [])
  assert.deepEqual((await settle(one!.epoch)).refused, [], 'sent again, it is answered as before')
  assert.equal((await f.engine.job(job)).progress.total, 3)
  assert.equal(await statesOf(f, job), 'running: a running, b created')
})

for (const count of [0, 1, 2500]) {
  test(`forEach over ${count} elements makes ${count} tasks, in their order`, bounded, async t => {
    const f = await fresh(t)
    const job = await submit(f, [
      { name: 'list', task: 'list' },
      { name: 'each', task: 'each', forEach: 'stages.list.output.pages' },
      { name: 'sum', task: 'sum', when: `size(stages.each.output) == ${count}` },
    ])
    const pages = Array.from({ length: count }, (_, page) => ({ page }))
    await workOff(f, 'list', { outcome: 'succeeded', output: { pages } })
    const seen: unknown[] = []
    for (let tasks = await claim(f, ['each'], 1000); tasks.length > 0; tasks = await claim(f, ['each'], 1000)) {
      seen.push(...tasks.map(({ payload }) => payload))
      await say(f, tasks, 'succeeded')
    }
    assert.deepEqual(seen, pages)
    assert.equal(await workOff(f, 'sum'), 1)
    assert.equal(await statesOf(f, job), 'succeeded: list succeeded, each succeeded, sum succeeded')
  })
}

test('a condition or a list that cannot be worked out fails its stage, and says why', async t => {
  const f = await fresh(t)
  const cases = [
    [{ when: 'stages.a.output.missing.deeper == 1' }, /missing|key/i],
    [{ when: 'stages.a.output.count' }, /true or false/],
    [{ forEach: 'stages.a.output.count' }, /list/],
    [{ forEach: 'stages.a.output.nothing' }, /nothing|key/i],
  ] as const
  for (const [options, why] of cases) {
    const job = await submit(f, [
      { name: 'a', task: 'a' },
      { name: 'b', task: 'b', ...options },
      { name: 'c', task: 'c' },
    ])
    await workOff(f, 'a', { outcome: 'succeeded', output: { count: 3 } })
    assert.equal(await statesOf(f, job), 'failed: a succeeded, b failed, c cancelled', JSON.stringify(options))
    const { cause, error } = await stageOf(f, job, 'b')
    assert.equal(cause, 'condition_error')
    assert.match(error!.message, why)
  }
})

test('a stage that is added may take the files of one that is there, if that one puts some out', async t => {
  const f = await fresh(t)
  const run = { command: ['true'] }
  const { id } = await f.engine.submit({
    name: 'files',
    open: true,
    stages: [
      { name: 'made', run, outputs: 'file:///tmp/made' },
      { name: 'kept', run, needs: [] },
    ],
  })
  const taking = (stage: string) => [{ name: 'next', needs: [stage], run, inputs: { part: { stage } } }]
  await assert.rejects(f.engine.addStages(id, taking('kept')), {
    code: 'SPEC_INVALID',
    message: /it produces no files/,
  })
  const { stages } = await f.engine.addStages(id, taking('made'))
  assert.deepEqual(
    stages.map(({ name }) => name),
    ['made', 'kept', 'next'],
  )
})
