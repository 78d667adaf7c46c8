import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ended, eventually, latch } from '../../test/harness/eventually.ts'
import { faultyPort } from '../../test/harness/faulty-port.ts'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import type { TaskState } from '../kernel/task.ts'
import type { SyncPort } from '../protocol/tasks/sync.ts'
import { defineTask } from './define-task.ts'
import { startWorker } from './worker.ts'

const bounded = { timeout: 600_000 }
const items = (count: number) => Array.from({ length: count }, (_, n) => ({ type: 'work', payload: n }))

async function allIn({ engine }: Fresh, state: TaskState, count: number) {
  return eventually(`${count} tasks are ${state}`, async () => {
    const found = (await engine.tasks({ state, limit: 1000 })).items
    return found.length === count && found
  })
}

test('never more handlers run at once than concurrency says, and each task runs once', bounded, async t => {
  const story = await fresh(t)
  const { engine } = story
  const runs = new Map<unknown, number>()
  let running = 0
  let most = 0
  const allAtWork = latch()
  const work = defineTask({
    type: 'work',
    handler: async (n: unknown) => {
      runs.set(n, (runs.get(n) ?? 0) + 1)
      running += 1
      most = Math.max(most, running)
      if (running === 4) allAtWork.open()
      await allAtWork.opened
      await new Promise(setImmediate)
      running -= 1
    },
  })
  await engine.enqueueMany(items(60))
  await using _worker = startWorker(engine, [work], { concurrency: 4, buffer: 10, drainSeconds: 2 })
  await allIn(story, 'succeeded', 60)
  assert.equal(most, 4)
  assert.deepEqual([runs.size, Math.max(...runs.values())], [60, 1])
})

test('a worker claims ahead of need what its buffer holds, and no more', bounded, async t => {
  const story = await fresh(t)
  const { engine } = story
  let inHand = 0
  let most = 0
  const go = latch()
  const work = defineTask({
    type: 'work',
    handler: async () => {
      await go.opened
      inHand -= 1
    },
  })
  const port: SyncPort = {
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    async sync(request, signal) {
      most = Math.max(most, inHand + (request.claim ?? 0))
      const answer = await engine.sync(request, signal)
      inHand += answer.claimed.length
      return answer
    },
  }
  await engine.enqueueMany(items(20))
  await using _worker = startWorker(port, [work], { concurrency: 2, buffer: 3, drainSeconds: 2 })
  await eventually('what it runs and what it holds ahead is claimed', async () => {
    const [depth] = (await engine.queues()).items
    return depth?.held === 5
  })
  go.open()
  await allIn(story, 'succeeded', 20)
  assert.equal(most, 5)
})

test('one worker serves several types, each with its own handler and queue', bounded, async t => {
  const { engine } = await fresh(t)
  const add = defineTask({ type: 'add', handler: (n: unknown) => Number(n) + 1 })
  const double = defineTask({ type: 'double', handler: (n: unknown) => Number(n) * 2 })
  await using _worker = startWorker(engine, [add, double], { drainSeconds: 2 })
  const queued = [await engine.enqueue('add', 20), await engine.enqueue('double', 21)]
  const outputs = await Promise.all(queued.map(async ({ id }) => (await ended(engine, id)).output))
  assert.deepEqual(outputs, [21, 42])
})

test('a stop gives back what it did not start, uncharged, and lets the rest finish', bounded, async t => {
  const story = await fresh(t)
  const { engine } = story
  const go = latch()
  let begun = 0
  const work = defineTask({
    type: 'work',
    handler: async () => {
      begun += 1
      await go.opened
    },
  })
  await engine.enqueueMany(items(6))
  await using worker = startWorker(engine, [work], { concurrency: 2, buffer: 4 })
  await eventually('six in hand, two of them begun', () => worker.inHand() === 6 && begun === 2)

  const stopping = worker.stop()
  for (const task of await allIn(story, 'retrying', 4)) assert.deepEqual([task.failures, task.losses], [0, 0])
  go.open()
  await stopping
  assert.equal((await engine.tasks({ state: 'succeeded' })).items.length, 2)

  const { claimed } = await story.sync({ queues: ['work'], claim: 10 })
  assert.deepEqual(
    claimed.map(({ epoch, attempt, careful }) => [epoch, attempt, careful]),
    Array.from({ length: 4 }, () => [2, 1, false]),
  )
})

