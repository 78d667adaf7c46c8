import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ended, eventually } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { runTask } from '../testing/run-task.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { DeadLetter, GiveUp, Interrupted, RetryIn, reportOf, Skip } from './errors.ts'
import { startWorker } from './worker.ts'

const hurried = { drainSeconds: 2, waitSeconds: 0.2 }
const noDelay = { retry: { attempts: 3, delaySeconds: 0, jitter: false } }

function throwing(what: () => unknown, options: object = noDelay) {
  return defineTask({
    type: 'work',
    ...options,
    handler: () => {
      throw what()
    },
  })
}

test('whatever a handler returns is the task’s output', async t => {
  const { engine } = await fresh(t)
  const echo = defineTask({ type: 'echo', handler: payload => payload })
  await using _worker = startWorker(engine, [echo], hurried)
  for (const value of [{ list: [1, 'two', { three: null }] }, 'text', 0, false, [[]]]) {
    const { id } = await engine.enqueue(echo, value)
    const { state, output } = await ended(engine, id)
    assert.deepEqual([state, output], ['succeeded', value])
  }
  const nothing = defineTask({ type: 'nothing', handler: () => {} })
  await using _other = startWorker(engine, [nothing], hurried)
  const { id } = await engine.enqueue(nothing, 1)
  assert.equal((await ended(engine, id)).output, null)
})

test('what a handler throws is tried again, and set aside when its attempts are used up', async t => {
  const { engine } = await fresh(t)
  const attempts: number[] = []
  const work = defineTask({
    type: 'work',
    ...noDelay,
    handler: (_: unknown, ctx: TaskContext) => {
      attempts.push(ctx.attempt)
      throw new Error(`no luck, time ${ctx.attempt}`)
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const { state, failures, losses, deadLetter } = await ended(engine, id)
  assert.deepEqual([state, failures, losses, attempts], ['dead_lettered', 3, 0, [1, 2, 3]])
  assert.deepEqual([deadLetter?.reasonCode, deadLetter?.attempts], ['exhausted_retries', 3])
  assert.equal(deadLetter?.lastError.message, 'no luck, time 3')
  assert.match(deadLetter?.lastError.stack ?? '', /errors\.test/)
})

test('a task that fails and then succeeds keeps no error', async t => {
  const { engine } = await fresh(t)
  const work = defineTask({
    type: 'work',
    ...noDelay,
    handler: (_: unknown, ctx: TaskContext) => {
      if (ctx.attempt < 3) throw new Error('not yet')
      return 'at last'
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const { state, failures, error, output } = await ended(engine, id)
  assert.deepEqual([state, failures, error, output], ['succeeded', 2, null, 'at last'])
})

test('RetryIn is tried again when it says, whatever the backoff says, and counts as a failure', async t => {
  const { engine, advance } = await fresh(t)
  const work = throwing(() => new RetryIn(3600), { retry: { attempts: 2, delaySeconds: 0 } })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const first = await eventually('it failed once', async () => {
    const task = await engine.task(id)
    return task.state === 'retrying' && task
  })
  assert.equal(first.failures, 1)
  const waitSeconds = (Date.parse(first.runAt) - Date.parse(first.changedAt)) / 1000
  assert.ok(Math.abs(waitSeconds - 3600) < 1, `${waitSeconds} s`)
  await advance(3601)
  const { state, failures } = await ended(engine, id)
  assert.deepEqual([state, failures], ['dead_lettered', 2])
})

test('GiveUp fails the task at once, however many attempts are left', async t => {
  const { engine } = await fresh(t)
  const work = throwing(() => new GiveUp('the account is closed'))
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const { state, failures, error, deadLetter } = await ended(engine, id)
  assert.deepEqual([state, failures, error?.message, deadLetter], ['failed', 1, 'the account is closed', null])
})

test('DeadLetter sets the task aside with its reason and step', async t => {
  const { engine } = await fresh(t)
  const work = throwing(() => new DeadLetter('parse_error', 'line 7 is not CSV', 'input'))
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const { state, failures, deadLetter } = await ended(engine, id)
  assert.deepEqual([state, failures], ['dead_lettered', 0])
  assert.deepEqual([deadLetter?.reasonCode, deadLetter?.step], ['parse_error', 'input'])
  assert.equal(deadLetter?.lastError.message, 'line 7 is not CSV')
})

test('Skip is a good end, and says why', async t => {
  const { engine } = await fresh(t)
  const work = throwing(() => new Skip('nothing new since yesterday'))
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const { state, failures, error } = await ended(engine, id)
  assert.deepEqual([state, failures, error], ['skipped', 0, null])
  const { items } = await engine.taskEvents(id)
  assert.deepEqual(items.at(-1)?.payload, { reason: 'nothing new since yesterday' })
})

test('a handler that did only some of its work says so, and the task has still succeeded', async t => {
  const { engine } = await fresh(t)
  const work = defineTask({
    type: 'work',
    handler: (_: unknown, ctx: TaskContext) => {
      ctx.partial()
      return { done: 3, of: 5 }
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const { id } = await engine.enqueue(work, null)
  const { state, partial, output } = await ended(engine, id)
  assert.deepEqual([state, partial, output], ['succeeded', true, { done: 3, of: 5 }])
})

test('an error of any make can be kept: no NUL, no half characters, not without end', async t => {
  const { engine } = await fresh(t)
  const odd = [new Error('a\0b\uD800'), 'just text', undefined, { some: 'object' }, new Error('x'.repeat(100_000))]
  const work = defineTask({
    type: 'work',
    retry: { attempts: 1 },
    handler: (which: unknown) => {
      throw odd[Number(which)]
    },
  })
  await using _worker = startWorker(engine, [work], hurried)
  const messages = []
  for (const which of odd.keys()) {
    const { id } = await engine.enqueue(work, which)
    const { state, error } = await ended(engine, id)
    assert.equal(state, 'dead_lettered')
    messages.push(error?.message.slice(0, 20))
  }
  assert.deepEqual(messages, ['a\uFFFDb\uFFFD', 'just text', 'undefined', '{"some":"object"}', 'x'.repeat(20)])
})

test('after an interruption that is what counts, not what it led to', () => {
  const thrown = new GiveUp('I was told to stop')
  assert.equal(reportOf(thrown, 'cancelled').outcome, 'cancelled')
  assert.equal(reportOf(thrown, 'shutdown').outcome, 'released')
  assert.equal(reportOf(thrown, 'lease-lost').outcome, 'released')
  const late = reportOf(new Interrupted('timeout'), 'timeout')
  assert.deepEqual([late.outcome, late.error?.reasonCode, late.error?.permanent], ['failed', 'timeout', undefined])
})

test('a handler that returns a report says in it that it did only some of its work; other outputs are left alone', async () => {
  const returns = async (output: unknown) =>
    (await runTask(defineTask({ type: 'work', handler: () => output }), null)).partial
  assert.equal(await returns({ status: 'partial', metrics: { total: 5, failed: 2 }, errors: ['two were empty'] }), true)
  assert.equal(await returns({ status: 'partial' }), true)
  assert.equal(await returns({ status: 'completed', metrics: {}, errors: [] }), false)
  assert.equal(await returns({ status: 'partial', order: 7 }), false)
  assert.equal(await returns(['partial']), false)
  assert.equal(await returns(null), false)
})
