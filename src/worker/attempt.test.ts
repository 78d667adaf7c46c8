/** Why a handler's signal aborts, and how its task ends then. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ended, eventually, latch } from '../../test/harness/eventually.ts'
import { faultyPort } from '../../test/harness/faulty-port.ts'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { rescue } from '../babysitter/rescue.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import type { Interrupted } from './errors.ts'
import { startWorker } from './worker.ts'

const bounded = { timeout: 600_000 }
const short = { leaseSeconds: 5, heartbeatSeconds: 1, retry: { delaySeconds: 0 } }

/** A handler that works until it is told to stop, and then stops. */
function obedient(options: object = {}) {
  const began = latch<TaskContext>()
  const reason = latch<string>()
  const task = defineTask({
    type: 'work',
    ...short,
    ...options,
    handler: (_: unknown, ctx: TaskContext) =>
      new Promise<never>((_, reject) => {
        began.open(ctx)
        ctx.signal.addEventListener('abort', () => {
          reason.open((ctx.signal.reason as Interrupted).reason)
          reject(ctx.signal.reason)
        })
      }),
  })
  return { task, began: began.opened, reason: reason.opened }
}

async function running({ engine }: Fresh, id: string) {
  return eventually('its start is on record', async () => {
    const task = await engine.task(id)
    return task.state === 'running' && task
  })
}

test('a task that is called off aborts its handler with "cancelled", and ends as cancelled', bounded, async t => {
  const { engine } = await fresh(t)
  const { task, began, reason } = obedient()
  await using _worker = startWorker(engine, [task], { drainSeconds: 1 })
  const { id } = await engine.enqueue(task, null)
  await began
  await engine.cancel(id, { reason: 'changed my mind' })
  assert.equal(await reason, 'cancelled')
  const { state, failures } = await ended(engine, id)
  assert.deepEqual([state, failures], ['cancelled', 0])
})

test('a handler that was faster than its cancel has succeeded', bounded, async t => {
  const { engine } = await fresh(t)
  const aborted = latch()
  const task = defineTask({
    type: 'work',
    ...short,
    handler: async (_: unknown, ctx: TaskContext) => {
      ctx.signal.addEventListener('abort', () => aborted.open())
      await aborted.opened
      return 'finished all the same'
    },
  })
  await using _worker = startWorker(engine, [task], { drainSeconds: 1 })
  const { id } = await engine.enqueue(task, null)
  await eventually('it is held', async () => (await engine.task(id)).owner !== null)
  await engine.cancel(id)
  const { state, output } = await ended(engine, id)
  assert.deepEqual([state, output], ['succeeded', 'finished all the same'])
})

test('a task that waits in the buffer and is called off never begins', bounded, async t => {
  const { engine } = await fresh(t)
  const begun: unknown[] = []
  const go = latch()
  const task = defineTask({
    type: 'work',
    ...short,
    handler: async (name: unknown) => {
      begun.push(name)
      await go.opened
    },
  })
  const aborted = latch()
  const port = faultyPort(engine, {
    losesAnswer: (_, { cancel }) => {
      if (cancel.length > 0) setImmediate(aborted.open)
      return false
    },
  })
  await using worker = startWorker(port, [task], { concurrency: 1, buffer: 1, drainSeconds: 1 })
  const first = await engine.enqueue(task, 'first')
  const waiting = await engine.enqueue(task, 'waiting')
  await eventually('both are in hand', () => worker.inHand() === 2)
  await engine.cancel(waiting.id)
  await aborted.opened
  go.open()
  assert.equal((await ended(engine, first.id)).state, 'succeeded')
  assert.equal((await ended(engine, waiting.id)).state, 'cancelled')
  assert.deepEqual(begun, ['first'])
})

test(
  'a worker whose task was taken from it is told "lease-lost", and what it says then changes nothing',
  bounded,
  async t => {
    const story = await fresh(t)
    const { engine, advance, sync } = story
    const { task, began, reason } = obedient()
    let isCutOff = false
    // All requests fail, not only heartbeats: one that was in flight could report the loss, and the worker must not
    // claim the task again.
    const port = faultyPort(engine, { losesRequest: () => isCutOff })
    const worker = startWorker(port, [task], { drainSeconds: 1, concurrency: 1, buffer: 0 })
    try {
      const { id } = await engine.enqueue(task, null)
      await began
      await running(story, id)
      isCutOff = true
      await advance(10)
      await eventually('the rescue took it', async () => {
        await rescue({ beginsBlind: false }).run(engine.context)
        return (await engine.task(id)).state === 'retrying'
      })
      const { claimed } = await sync({ worker: 'other', queues: ['work'], claim: 1 })
      isCutOff = false
      assert.deepEqual(
        claimed.map(one => one.epoch),
        [2],
      )
      assert.equal(await reason, 'lease-lost')
      await eventually('the worker has let go of it', () => worker.inHand() === 0)
      const { state, owner, epoch, losses } = await engine.task(id)
      assert.deepEqual([state, owner, epoch, losses], ['assigned', 'other', 2, 1])
    } finally {
      await worker.stop()
    }
  },
)

