/** Run, then report: problems with the report are never blamed on the work. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ended, eventually, latch } from '../../test/harness/eventually.ts'
import { faultyPort, theFirst } from '../../test/harness/faulty-port.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { rescue } from '../babysitter/rescue.ts'
import { Problem } from '../kernel/problem.ts'
import type { SyncAnswer, SyncPort, SyncRequest } from '../protocol/tasks/sync.ts'
import { defineTask } from './define-task.ts'
import { startWorker } from './worker.ts'

const bounded = { timeout: 600_000 }
const hurried = { drainSeconds: 2, waitSeconds: 0.2 }
const reports = ({ settled }: SyncRequest) => settled !== undefined
const wins = (_: SyncRequest, { claimed }: SyncAnswer) => claimed.length > 0

function counting(type = 'work', options: object = {}) {
  const runs: unknown[] = []
  const task = defineTask({
    type,
    ...options,
    handler: (n: unknown) => {
      runs.push(n)
      return `done ${n}`
    },
  })
  return { task, runs }
}

for (const [fault, faults] of Object.entries({
  'never arrive': { losesRequest: theFirst(4, reports) },
  'arrive, but their answers do not': { losesAnswer: theFirst(4, reports) },
})) {
  test(`reports that ${fault} are sent again, and good work is never marked failed`, bounded, async t => {
    const { engine } = await fresh(t)
    const { task, runs } = counting()
    await using _worker = startWorker(faultyPort(engine, faults), [task], hurried)
    const { id } = await engine.enqueue(task, 1)
    const { state, epoch, failures, losses, output } = await ended(engine, id)
    assert.deepEqual([state, epoch, failures, losses, output, runs], ['succeeded', 1, 0, 0, 'done 1', [1]])
    const { id: next } = await engine.enqueue(task, 2)
    assert.equal((await ended(engine, next)).state, 'succeeded')
    const { items } = await engine.taskEvents(id)
    assert.equal(items.filter(({ type }) => type === 'task.succeeded').length, 1)
  })
}

test('a report that does not get through is logged with the correlation of its task', bounded, async t => {
  const { engine } = await fresh(t)
  const { task } = counting()
  const failures: Record<string, unknown>[] = []
  const log = (word: string, facts: Record<string, unknown>) => {
    if (word === 'sync.failed') failures.push(facts)
  }
  const port = faultyPort(engine, { losesRequest: theFirst(1, reports) })
  await using _worker = startWorker(port, [task], { ...hurried, log })
  const { id } = await engine.enqueue(task, 1, { correlationId: 'order-7' })
  await ended(engine, id)
  assert.deepEqual(
    failures.map(({ correlationId, tries }) => [correlationId, tries]),
    [['order-7', 1]],
  )
})

test('a task whose report does not get through keeps its lease until it does', bounded, async t => {
  const { engine } = await fresh(t)
  const { task, runs } = counting('work', { leaseSeconds: 5, heartbeatSeconds: 1 })
  let isLost = true
  const port = faultyPort(engine, { losesRequest: request => reports(request) && isLost })
  await using _worker = startWorker(port, [task], hurried)
  const { id } = await engine.enqueue(task, 1)
  await eventually('the report was lost', () => port.asked.some(reports))
  const first = Date.parse((await engine.task(id)).leaseUntil!)
  const chore = rescue({ beginsBlind: false })
  await eventually('the lease reaches past two whole ones', async () => {
    assert.equal((await chore.run(engine.context)).rescued, 0)
    return Date.parse((await engine.task(id)).leaseUntil!) > first + 4000
  })
  isLost = false
  const { state, epoch } = await ended(engine, id)
  assert.deepEqual([state, epoch, runs], ['succeeded', 1, [1]])
})

test('a claim whose answer is lost is asked for again by its syncId, and nothing is lost', bounded, async t => {
  const { engine } = await fresh(t)
  const { task, runs } = counting()
  const port = faultyPort(engine, { losesAnswer: theFirst(3, wins) })
  const queued = await engine.enqueueMany(Array.from({ length: 8 }, (_, n) => ({ type: 'work', payload: n })))
  await using _worker = startWorker(port, [task], { ...hurried, concurrency: 8 })
  for (const { id } of queued) {
    const { state, epoch } = await ended(engine, id)
    assert.deepEqual([state, epoch], ['succeeded', 1])
  }
  assert.deepEqual([...runs].sort(), [0, 1, 2, 3, 4, 5, 6, 7])
  const asks = port.asked.filter(({ claim }) => claim !== undefined).slice(0, 4)
  assert.equal(new Set(asks.map(({ session, syncId }) => `${session} ${syncId}`)).size, 1)
})

test('a claim whose answer is lost while the worker stops is given back, uncharged', bounded, async t => {
  const { engine } = await fresh(t)
  const { task, runs } = counting()
  const stopping: Promise<void>[] = []
  const port = faultyPort(engine, {
    losesAnswer: theFirst(2, (request, answer) => {
      if (!wins(request, answer)) return false
      if (stopping.length === 0) stopping.push(worker.stop())
      return true
    }),
  })
  const { id } = await engine.enqueue(task, 1)
  const worker = startWorker(port, [task])
  await eventually('it is being stopped', () => stopping.length > 0)
  await worker.stop()
  const { state, failures, losses } = await engine.task(id)
  assert.deepEqual([state, failures, losses, runs], ['retrying', 0, 0, []])
})

test(
  'a result that can never be stored goes to the dead-letter queue with the reason, without a retry',
  bounded,
  async t => {
    const { engine } = await fresh(t, { maxPayloadBytes: 1000 })
    const cycle: Record<string, unknown> = {}
    cycle.self = cycle
    const outputs = { 'too large': 'x'.repeat(2000), 'a cycle': cycle, 'a bigint': 1n, 'a NUL': '\0' }
    const task = defineTask({
      type: 'work',
      retry: { attempts: 2, delaySeconds: 0 },
      handler: (name: unknown) => outputs[name as keyof typeof outputs] ?? 'fine',
    })
    const names = [...Object.keys(outputs), 'none of these']
    const queued = await engine.enqueueMany(names.map(payload => ({ type: 'work', payload })))
    await using _worker = startWorker(engine, [task], hurried)
    const messages: string[] = []
    for (const { id } of queued.slice(0, -1)) {
      const { state, epoch, deadLetter } = await ended(engine, id)
      assert.deepEqual([state, epoch], ['dead_lettered', 1])
      assert.deepEqual([deadLetter?.reasonCode, deadLetter?.step], ['validation_failed', 'output'])
      messages.push(deadLetter!.lastError.message)
    }
    for (const [index, hint] of [/larger/, /circular/, /BigInt/, /NUL/].entries()) assert.match(messages[index]!, hint)
    assert.equal((await ended(engine, queued.at(-1)!.id)).output, 'fine')
  },
)

/** As node-postgres throws them. */
const storeErrors = {
  'lock timeout': Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' }),
  'disk full': Object.assign(new Error('could not extend file'), { code: '53100' }),
  'an error that nobody has heard of': Object.assign(new Error('cache lookup failed'), { code: 'XX000' }),
  'an error without a code': new Error('something else'),
}

