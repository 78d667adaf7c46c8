/** Tasks that were lost before their start may have killed their worker, so they run alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ended, eventually, latch } from '../../test/harness/eventually.ts'
import { faultyPort, theFirst } from '../../test/harness/faulty-port.ts'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { rescue } from '../babysitter/rescue.ts'
import type { SyncPort } from '../protocol/tasks/sync.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { startWorker } from './worker.ts'

const bounded = { timeout: 600_000 }
const short = { leaseSeconds: 5, heartbeatSeconds: 1 }
const hurried = { drainSeconds: 2, waitSeconds: 0.2 }
const tellsStart = ({ started, beats }: { started?: readonly object[]; beats?: readonly object[] }) =>
  started !== undefined && beats === undefined

/** Tasks that a worker held but had not started when it died. */
async function lostBeforeStart({ engine, sync, advance }: Fresh, count: number): Promise<string[]> {
  const items = Array.from({ length: count }, (_, n) => ({ type: 'work', payload: `careful ${n}`, ...short }))
  const queued = await engine.enqueueMany(items)
  await sync({ worker: 'dead', queues: ['work'], claim: count })
  await advance(10)
  assert.equal((await rescue({ beginsBlind: false }).run(engine.context)).rescued, count)
  return queued.map(({ id }) => id)
}

test('a task that was lost before its start runs alone, after its start is on record', bounded, async t => {
  const story = await fresh(t)
  const { engine } = story
  const ids = await lostBeforeStart(story, 3)
  const plain = await engine.enqueueMany(Array.from({ length: 6 }, (_, n) => ({ type: 'work', payload: `plain ${n}` })))
  const running = new Set<string>()
  const seen: [string, string, number][] = []
  const port = faultyPort(engine)
  const work = defineTask({
    type: 'work',
    ...short,
    handler: async (name: unknown, ctx: TaskContext) => {
      running.add(ctx.id)
      if (String(name).startsWith('careful')) {
        const { state } = await engine.task(ctx.id)
        const before = port.asked.length
        // Long enough for a worker to have claimed more meanwhile, if it were going to.
        await eventually('its lease was renewed', () => port.asked.slice(before).some(({ beats }) => beats?.length))
        const [depth] = (await engine.queues()).items
        seen.push([state, [...running].join(), depth!.held])
        assert.deepEqual([...running], [ctx.id])
      }
      running.delete(ctx.id)
    },
  })
  await using _worker = startWorker(port, [work], { ...hurried, concurrency: 4 })
  for (const id of [...ids, ...plain.map(task => task.id)]) {
    const { state, failures, losses } = await ended(engine, id)
    assert.deepEqual([state, failures, losses], ['succeeded', 0, 0])
  }
  assert.deepEqual(
    seen.map(([state, alone, held]) => [state, ids.includes(alone), held]),
    ids.map(() => ['running', true, 1]),
  )
})

test(
  'the start of a careful task is told again until it is acknowledged, and only then does it run',
  bounded,
  async t => {
    const story = await fresh(t)
    const { engine } = story
    const [id] = await lostBeforeStart(story, 1)
    const toldBefore = latch<number>()
    const port = faultyPort(engine, { losesRequest: theFirst(2, tellsStart), losesAnswer: theFirst(1, tellsStart) })
    const work = defineTask({
      type: 'work',
      ...short,
      handler: () => {
        toldBefore.open(port.asked.filter(tellsStart).length)
      },
    })
    await using _worker = startWorker(port, [work], hurried)
    const { state, epoch, losses } = await ended(engine, id!)
    assert.deepEqual([state, epoch, losses], ['succeeded', 2, 0])
    assert.equal(await toldBefore.opened, 4)
    const { items } = await engine.taskEvents(id!)
    assert.equal(items.filter(({ type }) => type === 'task.started').length, 1)
  },
)

test('a careful task that was taken away before its start is not run', bounded, async t => {
  const story = await fresh(t)
  const { engine } = story
  const [id] = await lostBeforeStart(story, 1)
  let ran = 0
  const work = defineTask({
    type: 'work',
    ...short,
    handler: () => {
      ran += 1
    },
  })
  const port: SyncPort = {
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    async sync(request, signal) {
      if (tellsStart(request)) await engine.cancel(id!, { mode: 'hard' })
      return engine.sync(request, signal)
    },
  }
  await using worker = startWorker(port, [work], hurried)
  assert.equal((await ended(engine, id!)).state, 'cancelled')
  await eventually('the worker has let go of it', () => worker.inHand() === 0)
  const next = await engine.enqueue(work, null)
  assert.equal((await ended(engine, next.id)).state, 'succeeded')
  assert.equal(ran, 1)
})

test('a careful task that has not begun when the worker stops is given back', bounded, async t => {
  const story = await fresh(t)
  const { engine } = story
  const [careful] = await lostBeforeStart(story, 1)
  const go = latch()
  const begun: unknown[] = []
  const work = defineTask({
    type: 'work',
    ...short,
    handler: async (name: unknown) => {
      begun.push(name)
      await go.opened
    },
  })
  const busy = await engine.enqueue('work', 'busy')
  await using worker = startWorker(engine, [work], { ...hurried, drainSeconds: 20 })
  await eventually('both are in hand', () => worker.inHand() === 2)
  const stopping = worker.stop()
  await eventually('it is given back', async () => (await engine.task(careful!)).state === 'retrying', 10)
  go.open()
  await stopping
  const { failures, losses } = await engine.task(careful!)
  assert.deepEqual([failures, losses, begun], [0, 0, ['busy']])
  assert.equal((await engine.task(busy.id)).state, 'succeeded')
})
