import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { workOff } from '../../../test/harness/jobs.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { retention } from '../../babysitter/chores.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'

const ended = statesOf(taskLifecycle, 'final')

test('a task that has ended can be deleted, however it ended, and nothing of it is left', async t => {
  const f = await fresh(t)
  for (const state of ended) {
    const { id } = await taskIn(f, state, { dedupeKey: state, expireInSeconds: 1000 })
    await f.engine.deleteTask(id)
    await assert.rejects(f.engine.task(id), { code: 'TASK_NOT_FOUND' })
    await assert.rejects(f.engine.deleteTask(id), { code: 'TASK_NOT_FOUND', status: 404 })
  }
  const [left] = await f.sql<{ n: number }>`
      select (select count(*) from pawl.task) + (select count(*) from pawl.trouble) + (select count(*) from pawl.log)
             + (select count(*) from pawl.due) as n`
  assert.equal(left!.n, 0)
  assert.deepEqual((await f.engine.events()).items, [])
})

test('a task that has not ended cannot be deleted, and stays as it was', async t => {
  const f = await fresh(t)
  for (const state of statesOf(taskLifecycle).filter(each => !ended.includes(each) && each !== 'blocked')) {
    const { id } = await taskIn(f, state)
    const before = await f.engine.task(id)
    await assert.rejects(f.engine.deleteTask(id), { code: 'MOVE_REFUSED', status: 409 })
    assert.deepEqual(await f.engine.task(id), before)
  }
})

test('a task of a job is deleted with its job and not alone', async t => {
  const f = await fresh(t)
  const { id: job } = await f.engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const [task] = (await f.engine.tasks()).items
  await workOff(f, 'a')
  await assert.rejects(f.engine.deleteTask(task!.id), { code: 'TASK_OF_JOB', status: 409 })
  assert.equal((await f.engine.task(task!.id)).state, 'succeeded')
  await f.engine.deleteJob(job)
  await assert.rejects(f.engine.task(task!.id), { code: 'TASK_NOT_FOUND' })
})

test('a delete that is sent again under its key has its first answer; in a transaction it is undone with it', async t => {
  const f = await fresh(t)
  const { id } = await taskIn(f, 'failed')
  const undone = f.engine.transaction(async tx => {
    await f.engine.deleteTask(id, { tx })
    throw new Error('undone')
  })
  await assert.rejects(undone, /undone/)
  assert.equal((await f.engine.task(id)).state, 'failed')
  await f.engine.deleteTask(id, { idempotencyKey: 'k' })
  await f.engine.deleteTask(id, { idempotencyKey: 'k' })
  await assert.rejects(f.engine.deleteTask(id), { code: 'TASK_NOT_FOUND' })
})

test('what is known of the files of a deleted task goes with it', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.enqueue('a', null)
  const [held] = (await f.sync({ queues: ['a'], claim: 1 })).claimed
  const file = { name: 'x', uri: 's3://bucket/x' }
  const uploaded = { ...file, state: 'uploaded', size: 1, sha256: 'a'.repeat(64) } as const
  for (const artifact of [{ ...file, state: 'registered' } as const, uploaded]) {
    await f.engine.reportArtifacts(id, held!.epoch, { artifacts: [artifact] })
  }
  await f.engine.succeed(id, held!.epoch)
  assert.equal((await f.engine.taskArtifacts(id)).items.length, 1)
  await f.engine.deleteTask(id)
  await assert.rejects(f.engine.taskArtifacts(id), { code: 'TASK_NOT_FOUND' })
  assert.deepEqual(await f.sql`select id from pawl.artifact`, [])
})

test('an id that was chosen is not free again when its task or job is deleted, but a month later', async t => {
  const f = await fresh(t)
  const [task, job] = ['0198c0de-0000-4000-8000-00000000000a', '0198c0de-0000-4000-8000-00000000000b']
  const spec = { id: job, name: 'j', stages: [] }
  await f.engine.enqueue('a', null, { id: task })
  await f.engine.submit(spec)
  await workOff(f, 'a')
  await f.engine.deleteTask(task)
  await f.engine.deleteJob(job)
  await f.advance(29 * 86_400)
  await retention().run(f.engine.context)
  await assert.rejects(f.engine.enqueue('a', null, { id: task }), { code: 'ID_TAKEN' })
  await assert.rejects(f.engine.submit(spec), { code: 'ID_TAKEN' })
  await f.advance(31 * 86_400)
  await retention().run(f.engine.context)
  assert.equal((await f.engine.enqueue('a', null, { id: task })).id, task)
  assert.equal((await f.engine.submit(spec)).id, job)
})
