import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { connect, type PawlClient } from '../../src/client/client.ts'
import { Problem } from '../../src/kernel/problem.ts'
import type { Role } from '../../src/kernel/role.ts'
import { type Served, served } from '../harness/served.ts'

/** A server, and a client whose key is for the queue "mine" only. */
async function narrow(t: TestContext, role: Role): Promise<Served & { readonly mine: PawlClient }> {
  const run = await served(t)
  const { secret } = await run.engine.createKey({ name: 'narrow', role, queues: ['mine'] })
  return { ...run, mine: connect({ server: run.server.url, key: secret, patienceSeconds: 0 }) }
}

const refused = (queue: string) => (error: unknown) => {
  assert.ok(error instanceof Problem && error.code === 'KEY_REFUSED', String(error))
  assert.deepEqual(error.details, { queues: [queue], may: ['mine'] })
  return true
}

test('a producer whose key is for one queue queues to no other, not even a single task of many', async t => {
  const { mine, engine } = await narrow(t, 'producer')
  await mine.enqueue('mine', 1)
  await mine.enqueue('other', 1, { queue: 'mine' })
  await assert.rejects(mine.enqueue('other', 1), refused('other'))
  await assert.rejects(mine.enqueue('mine', 1, { queue: 'other' }), refused('other'))
  await assert.rejects(mine.enqueueMany([{ type: 'mine' }, { type: 'other' }]), refused('other'))
  assert.equal((await engine.tasks()).items.length, 2)
})

test('a producer whose key is for one queue submits no job that works or undoes in another', async t => {
  const { mine, engine } = await narrow(t, 'producer')
  const stage = { name: 'work', task: 'mine' }
  await mine.submit({ name: 'fine', stages: [stage, { name: 'gate', gate: true }] })
  await assert.rejects(mine.submit({ name: 'bad', stages: [stage, { name: 'b', task: 'other' }] }), refused('other'))
  await assert.rejects(mine.submit({ name: 'bad', stages: [{ ...stage, queue: 'other' }] }), refused('other'))
  await assert.rejects(mine.submit('name: bad\nstages: [{ name: b, task: other }]'), refused('other'))
  const undo = { name: 'bad', stages: [{ ...stage, compensate: { task: 'other' } }] }
  await assert.rejects(mine.submit(undo), refused('other'))
  assert.equal((await engine.jobs()).items.length, 1)
})

test('a producer whose key is for one queue adds nothing to stages of another, and seals none', async t => {
  const { mine, engine } = await narrow(t, 'producer')
  const job = await engine.submit({ name: 'open', open: true, stages: [{ name: 'a', task: 'other', open: true }] })
  const [stage] = job.stages
  await assert.rejects(mine.addTasks(stage!.id, [{ payload: 1 }]), refused('other'))
  await assert.rejects(mine.sealStage(stage!.id), refused('other'))
  await assert.rejects(mine.sealJob(job.id), refused('other'))
  await assert.rejects(mine.addStages(job.id, [{ name: 'b', task: 'other' }]), refused('other'))
  await assert.rejects(mine.addStages(job.id, [{ name: 'b', run: { command: ['true'] } }]), refused('command'))
  assert.equal((await engine.job(job.id)).stages.length, 1)
})

test('a producer whose key is for one queue has its first answer again after the job is gone', async t => {
  const { mine, engine } = await narrow(t, 'producer')
  const { id, stages } = await engine.submit({ name: 'open', stages: [{ name: 'a', task: 'mine', open: true }] })
  const stage = stages[0]!.id
  const add = () => mine.addTasks(stage, [{ payload: 1 }], { idempotencyKey: 'add' })
  const seal = () => mine.sealStage(stage, { idempotencyKey: 'seal' })
  const first = [await add(), await seal()]
  await engine.cancelJob(id)
  await engine.deleteJob(id)
  assert.deepEqual([await add(), await seal()], first)
  await assert.rejects(mine.sealStage(stage, { idempotencyKey: 'other' }), { code: 'STAGE_NOT_FOUND' })
})

test('a producer whose key is for one queue adds to the job of an id what is for that queue, and nothing else', async t => {
  const { mine, engine } = await narrow(t, 'producer')
  const stages = [
    { name: 'a', task: 'other' },
    { name: 'own', task: 'mine' },
  ]
  const { id } = await engine.submit({ name: 'dag', open: 'untilDone', stages })
  const dag = { id, ifThere: 'add', name: 'dag', open: 'untilDone' } as const
  const stage = { name: 'b', task: 'mine', needs: ['a'] }
  const bad = [{ task: 'other' }, { queue: 'other' }, { compensate: { task: 'other' } }]
  for (const more of bad) {
    await assert.rejects(mine.submit({ ...dag, stages: [{ ...stage, ...more }] }), refused('other'))
  }
  const command = { name: 'b', run: { command: ['true'] }, needs: ['a'] }
  await assert.rejects(mine.submit({ ...dag, stages: [command] }), refused('command'))
  assert.equal((await mine.submit({ ...dag, stages: [stage] })).stages.length, 3)
  const foreign = await engine.submit({ name: 'dag', open: 'untilDone', stages: [{ name: 'a', task: 'other' }] })
  await assert.rejects(mine.submit({ ...dag, id: foreign.id, stages: [stage] }), refused('other'))
})

