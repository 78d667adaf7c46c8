import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { countEvents } from '../babysitter/chores.ts'
import { deepestQueues } from '../store/flow/queue-depths.ts'
import { makeMetrics } from './metrics.ts'

/** Transactions of other tests on the same server hold the counting back. */
const countedSeconds = 120

test('a queue keeps its own label while it has tasks, however many others have', async t => {
  const { engine, sql } = await fresh(t)
  let named: readonly string[] = []
  const choose = async () => {
    const { queues, rest } = await deepestQueues(sql, { named, most: 2, others: '_other' })
    named = queues.map(({ queue }) => queue)
    return [...named, rest.count, rest.due]
  }
  const add = (queue: string, count: number) =>
    engine.enqueueMany(Array.from({ length: count }, () => ({ type: 't', queue })))
  const empty = async (queue: string) => {
    const { items } = await engine.tasks({ queue })
    for (const { id } of items) await engine.cancel(id)
  }
  await add('a', 1)
  await add('b', 2)
  assert.deepEqual(await choose(), ['a', 'b', 0, 0])
  await add('c', 5)
  await add('d', 6)
  // A queue whose name equals that of the joint series is counted there.
  await add('_other', 20)
  assert.deepEqual(await choose(), ['a', 'b', 3, 31])
  // An empty queue makes room for the deepest one.
  await empty('a')
  assert.deepEqual(await choose(), ['b', 'd', 3, 25])
  await empty('b')
  await empty('c')
  await empty('d')
  assert.deepEqual(await choose(), ['b', 'd', 3, 20])
})

test('metrics have at most 100 queues and types by name, the rest as one, and their sums are right', async t => {
  const { engine } = await fresh(t)
  const names = Array.from({ length: 300 }, (_, n) => `q${n}`)
  await engine.enqueueMany(names.map(name => ({ type: name, queue: name })))
  await engine.enqueueMany([
    { type: 'mine', queue: 'mine' },
    { type: 'mine', queue: 'mine' },
  ])
  const metrics = makeMetrics(engine)
  const figuresOf = async (name: string) => {
    const found = (await metrics.text()).matchAll(new RegExp(`^${name}\\{\\w+="([^"]*)"\\} (.*)$`, 'gm'))
    return new Map([...found].map(([, label, value]) => [label!, Number(value)]))
  }
  await eventually(
    'all is counted',
    async () => {
      await countEvents.run(engine.context)
      return (await figuresOf('pawl_queued_total')).get('_other') === 201
    },
    countedSeconds,
  )
  for (const name of ['pawl_queue_due', 'pawl_queued_total']) {
    const figures = await figuresOf(name)
    assert.deepEqual([figures.size, figures.get('mine'), figures.get('_other')], [101, 2, 201])
  }
  const before = [...(await figuresOf('pawl_queued_total')).keys()]
  await engine.enqueueMany(Array.from({ length: 50 }, () => ({ type: 'late', queue: 'late' })))
  await eventually(
    'the new ones are counted',
    async () => {
      await countEvents.run(engine.context)
      return (await figuresOf('pawl_queued_total')).get('_other') === 251
    },
    countedSeconds,
  )
  assert.deepEqual([...(await figuresOf('pawl_queued_total')).keys()], before)
})

test('statistics tell of the types and queues that have most, and of how many there are besides', async t => {
  const { engine } = await fresh(t)
  const names = Array.from({ length: 150 }, (_, n) => `q${n}`)
  await engine.enqueueMany(names.map(name => ({ type: name, queue: name })))
  await engine.enqueueMany([
    { type: 'mine', queue: 'mine' },
    { type: 'mine', queue: 'mine' },
  ])
  await eventually(
    'all is counted',
    async () => {
      await countEvents.run(engine.context)
      return (await engine.stats()).leftOut.types === 51
    },
    countedSeconds,
  )
  const { types, queues, series, leftOut } = await engine.stats()
  assert.deepEqual([types.length, queues.length, series.length, leftOut], [100, 100, 100, { types: 51, queues: 51 }])
  assert.ok(types.some(({ type, queued }) => type === 'mine' && queued === 2))
  assert.ok(queues.some(({ queue, due }) => queue === 'mine' && due === 2))
  assert.deepEqual((await engine.stats({ limit: 200 })).leftOut, { types: 0, queues: 0 })
  assert.deepEqual(
    (await engine.stats({ type: 'q7' })).types.map(({ type }) => type),
    ['q7'],
  )
})
