import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import type { EngineTransaction } from '../kernel/transactions.ts'
import { defineTask } from '../worker/define-task.ts'
import { GiveUp, Skip } from '../worker/errors.ts'
import { startWorker } from '../worker/worker.ts'
import { runTask, testEngine } from './index.ts'

const double = defineTask({ type: 'double', payload: z.object({ n: z.number() }), handler: ({ n }) => 2 * n })
const flaky = defineTask({
  type: 'flaky',
  retry: { attempts: 3, delaySeconds: 60, jitter: false },
  handler(_, ctx) {
    if (ctx.attempt < 3) throw new Error('not yet')
    return ctx.attempt
  },
})

test('what is due is drained, what waits for its time is left, and the clock brings it', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  await engine.enqueue(double, { n: 2 })
  const later = await engine.enqueue(double, { n: 3 }, { runInSeconds: 3600 })
  const first = await engine.drain([double])
  assert.deepEqual(
    first.map(({ type, attempt, outcome, output }) => [type, attempt, outcome, output]),
    [['double', 1, 'succeeded', 4]],
  )
  assert.deepEqual(await engine.drain([double]), [])
  await engine.advance(3600)
  assert.equal((await engine.drain([double]))[0]!.output, 6)
  assert.equal((await engine.task(later.id)).state, 'succeeded')
  assert.deepEqual(await engine.brokenRules(), [])
})

test('retries can be skipped to, or moved to by the clock', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  const one = await engine.enqueue(flaky, null)
  assert.equal((await engine.drain([flaky])).length, 1)
  assert.equal((await engine.task(one.id)).state, 'retrying')
  await engine.advance(50)
  assert.equal((await engine.drain([flaky])).length, 0)
  await engine.advance(10)
  assert.equal((await engine.drain([flaky])).length, 1)
  const ran = await engine.drain([flaky], { skipWaits: true })
  assert.deepEqual(
    ran.map(({ attempt, outcome }) => [attempt, outcome]),
    [[3, 'succeeded']],
  )
})

test('a whole job is drained: stages open, tasks spawn tasks, and the job ends', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  const split = defineTask({
    type: 'split',
    handler: (_, ctx) => ctx.spawn({ stage: 'parts', payload: { n: 1 } }, { stage: 'parts', payload: { n: 2 } }),
  })
  await engine.submit({
    name: 'sums',
    stages: [
      { name: 'split', task: 'split' },
      { name: 'parts', task: 'double', open: 'untilDone' },
    ],
  })
  const ran = await engine.drain([split, double])
  assert.equal(ran.length, 3)
  const job = await engine.waitFor({ name: 'sums' }, 'succeeded')
  assert.equal(job.progress.good, 3)
})

test('when time passes, what it brings is done: leases run out, tasks expire, gates close', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  const lost = await engine.enqueue('work', null)
  await engine.sync({ worker: 'dies', queues: ['work'], claim: 1 })
  const old = await engine.enqueue('other', null, { expireInSeconds: 10 })
  const gated = await engine.submit({ name: 'gated', stages: [{ name: 'a', gate: { timeoutSeconds: 15 } }] })
  await engine.advance(25)
  assert.equal((await engine.task(lost.id)).state, 'retrying')
  assert.equal((await engine.task(old.id)).state, 'expired')
  assert.equal((await engine.job(gated.id)).state, 'failed')
})

test('a drain that would never end is cut off, and says why', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  const endless = defineTask({ type: 'endless', handler: () => engine.enqueue('endless', null) })
  await engine.enqueue('endless', null)
  await assert.rejects(engine.drain([endless], { limit: 20 }), /More than 20 attempts: does a task queue itself/)
  const stuck = defineTask({ type: 'stuck', handler: () => new Promise(() => {}) })
  const { id } = await engine.enqueue(stuck, null)
  await assert.rejects(engine.drain([stuck], { withinSeconds: 0.5 }), new RegExp(`in hand: stuck ${id}`))
})

test('a test waits for what a worker does elsewhere, whatever it is known by', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  const worker = startWorker(engine, [double, flaky])
  t.after(() => worker.stop())
  const byType = engine.waitFor({ type: 'double' }, 'succeeded')
  const byKey = engine.waitFor({ dedupeKey: 'k' }, 'succeeded')
  const { id } = await engine.enqueue(double, { n: 2 }, { dedupeKey: 'k' })
  assert.deepEqual([(await byType).id, (await byKey).output], [id, 4])
  assert.equal((await engine.waitFor({ id }, 'succeeded')).id, id)
  const job = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'double', payloads: [{ n: 1 }] }] })
  await engine.waitFor({ name: 'j' }, 'succeeded')
  assert.equal((await engine.waitFor({ id: job.stages[0]!.id }, 'succeeded')).id, job.stages[0]!.id)
})

