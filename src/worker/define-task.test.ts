import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import { z } from 'zod'
import { ended } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { defineTask } from './define-task.ts'
import { startWorker } from './worker.ts'

/** The same schema in two libraries: a string of digits becomes a number, and `times` has a default. */
const schemas = {
  zod: z.object({ count: z.string().regex(/^\d+$/).transform(Number), times: z.number().default(2) }),
  valibot: v.object({
    count: v.pipe(v.string(), v.regex(/^\d+$/), v.transform(Number)),
    times: v.optional(v.number(), 2),
  }),
}

for (const [library, payload] of Object.entries(schemas)) {
  const multiply = () =>
    defineTask({
      type: 'multiply',
      payload,
      handler: ({ count, times }: { count: number; times: number }) => count * times,
    })

  test(`a handler gets what its schema makes of the payload (${library})`, async t => {
    const { engine } = await fresh(t)
    const task = multiply()
    const { id } = await engine.enqueue(task, { count: '21' })
    await using _worker = startWorker(engine, [task], { drainSeconds: 2 })
    const { state, output, payload } = await ended(engine, id)
    assert.deepEqual([state, output, payload], ['succeeded', 42, { count: '21' }])
  })

  test(`a payload that its schema refuses is not queued (${library})`, async t => {
    const { engine } = await fresh(t)
    const task = multiply()
    const refused = { code: 'PAYLOAD_REFUSED', message: /count/ }
    await assert.rejects(engine.enqueue(task, { count: 'many' }), refused)
    // The type is known by now, so tasks are validated by its name too. One invalid task rejects the whole call.
    const items = [
      { type: 'multiply', payload: { count: '1' } },
      { type: 'multiply', payload: { count: 1 } },
    ]
    await assert.rejects(engine.enqueueMany(items), { code: 'PAYLOAD_REFUSED', message: /tasks\[1\]/ })
    assert.deepEqual((await engine.tasks()).items, [])
  })
}

test('a payload that its schema refuses when it is claimed is set aside, and burns no attempt', async t => {
  const { engine } = await fresh(t)
  let ran = 0
  const greet = defineTask({
    type: 'greet',
    payload: z.object({ name: z.string() }),
    handler: () => {
      ran += 1
    },
  })
  // Queued by a producer that does not know the schema.
  const { id } = await engine.enqueue('greet', { nmae: 'Ada' })
  await using _worker = startWorker(engine, [greet], { drainSeconds: 2 })
  const task = await ended(engine, id)
  assert.deepEqual([task.state, task.failures, task.losses, ran], ['dead_lettered', 0, 0, 0])
  assert.equal(task.deadLetter?.reasonCode, 'validation_failed')
  assert.equal(task.deadLetter?.step, 'input')
  assert.match(task.deadLetter?.lastError.message ?? '', /name: /)
})

test('a handler that enqueues a payload that is refused fails like any other, and is tried again', async t => {
  const { engine } = await fresh(t)
  await engine.putTaskType('greet', { payloadSchema: { type: 'string' } })
  const outer = defineTask({
    type: 'outer',
    retry: { attempts: 2, delaySeconds: 0 },
    deadLetter: 'never',
    handler: () => engine.enqueue('greet', 7),
  })
  const { id } = await engine.enqueue(outer, null)
  await using _worker = startWorker(engine, [outer], { drainSeconds: 2 })
  const task = await ended(engine, id)
  assert.deepEqual([task.state, task.failures], ['failed', 2])
})

test('what defineTask says about leases and retries holds for tasks that others queue', async t => {
  const { engine } = await fresh(t)
  const options = { leaseSeconds: 45, heartbeatSeconds: null, retry: { attempts: 7, jitter: false } }
  const task = defineTask({ type: 'slow', ...options, handler: () => {} })
  await engine.register(task)
  await engine.enqueue('slow', null)
  const { claimed } = await engine.sync({ worker: 'w', queues: ['slow'], claim: 1 })
  assert.deepEqual([claimed[0]?.leaseSeconds, claimed[0]?.heartbeatSeconds], [45, null])
  assert.deepEqual(await engine.taskType('slow'), options)
})