test('a worker that cannot renew a lease stops its handler by its own clock', bounded, async t => {
  const { engine } = await fresh(t)
  const { task, began, reason } = obedient()
  const port = faultyPort(engine, { losesRequest: request => request.beats !== undefined })
  await using _worker = startWorker(port, [task], { drainSeconds: 1, concurrency: 1, buffer: 0 })
  const { id } = await engine.enqueue(task, null)
  await began
  assert.equal(await reason, 'lease-lost')
  // Nobody else claimed it, so it is released and nothing is charged.
  await eventually(
    'it was given back',
    async () => (await engine.task(id)).epoch > 1 || (await engine.task(id)).state === 'retrying',
  )
  const { failures, losses } = await engine.task(id)
  assert.deepEqual([failures, losses], [0, 0])
})

test('a handler that runs for longer than it may is told "timeout", and the attempt has failed', bounded, async t => {
  const { engine } = await fresh(t)
  const { task, reason } = obedient({ timeoutSeconds: 0.2, retry: { attempts: 1 } })
  await using _worker = startWorker(engine, [task], { drainSeconds: 1 })
  const { id } = await engine.enqueue(task, null)
  assert.equal(await reason, 'timeout')
  const { state, failures, deadLetter } = await ended(engine, id)
  assert.deepEqual([state, failures, deadLetter?.reasonCode], ['dead_lettered', 1, 'timeout'])
})

test('a handler that ignores its timeout does not keep its slot', bounded, async t => {
  const { engine } = await fresh(t)
  const task = defineTask({
    type: 'work',
    ...short,
    timeoutSeconds: 0.2,
    retry: { attempts: 1 },
    handler: (hangs: unknown) => (hangs === true ? new Promise<never>(() => {}) : 'done'),
  })
  await using _worker = startWorker(engine, [task], { concurrency: 1, buffer: 0, drainSeconds: 1 })
  const hanging = await engine.enqueue(task, true)
  const next = await engine.enqueue(task, false)
  assert.equal((await ended(engine, next.id)).output, 'done')
  const { state, deadLetter } = await ended(engine, hanging.id)
  assert.deepEqual([state, deadLetter?.reasonCode], ['dead_lettered', 'timeout'])
})

test('nor does one that ignores first its cancel and then its timeout', bounded, async t => {
  const { engine } = await fresh(t)
  const aborted = latch()
  const task = defineTask({
    type: 'work',
    ...short,
    timeoutSeconds: 3,
    handler: (hangs: unknown, ctx: TaskContext) => {
      if (hangs !== true) return 'done'
      ctx.signal.addEventListener('abort', () => aborted.open())
      return new Promise<never>(() => {})
    },
  })
  await using _worker = startWorker(engine, [task], { concurrency: 1, buffer: 0, drainSeconds: 1 })
  const hanging = await engine.enqueue(task, true)
  await eventually('it is held', async () => (await engine.task(hanging.id)).owner !== null)
  await engine.cancel(hanging.id)
  await aborted.opened
  const next = await engine.enqueue(task, false)
  assert.equal((await ended(engine, next.id)).output, 'done')
  assert.equal((await ended(engine, hanging.id)).state, 'cancelled')
})

test(
  'at the deadline of a stop a handler is told "shutdown", and its task is given back uncharged',
  bounded,
  async t => {
    const { engine } = await fresh(t)
    const { task, began, reason } = obedient()
    const worker = startWorker(engine, [task], { drainSeconds: 0.1 })
    const { id } = await engine.enqueue(task, null)
    await began
    await worker.stop()
    assert.equal(await reason, 'shutdown')
    const { state, failures, losses } = await engine.task(id)
    assert.deepEqual([state, failures, losses], ['retrying', 0, 0])
  },
)