for (const [name, error] of Object.entries(storeErrors)) {
  test(
    `a result is reported until the engine answers, whatever the store says in between: ${name}`,
    bounded,
    async t => {
      const { engine } = await fresh(t)
      const { task, runs } = counting('work', { retry: { attempts: 1 } })
      let left = 6
      const port: SyncPort = {
        putTaskType: (type, settings) => engine.putTaskType(type, settings),
        async sync(request, signal) {
          if (reports(request) && left-- > 0) throw error
          return engine.sync(request, signal)
        },
      }
      const { id } = await engine.enqueue(task, 1)
      await using _worker = startWorker(port, [task], hurried)
      const { state, epoch, failures } = await ended(engine, id)
      assert.deepEqual([state, epoch, failures, runs], ['succeeded', 1, 0, [1]])
    },
  )
}

test('one report that the engine cannot take does not hold up the others', bounded, async t => {
  const { engine } = await fresh(t)
  const { task } = counting()
  const poison = await engine.enqueue(task, 'poison')
  const port: SyncPort = {
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    async sync(request, signal) {
      if (request.settled?.some(({ id }) => id === poison.id)) throw new Error('a bug')
      return engine.sync(request, signal)
    },
  }
  const queued = await engine.enqueueMany([1, 2, 3, 4, 5].map(payload => ({ type: 'work', payload })))
  await using worker = startWorker(port, [task], { ...hurried, concurrency: 6 })
  for (const { id } of queued) assert.equal((await ended(engine, id)).state, 'succeeded')
  assert.equal((await engine.task(poison.id)).endedAt, null)
  await worker.stop(0)
})