test(
  'at the deadline of a stop the rest is given back too, uncharged, and may be done by another',
  bounded,
  async t => {
    const story = await fresh(t)
    const { engine } = story
    const never = new Promise<never>(() => {})
    let begun = 0
    const stubborn = defineTask({
      type: 'work',
      handler: () => {
        begun += 1
        return never
      },
    })
    await engine.enqueueMany(items(3))
    const worker = startWorker(engine, [stubborn], { concurrency: 3, drainSeconds: 0.1 })
    await eventually('three have begun', () => begun === 3)
    await worker.stop()
    for (const task of await allIn(story, 'retrying', 3)) assert.deepEqual([task.failures, task.losses], [0, 0])

    const willing = defineTask({ type: 'work', handler: () => 'done' })
    await using _other = startWorker(engine, [willing], { drainSeconds: 2 })
    for (const task of await allIn(story, 'succeeded', 3)) assert.deepEqual([task.epoch, task.output], [2, 'done'])
  },
)

test('a task is given back only when its handler has stopped', bounded, async t => {
  const { engine } = await fresh(t)
  const begun = latch()
  let hasStopped = false
  const tidy = defineTask({
    type: 'work',
    async handler(_, { signal }) {
      begun.open()
      await once(signal, 'abort')
      await sleep(300)
      hasStopped = true
      throw signal.reason
    },
  })
  await engine.enqueueMany(items(1))
  const worker = startWorker(engine, [tidy], { drainSeconds: 0 })
  await begun.opened
  await worker.stop()
  assert.ok(hasStopped)
})

test('a worker that has a day to stop can be told to hurry, and gives back what it holds', bounded, async t => {
  const story = await fresh(t)
  const begun = latch()
  const handler = () => {
    begun.open()
    return new Promise<never>(() => {})
  }
  await story.engine.enqueueMany(items(2))
  const options = { drainSeconds: 86_400, concurrency: 1, buffer: 1 }
  const worker = startWorker(story.engine, [defineTask({ type: 'work', handler })], options)
  await begun.opened
  await eventually('it has both', () => worker.inHand() === 2)
  const stopping = worker.stop()
  await eventually('it has given back the one that had not begun', () => worker.inHand() === 1)
  await worker.stop(0)
  await stopping
  assert.equal(worker.inHand(), 0)
})

test('what a claim wins while the worker is being stopped is given back', bounded, async t => {
  const story = await fresh(t)
  const { engine } = story
  const won = latch()
  const deliver = latch()
  const port: SyncPort = {
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    async sync(request, signal) {
      const answer = await engine.sync(request, signal)
      if (answer.claimed.length > 0) {
        won.open()
        await deliver.opened
      }
      return answer
    },
  }
  let ran = 0
  const work = defineTask({
    type: 'work',
    handler: () => {
      ran += 1
    },
  })
  await engine.enqueueMany(items(5))
  const worker = startWorker(port, [work])
  await won.opened
  const stopping = worker.stop()
  deliver.open()
  await stopping
  assert.equal(ran, 0)
  for (const task of await allIn(story, 'retrying', 5)) assert.deepEqual([task.failures, task.losses], [0, 0])
})

test('an idle worker stops at once, however long it would wait for work', bounded, async t => {
  const { engine } = await fresh(t)
  const port = faultyPort(engine)
  const worker = startWorker(port, [defineTask({ type: 'work', handler: () => {} })], { waitSeconds: 60 })
  await eventually('it waits for work', () => port.asked.length > 0)
  const began = performance.now()
  await worker.stop()
  assert.ok(performance.now() - began < 30_000)
  assert.equal(worker.inHand(), 0)
})

test('a worker stops soon after its deadline, also when the engine never answers', bounded, async t => {
  const { engine } = await fresh(t)
  const port = faultyPort({
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    sync: () => new Promise<never>(() => {}),
  })
  const work = defineTask({ type: 'work', handler: () => {} })
  const worker = startWorker(port, [work], { drainSeconds: 0.1 })
  await eventually('it asks for work', () => port.asked.length > 0)
  await worker.stop()
  assert.equal(worker.inHand(), 0)
})
