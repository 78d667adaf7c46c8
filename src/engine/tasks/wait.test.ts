import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { startWaiting } from '../../../test/harness/waiting.ts'
import { rescue } from '../../babysitter/rescue.ts'
import { pawl } from '../engine.ts'

const limits = { timeout: 600_000 }
const idsOf = ({ claimed }: { claimed: readonly { id: string }[] }) => claimed.map(({ id }) => id)

test('a worker that waits has new work at once', limits, async t => {
  const run = await fresh(t)
  const { answer } = await startWaiting(t, run, { queues: ['a', 'b'] })
  await run.engine.enqueue('other', null)
  const { id } = await run.engine.enqueue('b', null)
  assert.deepEqual(idsOf(await answer), [id])
})

test('work that comes between the look and the wait is not missed', limits, async t => {
  const run = await fresh(t)
  const ids: string[] = []
  const between = async () => {
    if (ids.length === 0) ids.push((await run.engine.enqueue('a', null)).id)
  }
  const { answer } = await startWaiting(t, run, { queues: ['a'] }, { between })
  assert.deepEqual(idsOf(await answer), ids)
})

test('a worker that waits has what an operator brings back', limits, async t => {
  const run = await fresh(t)
  const [cancelled, letter] = [await taskIn(run, 'cancelled'), await taskIn(run, 'dead_lettered')]
  const first = await startWaiting(t, run, { queues: [cancelled.queue] })
  await run.engine.resume(cancelled.id)
  assert.deepEqual(idsOf(await first.answer), [cancelled.id])
  t.mock.timers.reset()
  const second = await startWaiting(t, run, { queues: [letter.queue] })
  await run.engine.redrive({ ids: [letter.id] })
  assert.deepEqual(idsOf(await second.answer), [letter.id])
})

test('a worker that waits has what the babysitter takes back', limits, async t => {
  const run = await fresh(t)
  const { id, queue } = await taskIn(run, 'running')
  await run.advance(21)
  const { answer } = await startWaiting(t, run, { queues: [queue] })
  await rescue({ beginsBlind: false }).run(run.engine.context)
  assert.deepEqual(idsOf(await answer), [id])
})

test('a worker that stops need not wait', limits, async t => {
  const run = await fresh(t)
  const stop = new AbortController()
  const { answer } = await startWaiting(t, run, { queues: ['a'] }, { signal: stop.signal })
  stop.abort()
  assert.deepEqual(idsOf(await answer), [])
})

test('a task queued in a transaction reaches a waiting worker once it commits', limits, async t => {
  const run = await fresh(t)
  const { answer } = await startWaiting(t, run, { queues: ['a'] })
  let claimed = false
  void answer.then(() => {
    claimed = true
  })
  const { id } = await run.engine.transaction(async tx => {
    const queued = await run.engine.enqueue('a', null, { tx })
    assert.equal(claimed, false)
    return queued
  })
  assert.deepEqual(idsOf(await answer), [id])
})

test('what a worker settles while it waits is recorded at once', limits, async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const { answer } = await startWaiting(t, run, { queues: ['a'], settled: [{ id, epoch, outcome: 'succeeded' }] })
  assert.equal((await run.engine.task(id)).state, 'succeeded')
  await run.engine.enqueue('a', null)
  await answer
})

test('a worker that waits has work at once that another process queued', { ...limits, ...needsServer() }, async t => {
  const run = await fresh(t)
  const other = await pawl({ database: run.url!, schema: run.schema })
  t.after(() => other.close())
  const { answer } = await startWaiting(t, run, { queues: ['a'] })
  const { id } = await other.enqueue('a', null)
  assert.deepEqual(idsOf(await answer), [id])
})

test('a wait is over when its time is, and when the next task comes due', limits, async t => {
  const run = await fresh(t)
  assert.deepEqual(idsOf(await run.sync({ queues: ['a'], claim: 1, waitSeconds: 0.001 })), [])
  const { id } = await run.engine.enqueue('a', null, { runInSeconds: 0.05 })
  assert.deepEqual(idsOf(await run.sync({ queues: ['a'], claim: 1, waitSeconds: 60 })), [id])
})