test('a wait that is not met says what it saw instead', async t => {
  const engine = await testEngine()
  t.after(() => engine.close())
  const soon = { withinSeconds: 0.05 }
  await assert.rejects(engine.waitFor({ type: 'flaky' }, 'succeeded', soon), /within 0.05 s. Nothing of this kind/)
  const { id } = await engine.enqueue(flaky, null)
  await engine.drain([flaky])
  const seen = new RegExp(`flaky ${id} is "retrying" after 1 failures .* last error: not yet`)
  await assert.rejects(engine.waitFor({ type: 'flaky' }, 'succeeded', soon), seen)
  await engine.cancel(id)
  await assert.rejects(engine.waitFor({ id }, 'succeeded'), /has ended, but not as "succeeded".*"cancelled"/)
  await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  await assert.rejects(engine.waitFor({ name: 'j' }, 'succeeded', soon), /j .* is "pending": a pending/)
  const misspelt = engine.waitFor({ id }, 'suceeded' as 'succeeded')
  await assert.rejects(misspelt, { code: 'OPTION_INVALID' })
})

test('engines of one process do not see each other', async t => {
  const [one, two] = await Promise.all([testEngine(), testEngine()])
  t.after(() => Promise.all([one.close(), two.close()]))
  await one.enqueue(double, { n: 1 })
  await one.advance(1000)
  assert.deepEqual((await two.tasks()).items, [])
  assert.equal((await two.drain([double])).length, 0)
  assert.equal((await one.drain([double])).length, 1)
})

test('a handler runs alone, and the run tells what a worker would report', async () => {
  const chatty = defineTask({
    type: 'chatty',
    async handler(payload, ctx) {
      ctx.progress(0.5)
      ctx.log.warn('half', { of: 2 })
      await ctx.checkpoint({ page: (ctx.lastCheckpoint as { page: number }).page + 1 })
      ctx.spawn({ payload: 1 })
      ctx.partial()
      const { at } = payload as { at: unknown }
      return { at: typeof at, attempt: ctx.attempt, when: new Date(0) }
    },
  })
  const run = await runTask(chatty, { at: new Date(0) }, { attempt: 2, lastCheckpoint: { page: 1 } })
  assert.deepEqual(run, {
    outcome: 'succeeded',
    output: { at: 'string', attempt: 2, when: '1970-01-01T00:00:00.000Z' },
    error: null,
    reason: null,
    partial: true,
    progress: 0.5,
    checkpoint: { page: 2 },
    spawned: [{ payload: 1 }],
    logs: [{ level: 'warn', message: 'half', facts: { of: 2 } }],
    completed: false,
  })
})

test('a handler that completes its task in a transaction of its own runs alone, too', async () => {
  const bill = defineTask({ type: 'bill', handler: (_, ctx) => ctx.complete({} as EngineTransaction, { billed: 1 }) })
  const { outcome, output, completed } = await runTask(bill, null)
  assert.deepEqual([outcome, output, completed], ['succeeded', { billed: 1 }, true])
})

test('what a handler throws, or must not have been given, is what the run ends with', async () => {
  const throws = (error: Error) =>
    defineTask({
      type: 'throws',
      handler: () => {
        throw error
      },
    })
  const failed = await runTask(throws(new Error('no')), null)
  assert.deepEqual([failed.outcome, failed.error!.message], ['failed', 'no'])
  assert.equal((await runTask(throws(new GiveUp('never')), null)).error!.permanent, true)
  const skipped = await runTask(throws(new Skip('nothing to do')), null)
  assert.deepEqual([skipped.outcome, skipped.reason], ['skipped', 'nothing to do'])
  const refused = await runTask(double, { n: 'two' as unknown as number })
  assert.deepEqual([refused.outcome, refused.error!.reasonCode], ['dead_lettered', 'validation_failed'])
  const big = defineTask({ type: 'big', handler: () => 1n })
  assert.deepEqual((await runTask(big, null)).error!.step, 'output')
})

test('a handler that is cancelled is told, and one that takes too long is timed out', async () => {
  const until = (signal: AbortSignal) => {
    signal.throwIfAborted()
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  }
  const waits = defineTask({ type: 'waits', handler: (_, ctx) => until(ctx.signal) })
  const abort = new AbortController()
  const running = runTask(waits, null, { signal: abort.signal })
  setImmediate(() => abort.abort())
  assert.equal((await running).outcome, 'cancelled')
  assert.equal((await runTask(waits, null, { signal: AbortSignal.abort() })).outcome, 'cancelled')
  const slow = defineTask({ type: 'slow', timeoutSeconds: 0.01, handler: (_, ctx) => until(ctx.signal) })
  assert.equal((await runTask(slow, null)).error!.reasonCode, 'timeout')
})
