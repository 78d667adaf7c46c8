import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ended, eventually, latch } from '../../test/harness/eventually.ts'
import { faultyPort, theFirst } from '../../test/harness/faulty-port.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { rescue } from '../babysitter/rescue.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { startWorker } from './worker.ts'

const bounded = { timeout: 600_000 }
const short = { leaseSeconds: 5, heartbeatSeconds: 1, retry: { delaySeconds: 0 } }
const hurried = { drainSeconds: 2, waitSeconds: 0.2 }

test('leases are renewed while a handler runs, also of what waits in the buffer', bounded, async t => {
  const { engine } = await fresh(t)
  const go = latch()
  const work = defineTask({ type: 'work', ...short, handler: () => go.opened })
  const queued = await engine.enqueueMany([{ type: 'work' }, { type: 'work' }, { type: 'work' }])
  const ids = queued.map(({ id }) => id)
  await using worker = startWorker(engine, [work], { ...hurried, concurrency: 1, buffer: 2 })
  await eventually('all are in hand', () => worker.inHand() === 3)
  const leases = () => Promise.all(ids.map(async id => Date.parse((await engine.task(id)).leaseUntil!)))
  const first = await leases()
  const chore = rescue({ beginsBlind: false })
  await eventually('every lease reaches past two whole ones', async () => {
    assert.equal((await chore.run(engine.context)).rescued, 0)
    return (await leases()).every((until, index) => until > first[index]! + 4000)
  })
  go.open()
  for (const id of ids) {
    const { state, epoch, losses } = await ended(engine, id)
    assert.deepEqual([state, epoch, losses], ['succeeded', 1, 0])
  }
})

test('a lease is renewed when half of it is left, not at every tick', bounded, async t => {
  const { engine } = await fresh(t)
  const go = latch()
  const work = defineTask({ type: 'work', ...short, handler: () => go.opened })
  const port = faultyPort(engine)
  const { id } = await engine.enqueue(work, null)
  await using _worker = startWorker(port, [work], { ...hurried, concurrency: 1, buffer: 0 })
  const beats = () => port.asked.filter(({ beats }) => beats?.some(beat => beat.id === id)).length
  const until = async () => Date.parse((await engine.task(id)).leaseUntil!)
  await eventually('it is held', async () => (await engine.task(id)).owner !== null)
  const first = await until()
  const last = await eventually('the lease reaches six seconds further', async () => {
    const now = await until()
    return now > first + 6000 && now
  })
  // One heartbeat reports the start. One more for each second that the lease was renewed, because half of two seconds
  // is one.
  assert.ok(beats() <= 2 + (last - first) / 1000, `${beats()} beats for ${last - first} ms`)
  go.open()
  await ended(engine, id)
})

test('a worker that could not renew its lease sends no more heartbeats under it', bounded, async t => {
  const { engine } = await fresh(t)
  const [stopped, go] = [latch(), latch()]
  const work = defineTask({
    type: 'work',
    ...short,
    handler: (_: unknown, { signal }: TaskContext) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          stopped.open()
          reject(signal.reason)
        })
      }),
  })
  const other = defineTask({ type: 'other', ...short, handler: () => go.opened })
  let isCut = true
  const isAbout = (one: string, { settled = [] }: SyncRequest) => settled.some(report => report.id === one)
  const { id } = await engine.enqueue(work, null)
  // Its release never arrives, so the attempt stays in the worker's hands.
  const port = faultyPort(engine, {
    losesRequest: request => (isCut && (request.beats ?? []).length > 0) || isAbout(id, request),
  })
  await using _worker = startWorker(port, [work, other], { ...hurried, concurrency: 2, buffer: 0 })
  await stopped.opened
  isCut = false
  const askedBefore = port.asked.length
  // Meanwhile the worker renews the lease of another task.
  const neighbour = await engine.enqueue(other, null)
  const until = async () => Date.parse((await engine.task(neighbour.id)).leaseUntil ?? '')
  const first = await eventually('the other task is held', async () => (await until()) || undefined)
  await eventually('its lease was renewed', async () => (await until()) > first + 2000)
  const late = port.asked.slice(askedBefore).flatMap(({ beats = [] }) => beats.filter(beat => beat.id === id))
  assert.deepEqual(late, [])
  go.open()
})

