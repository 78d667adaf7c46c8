/** Claims that start their tasks, and reports on one task, in few statements. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'

test('a claim that also starts its tasks writes both events at once, and the stage has begun', async t => {
  const { engine, sql } = await fresh(t)
  const { id: jobId } = await engine.submit({ name: 'j', stages: [{ name: 's', task: 'a', payloads: [1, 2] }] })
  const changes = async () => (await sql`select 1 from pawl.change where entity = 'task'`).length
  const before = await changes()
  const [task] = await engine.claims({ worker: 'w', queues: ['a'], start: true })
  assert.equal((await changes()) - before, 1)
  const { items } = await engine.taskEvents(task!.id)
  assert.deepEqual(
    items.slice(-2).map(({ type, actor, cause, epoch }) => ({ type, actor, cause, epoch })),
    [
      { type: 'task.claimed', actor: 'worker:w', cause: 'claimed', epoch: 1 },
      { type: 'task.started', actor: 'worker:w', cause: 'reported_start', epoch: 1 },
    ],
  )
  const { state, startedAt } = await engine.task(task!.id)
  assert.deepEqual([state, startedAt !== null], ['running', true])
  const job = await engine.job(jobId)
  assert.deepEqual([job.state, job.stages[0]!.state], ['running', 'running'])
})

test('a report without a name of a worker is recorded under the worker that holds the lease', async t => {
  const { engine } = await fresh(t)
  for (const outcome of ['succeed', 'fail', 'skip', 'release'] as const) {
    const { id } = await engine.enqueue('a', null, { retry: { attempts: 1 } })
    const [task] = await engine.claims({ worker: 'holder-7', queues: ['a'] })
    await engine.start(id, task!.epoch)
    if (outcome === 'fail') await engine.fail(id, task!.epoch, { error: { message: 'no' } })
    else await engine[outcome](id, task!.epoch)
    const { items } = await engine.taskEvents(id)
    assert.deepEqual(new Set(items.slice(1).map(({ actor }) => actor)), new Set(['worker:holder-7']), outcome)
    if (outcome === 'release') await engine.cancel(id)
  }
})
