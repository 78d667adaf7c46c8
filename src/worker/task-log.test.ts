import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ended, eventually, latch } from '../../test/harness/eventually.ts'
import { faultyPort, theFirst } from '../../test/harness/faulty-port.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { logLimits } from '../protocol/tasks/logs.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { makeTaskLog } from './task-log.ts'
import { startWorker } from './worker.ts'

const bounded = { timeout: 600_000 }
const task = (handler: (payload: unknown, ctx: TaskContext) => Promise<unknown> | unknown, options: object = {}) =>
  defineTask({ type: 'work', retry: { delaySeconds: 0 }, ...options, handler })

test('what a handler logs can be read once its task has ended, however short it was', bounded, async t => {
  const { engine } = await fresh(t)
  const talk = task((_, { log, attempt }) => {
    log(`attempt ${attempt}`)
    log.debug('a', { of: new Error('inner'), n: 10n })
    log.info('b')
    log.warn('c')
    log.error('d', 5 as never)
    if (attempt === 1) throw new Error('once more')
  })
  await using _worker = startWorker(engine, [talk])
  const { id } = await engine.enqueue(talk, null)
  await ended(engine, id)
  const { items } = await engine.logs(id)
  assert.deepEqual(
    items.map(({ epoch, n, level, message }) => `${epoch}.${n} ${level} ${message}`),
    [1, 2].flatMap(epoch => [
      `${epoch}.1 info attempt ${epoch}`,
      `${epoch}.2 debug a`,
      `${epoch}.3 info b`,
      `${epoch}.4 warn c`,
      `${epoch}.5 error d`,
    ]),
  )
  const { of, n } = items[1]!.facts as { of: { message: string }; n: string }
  assert.deepEqual([of.message, n, items[4]!.facts], ['inner', '10', { value: 5 }])
})

test('what a long task logs can be read while it runs, long before its next heartbeat', bounded, async t => {
  const { engine } = await fresh(t)
  const [goOn, end] = [latch(), latch()]
  const slow = task(
    async (_, ctx) => {
      ctx.log('begun')
      await goOn.opened
      ctx.log('midway')
      await end.opened
      ctx.log('done')
    },
    { leaseSeconds: 600, heartbeatSeconds: null },
  )
  await using _worker = startWorker(engine, [slow])
  const { id } = await engine.enqueue(slow, null)
  const messages = async () => (await engine.logs(id)).items.map(({ message }) => message)
  await eventually('its first line is there', async () => (await messages()).length === 1)
  goOn.open()
  await eventually('its next line is there', async () => (await messages()).length === 2)
  assert.equal((await engine.task(id)).endedAt, null)
  end.open()
  await ended(engine, id)
  assert.deepEqual(await messages(), ['begun', 'midway', 'done'])
})

test('no line is lost or doubled when beats and reports are lost on the way, or their answers', bounded, async t => {
  const { engine } = await fresh(t)
  const carries = ({ beats = [], settled = [] }: SyncRequest) => [...beats, ...settled].some(item => item.logs)
  const port = faultyPort(engine, { losesRequest: theFirst(2, carries), losesAnswer: theFirst(2, carries) })
  const talk = task(async (_, ctx) => {
    ctx.log('one')
    await eventually('a beat has carried it', () => port.asked.filter(carries).length >= 3)
    ctx.log('two')
  })
  await using _worker = startWorker(port, [talk])
  const { id } = await engine.enqueue(talk, null)
  await ended(engine, id)
  assert.deepEqual(
    (await engine.logs(id)).items.map(({ n, message }) => `${n} ${message}`),
    ['1 one', '2 two'],
  )
})

test('a handler that logs without end keeps its first lines, and is told how many were dropped', bounded, async t => {
  const { engine } = await fresh(t)
  const chatty = task((_, ctx) => {
    for (let n = 1; n <= 5000; n++) ctx.log(`line ${n}`)
  })
  await using _worker = startWorker(engine, [chatty])
  const { id } = await engine.enqueue(chatty, null)
  assert.equal((await ended(engine, id)).state, 'succeeded')
  const first = await engine.logs(id)
  assert.deepEqual([first.items.length, first.items.at(-1)!.message], [1000, 'line 1000'])
  const { items } = await engine.logs(id, { cursor: first.next! })
  assert.deepEqual([items.length, items[0]!.facts], [1, { dropped: 4000 }])
})

test('a worker holds a bounded part of what a handler says, and nothing said after its end', () => {
  let isOpen = true
  const log = makeTaskLog(() => isOpen)
  for (let n = 0; n < 10_000; n++) log.logger('x'.repeat(100_000), { y: 'y'.repeat(100_000) })
  assert.ok(log.bytes() < logLimits.bytes + logLimits.messageLength * 4 + logLimits.factsBytes)
  const before = log.last(0)
  isOpen = false
  log.logger('left behind')
  assert.deepEqual(log.last(0), before)
  assert.equal((before.at(-1)!.facts as { dropped: number }).dropped, 10_000 - before.length + 1)
})

test('a task that logs nothing sends not one byte for it', bounded, async t => {
  const { engine } = await fresh(t)
  const port = faultyPort(engine)
  const quiet = task(async (_, ctx) => {
    ctx.progress(1)
    await eventually('a beat was sent', () => port.asked.some(({ beats = [] }) => beats.length > 0))
  })
  await using _worker = startWorker(port, [quiet])
  const { id } = await engine.enqueue(quiet, null)
  await ended(engine, id)
  assert.ok(!JSON.stringify(port.asked).includes('logs'))
})
