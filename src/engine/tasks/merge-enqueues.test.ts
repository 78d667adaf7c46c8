/** Small enqueues that arrive together share a statement. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'

/** Statements that added tasks to the feed. */
const countWrites = async ({ sql }: Fresh) => (await sql`select 1 from pawl.change where entity = 'task'`).length

test('tasks that are enqueued together are written with one statement, each as it was asked', async t => {
  const run = await fresh(t)
  const queued = await Promise.all(
    Array.from({ length: 40 }, (_, n) => run.engine.enqueue('a', { n }, { priority: n % 3, runInSeconds: n })),
  )
  assert.equal(await countWrites(run), 1)
  for (const [n, { id }] of queued.entries()) {
    const { payload, priority } = await run.engine.task(id)
    assert.deepEqual([payload, priority], [{ n }, n % 3])
  }
})

test('tasks that are enqueued together by different actors keep their actors', async t => {
  const run = await fresh(t)
  const actors = ['anna', 'ben', 'anna', 'carl']
  const queued = await Promise.all(actors.map(actor => run.engine.enqueue('a', null, { actor })))
  for (const [n, { id }] of queued.entries()) {
    const { items } = await run.engine.taskEvents(id)
    assert.equal(items[0]!.actor, actors[n])
  }
})

test('of tasks that are enqueued together, one that the store refuses is refused alone', async t => {
  const run = await fresh(t)
  await run.sql.script(`alter table pawl.task add constraint no_poison check (type <> 'poison')`)
  const results = await Promise.allSettled(['a', 'poison', 'b'].map(type => run.engine.enqueue(type, null)))
  await run.sql.script('alter table pawl.task drop constraint no_poison')
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  const { items } = await run.engine.tasks({})
  assert.deepEqual(items.map(({ type }) => type).sort(), ['a', 'b'])
})