test('a worker whose key is for one queue claims from no other, and reports on no task of another', async t => {
  const { mine, engine, sync } = await narrow(t, 'worker')
  await engine.enqueueMany([{ type: 'mine' }, { type: 'other' }])
  const won = await mine.sync({ worker: 'w', queues: ['mine'], claim: 10 })
  assert.deepEqual(
    won.claimed.map(({ type }) => type),
    ['mine'],
  )
  await assert.rejects(mine.sync({ worker: 'w', queues: ['mine', 'other'], claim: 1 }), refused('other'))
  const [held] = (await sync({ queues: ['other'], claim: 1 })).claimed
  const { id, epoch } = held!
  for (const part of [
    { settled: [{ id, epoch, outcome: 'succeeded' as const }] },
    { settled: [{ id: id.toUpperCase(), epoch, outcome: 'succeeded' as const }] },
    { started: [{ id, epoch }] },
    { beats: [{ id, epoch, progress: 1 }] },
  ]) {
    await assert.rejects(mine.sync({ worker: 'w', ...part }), refused('other'))
  }
  await assert.rejects(mine.claims({ worker: 'w', queues: ['other'] }), refused('other'))
  for (const say of ['start', 'heartbeat', 'succeed', 'fail', 'skip', 'release', 'cancelled'] as const) {
    await assert.rejects(mine[say](id, epoch), refused('other'), say)
  }
  const task = await engine.task(id)
  assert.deepEqual([task.state, task.progress], ['assigned', null])
})

test('a worker whose key is for one queue spawns into no later stage of another, and its other reports count', async t => {
  const { mine, engine } = await narrow(t, 'worker')
  const { id: jobId } = await engine.submit({
    name: 'j',
    stages: [
      { name: 'work', task: 'mine', payloads: [1, 2, 3] },
      { name: 'near', task: 'x', queue: 'mine', open: 'untilDone' },
      { name: 'far', task: 'other', open: 'untilDone' },
    ],
  })
  const { claimed } = await mine.sync({ worker: 'w', queues: ['mine'], claim: 3 })
  const [far, near, plain] = claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const }))
  const answer = await mine.sync({
    worker: 'w',
    settled: [
      { ...far!, spawn: [{ payload: 1 }, { stage: 'far' }] },
      { ...near!, spawn: [{ stage: 'near' }, { stage: 'work' }] },
      plain!,
    ],
  })
  assert.deepEqual(
    answer.refused.map(({ id, code }) => [id, code]),
    [[far!.id, 'KEY_REFUSED']],
  )
  const one = mine.succeed(far!.id, far!.epoch, { spawn: [{ stage: 'far' }] })
  await assert.rejects(one, { code: 'KEY_REFUSED' })
  assert.equal((await engine.task(far!.id)).state, 'assigned')
  const totals = (await engine.job(jobId)).stages.map(({ progress }) => progress.total)
  assert.deepEqual(totals, [4, 1, 0])
  await engine.succeed(far!.id, far!.epoch, { spawn: [{ stage: 'far' }] })
  assert.equal((await engine.job(jobId)).stages[2]!.progress.total, 1, 'whoever has no such key may')
})

test('a worker whose key is for one queue sees the files of jobs that have work in it, and of no others', async t => {
  const { mine, engine } = await narrow(t, 'worker')
  const before = { name: 'before', task: 'other' }
  const shared = await engine.submit({ name: 'shared', stages: [before, { name: 'after', task: 'mine' }] })
  const foreign = await engine.submit({ name: 'foreign', stages: [before] })
  assert.deepEqual((await mine.stageFiles(shared.stages[0]!.id)).items, [])
  await assert.rejects(mine.stageFiles(foreign.stages[0]!.id), refused('other'))
})

test('a worker whose key is for one queue says nothing of types that are not in it', async t => {
  const { mine, engine } = await narrow(t, 'worker')
  await mine.putTaskType('mine', { timeoutSeconds: 5 })
  await assert.rejects(mine.putTaskType('other', { timeoutSeconds: 5 }), refused('other'))
  await assert.rejects(engine.taskType('other'), { code: 'TASK_TYPE_UNKNOWN' })
})

test('only keys of producers and workers are for some queues', async t => {
  const { engine } = await served(t)
  for (const role of ['viewer', 'operator', 'admin'] as const) {
    await assert.rejects(engine.createKey({ name: 'k', role, queues: ['a'] }), { code: 'OPTION_INVALID' })
  }
})