test('progress is seen while the handler runs', bounded, async t => {
  const { engine } = await fresh(t)
  const go = latch()
  const work = defineTask({
    type: 'work',
    handler: async (_: unknown, ctx: TaskContext) => {
      ctx.progress({ done: 1, of: 3 })
      ctx.progress({ done: 2, of: 3 })
      await go.opened
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const seen = await eventually('progress is on record', async () => (await engine.task(id)).progress)
  assert.deepEqual(seen, { done: 2, of: 3 })
  go.open()
  await ended(engine, id)
})

test('a checkpoint is kept when its promise resolves, and the next attempt goes on from it', bounded, async t => {
  const { engine } = await fresh(t)
  const resumedFrom: unknown[] = []
  const kept: unknown[] = []
  const work = defineTask({
    type: 'work',
    ...short,
    handler: async (_: unknown, ctx: TaskContext) => {
      resumedFrom.push(ctx.lastCheckpoint)
      if (ctx.attempt === 3) return 'done'
      await ctx.checkpoint({ page: ctx.attempt * 10 })
      kept.push((await engine.task(ctx.id)).checkpoint)
      throw new Error('and here it breaks')
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const { state, output } = await ended(engine, id)
  assert.deepEqual([state, output], ['succeeded', 'done'])
  assert.deepEqual(kept, [{ page: 10 }, { page: 20 }])
  assert.deepEqual(resumedFrom, [null, { page: 10 }, { page: 20 }])
})

test('no checkpoint is passed over, however many are made while leases are being renewed', bounded, async t => {
  const { engine } = await fresh(t)
  const missing: number[] = []
  const work = defineTask({
    type: 'work',
    ...short,
    handler: async (_: unknown, ctx: TaskContext) => {
      for (let n = 1; n <= 60; n++) {
        // Progress triggers heartbeats of its own at the same time.
        ctx.progress(n)
        await Promise.all([ctx.checkpoint(n - 0.5), ctx.checkpoint(n)])
        if ((await engine.task(ctx.id)).checkpoint !== n) missing.push(n)
      }
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  assert.equal((await ended(engine, id)).state, 'succeeded')
  assert.deepEqual(missing, [])
})

test('a checkpoint is sent again until the store has it', bounded, async t => {
  const { engine } = await fresh(t)
  const isBeat = ({ beats }: { beats?: readonly object[] }) => beats !== undefined
  const port = faultyPort(engine, { losesRequest: theFirst(3, isBeat), losesAnswer: theFirst(1, isBeat) })
  const work = defineTask({
    type: 'work',
    handler: async (_: unknown, ctx: TaskContext) => {
      await ctx.checkpoint('half way')
      return (await engine.task(ctx.id)).checkpoint
    },
  })
  await using _worker = startWorker(port, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  assert.equal((await ended(engine, id)).output, 'half way')
})

test('a checkpoint of a task that was taken away is rejected with LEASE_LOST', bounded, async t => {
  const { engine } = await fresh(t)
  const code = latch<unknown>()
  const work = defineTask({
    type: 'work',
    handler: async (_: unknown, ctx: TaskContext) => {
      await engine.cancel(ctx.id, { mode: 'hard' })
      await ctx.checkpoint(1).catch(error => code.open(error.code))
      return 'too late'
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  assert.equal(await code.opened, 'LEASE_LOST')
  const { state, checkpoint, output } = await ended(engine, id)
  assert.deepEqual([state, checkpoint, output], ['cancelled', null, null])
})

test('progress or a checkpoint that cannot be kept is refused, and costs the task nothing', bounded, async t => {
  const { engine } = await fresh(t, { maxPayloadBytes: 1000 })
  const refused: string[] = []
  const codes: unknown[] = []
  const work = defineTask({
    type: 'work',
    handler: async (_: unknown, ctx: TaskContext) => {
      ctx.progress('a NUL: \0')
      await eventually('the progress is refused', () => refused.length > 0)
      for (const value of ['x'.repeat(2000), 10n]) await ctx.checkpoint(value).catch(error => codes.push(error.code))
      return ctx.signal.aborted
    },
  })
  const log = (word: string, facts: Record<string, unknown>) => {
    if (word === 'task.refused') refused.push(String(facts.code))
  }
  await using _worker = startWorker(engine, [work], { ...hurried, log })
  const { id } = await engine.enqueue(work, null)
  const { state, output, failures, progress, checkpoint } = await ended(engine, id)
  assert.deepEqual([state, output, failures], ['succeeded', false, 0])
  assert.deepEqual([refused[0], codes], ['PAYLOAD_INVALID', ['PAYLOAD_TOO_LARGE', 'PAYLOAD_INVALID']])
  assert.deepEqual([progress, checkpoint], [null, null])
})