test(
  'a result is reported although the lease has ended by the clock of the worker: the fence decides',
  bounded,
  async t => {
    const { engine } = await fresh(t)
    const { task } = counting('work', { retry: { attempts: 1 } })
    const isOver = latch()
    let reportedAt = Number.POSITIVE_INFINITY
    const port: SyncPort = {
      putTaskType: (type, settings) => engine.putTaskType(type, settings),
      async sync(request, signal) {
        if (reports(request)) {
          reportedAt = performance.now()
          await isOver.opened
        }
        const answer = await engine.sync(request, signal)
        const claimed = answer.claimed.map(each => ({ ...each, leaseSeconds: 0.05 }))
        return { ...answer, claimed }
      },
    }
    const { id } = await engine.enqueue(task, 1)
    await using _worker = startWorker(port, [task], hurried)
    await eventually('the lease is over for the worker', () => performance.now() > reportedAt + 100)
    isOver.open()
    assert.equal((await ended(engine, id)).state, 'succeeded')
  },
)

test('a report that is abandoned when the worker stops is logged, and not taken for acknowledged', bounded, async t => {
  const { engine } = await fresh(t)
  const { task } = counting()
  const logged: Record<string, unknown>[] = []
  const log = (word: string, facts: Record<string, unknown>) => void logged.push({ word, ...facts })
  const port = faultyPort(engine, { losesRequest: reports })
  const { id } = await engine.enqueue(task, 1, { correlationId: 'order-7' })
  const worker = startWorker(port, [task], { ...hurried, log })
  await eventually('a report was lost', () => port.asked.some(reports))
  await worker.stop(0)
  const abandoned = logged.filter(({ word }) => word === 'report.abandoned')
  assert.deepEqual(abandoned, [
    { word: 'report.abandoned', id, epoch: 1, outcome: 'succeeded', correlationId: 'order-7', worker: worker.name },
  ])
  assert.equal(logged.find(({ word }) => word === 'worker.stopped')?.leftBehind, 1)
  assert.equal((await engine.task(id)).epoch, 1)
})

test('what a worker says of a refused task names its correlation', bounded, async t => {
  const { engine } = await fresh(t, { maxPayloadBytes: 1000 })
  const logged: unknown[] = []
  const large = defineTask({ type: 'work', retry: { attempts: 1 }, handler: () => 'x'.repeat(5000) })
  const log = (word: string, { id, correlationId }: Record<string, unknown>) => {
    if (word === 'task.refused') logged.push([word, id, correlationId])
  }
  await using _worker = startWorker(engine, [large], { log })
  const { id } = await engine.enqueue(large, null, { correlationId: 'order-7' })
  await ended(engine, id)
  assert.deepEqual(logged, [['task.refused', id, 'order-7']])
})

test('results that the engine cannot take together are sent apart, and none is lost', bounded, async t => {
  const { engine } = await fresh(t)
  const { task, runs } = counting()
  const port: SyncPort = {
    putTaskType: (type, settings) => engine.putTaskType(type, settings),
    async sync(request, signal) {
      if ((request.settled?.length ?? 0) > 2) throw new Problem('BODY_TOO_LARGE')
      return engine.sync(request, signal)
    },
  }
  const queued = await engine.enqueueMany(Array.from({ length: 9 }, (_, n) => ({ type: 'work', payload: n })))
  await using _worker = startWorker(port, [task], { ...hurried, concurrency: 9 })
  for (const { id } of queued) {
    const { state, epoch, failures } = await ended(engine, id)
    assert.deepEqual([state, epoch, failures], ['succeeded', 1, 0])
  }
  assert.equal(runs.length, 9)
})
