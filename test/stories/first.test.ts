import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../harness/fresh.ts'

test('a queued task is claimed, done and recorded with one event per step', async t => {
  const { engine, sync } = await fresh(t)
  const { id } = await engine.enqueue('hello', { name: 'Ada' })
  const { claimed } = await sync({ queues: ['hello'], claim: 1 })
  assert.deepEqual(
    claimed.map(task => [task.id, task.epoch, task.payload]),
    [[id, 1, { name: 'Ada' }]],
  )
  const { refused } = await sync({ settled: [{ id, epoch: 1, outcome: 'succeeded', output: { ok: true } }] })
  assert.deepEqual(refused, [])
  const task = await engine.task(id)
  assert.equal(task.state, 'succeeded')
  assert.deepEqual(task.output, { ok: true })
  const events = await engine.taskEvents(id)
  assert.deepEqual(
    events.items.map(({ seq, type, from, to }) => [seq, type, from, to]),
    [
      [1, 'task.queued', null, 'queued'],
      [2, 'task.claimed', 'queued', 'assigned'],
      [3, 'task.started', 'assigned', 'running'],
      [4, 'task.succeeded', 'running', 'succeeded'],
    ],
  )
})
