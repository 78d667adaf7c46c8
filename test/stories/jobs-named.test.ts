/** What may be said of the tasks of a stage besides their payload, and branches that tasks themselves leave. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../harness/fresh.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'

const taskId = '0198C0DE-0000-4000-8000-00000000000A'

test('the only task of a stage has the id and the metadata that were chosen for it', async t => {
  const f = await fresh(t)
  const stages = [{ name: 'a', task: 'a', payload: 1, taskId, taskMetadata: { of: 'Ada' } }]
  const { id } = await f.engine.submit({ name: 'j', stages })
  const { jobId, metadata, payload } = await f.engine.task(taskId)
  assert.deepEqual([jobId, metadata, payload], [id, { of: 'Ada' }, 1])
  await assert.rejects(f.engine.submit({ name: 'k', stages }), { code: 'ID_TAKEN' })
  const open = await f.engine.submit({ name: 'l', open: true })
  await assert.rejects(f.engine.addStages(open.id, stages), { code: 'ID_TAKEN' })
  assert.deepEqual([(await f.engine.jobs()).items.length, (await f.engine.tasks()).items.length], [2, 1])
  await workOff(f, 'a', 'failed')
  const clone = await f.engine.retryJob(id, { clone: true })
  const [task] = (await f.engine.jobTasks(clone.id)).items
  assert.deepEqual([task!.id === taskId.toLowerCase(), task!.metadata], [false, { of: 'Ada' }])
})

test('a stage for later is not worked on before its time, though what it needs is done', async t => {
  const f = await fresh(t)
  const runAt = new Date((await f.engine.internals.clock()) + 3_600_000)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a', runAt },
      { name: 'b', task: 'b', needs: [], runAt: runAt.toISOString() },
      { name: 'c', task: 'c', needs: ['b'], runAt: '2001-01-01T00:00:00Z' },
      { name: 'd', task: 'd', needs: ['e'], payloads: [1, 2], runAt: new Date(runAt.getTime() + 3_600_000) },
      { name: 'e', task: 'e', needs: [] },
    ],
  })
  await workOff(f, 'e')
  await f.advance(3500)
  for (const queue of ['a', 'b', 'c', 'd']) assert.equal((await claim(f, [queue])).length, 0, queue)
  await f.advance(200)
  assert.deepEqual([await workOff(f, 'a'), await workOff(f, 'b'), await workOff(f, 'c')], [1, 1, 1])
  assert.equal(await workOff(f, 'd'), 0)
  await f.advance(3600)
  assert.equal(await workOff(f, 'd'), 2)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('an id for the only task is refused of a stage that has not one task', async t => {
  const f = await fresh(t)
  const odd = [{ payloads: [1] }, { forEach: 'input' }, { open: true }, { task: undefined, gate: true as const }]
  for (const more of odd) {
    const stage = { name: 'a', task: 'a', taskId, ...more } as never
    await assert.rejects(f.engine.submit({ name: 'j', stages: [stage] }), { code: 'SPEC_INVALID' })
  }
})

test('a branch that its own first task leaves is skipped to where another one meets it', async t => {
  const f = await fresh(t)
  const stage = (name: string, ...needs: string[]) => ({ name, task: name, needs, join: 'taken' as const })
  const stages = [
    stage('classify'),
    stage('invoice', 'classify'),
    stage('letter', 'classify'),
    stage('stamp', 'letter'),
    stage('post', 'stamp', 'letter'),
    stage('store', 'invoice', 'post'),
  ]
  const { id } = await f.engine.submit({ name: 'dag', stages })
  await workOff(f, 'classify')
  await say(f, await claim(f, ['letter']), 'skipped')
  assert.deepEqual([await workOff(f, 'stamp'), await workOff(f, 'post'), await workOff(f, 'store')], [0, 0, 0])
  assert.deepEqual([await workOff(f, 'invoice'), await workOff(f, 'store')], [1, 1])
  const ended = 'letter succeeded, stamp skipped, post skipped, store succeeded'
  assert.equal(await statesOf(f, id), `succeeded: classify succeeded, invoice succeeded, ${ended}`)
})

test('where a stage does not ask for it, what a task skips by itself is not passed on', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'a' },
      { name: 'b', task: 'b', needs: ['a'] },
    ],
  })
  await workOff(f, 'a', 'skipped')
  assert.equal(await workOff(f, 'b'), 1)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded')
})

test('a stage of which a need went bad waits for it to come back, and goes on when it did well', async t => {
  const f = await fresh(t)
  const stages = [
    { name: 'a', task: 'a' },
    { name: 'b', task: 'b', needs: ['a'], join: 'taken' as const },
  ]
  const { id } = await f.engine.submit({ name: 'j', stages })
  await workOff(f, 'a', 'permanent')
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
  await f.engine.retryJob(id)
  assert.deepEqual([await workOff(f, 'a'), await workOff(f, 'b')], [1, 1])
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('a stage that is brought back without what it needs is called off again, and does not wait for ever', async t => {
  const f = await fresh(t)
  for (const join of ['all', 'taken'] as const) {
    const stages = [
      { name: 'a', task: 'a' },
      { name: 'b', task: 'b', needs: ['a'], join },
    ]
    const { id } = await f.engine.submit({ name: 'j', stages })
    await workOff(f, 'a', 'permanent')
    await f.engine.retryStage((await stageOf(f, id, 'b')).id)
    assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
    assert.equal((await f.engine.job(id)).round, 2)
  }
})
