import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { storyOf, taskIn } from '../../../test/harness/task-in.ts'
import type { SyncRequest } from '../../protocol/tasks/sync.ts'

const times = 500

async function countStatements({ engine, sync }: Fresh, request: Partial<SyncRequest>) {
  const { statements } = engine.context.metrics
  const count = () => statements.counts.reduce((sum, n) => sum + n, 0)
  const before = count()
  const { refused } = await sync(request)
  return { refused, statements: count() - before }
}

for (const kind of ['beats', 'started', 'settled'] as const) {
  test(`a sync that names one task ${times} times in its ${kind} takes the statements of one`, async t => {
    const run = await fresh(t)
    const { id, epoch } = await taskIn(run, kind === 'started' ? 'assigned' : 'running')
    const item = { id, epoch, ...(kind === 'settled' && { outcome: 'succeeded' as const }) }
    const { refused, statements } = await countStatements(run, { [kind]: Array(times).fill(item) })
    assert.deepEqual(refused, [])
    assert.ok(statements < 15, `${statements} statements`)
  })

  test(`a sync that names one task under ${times} epochs in its ${kind} is refused all but a few`, async t => {
    const run = await fresh(t)
    const { id } = await taskIn(run, 'running')
    const outcome = kind === 'settled' && { outcome: 'succeeded' as const }
    const items = Array.from({ length: times }, (_, epoch) => ({ id, epoch: epoch + 100, ...outcome }))
    const { refused, statements } = await countStatements(run, { [kind]: items })
    assert.equal(refused.length, times)
    assert.equal(refused.filter(({ code }) => code === 'OPTION_INVALID').length, times - 10)
    assert.ok(statements < 60, `${statements} statements`)
  })
}

test('several beats of a task in one sync are merged, and a later value wins', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const beats = [
    { id, epoch, checkpoint: { page: 1 }, progress: 10 },
    { id, epoch, progress: 20 },
  ]
  assert.deepEqual((await run.sync({ beats })).refused, [])
  const { checkpoint } = await run.engine.task(id)
  assert.deepEqual(checkpoint, { page: 1 })
  const pulses = await run.sql`select payload from pawl.pulse`
  assert.deepEqual(pulses, [{ payload: 20 }])
})

test('the same end of a task, reported twice, counts once', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const item = { id, epoch, outcome: 'skipped' } as const
  assert.deepEqual((await run.sync({ settled: [item, item] })).refused, [])
  assert.equal((await storyOf(run, id)).filter(step => step.startsWith('skipped')).length, 1)
})
