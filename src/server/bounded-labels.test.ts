import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { countEvents } from '../babysitter/chores.ts'
import { choosingNames } from './bounded-labels.ts'
import { makeMetrics } from './metrics.ts'

const weigh = (weights: Record<string, number>) => Object.entries(weights).map(([name, weight]) => ({ name, weight }))

test('a queue keeps its own label while it has tasks, however many others have', () => {
  const choose = choosingNames(2)
  assert.deepEqual([...choose(weigh({ a: 1, b: 2, c: 0 }))].sort(), ['a', 'b'])
  assert.deepEqual([...choose(weigh({ a: 1, b: 2, c: 50, d: 60 }))].sort(), ['a', 'b'])
  // One that is empty makes room for the one that has most; one that is gone, too.
  assert.deepEqual([...choose(weigh({ a: 0, b: 2, c: 50, d: 60 }))].sort(), ['b', 'd'])
  assert.deepEqual([...choose(weigh({ a: 0, c: 50, d: 60 }))].sort(), ['c', 'd'])
  assert.deepEqual([...choose(weigh({ a: 0, c: 0, d: 0 }))].sort(), ['c', 'd'])
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
  await eventually('all is counted', async () => {
    await countEvents.run(engine.context)
    return (await figuresOf('pawl_queued_total')).get('_other') === 201
  })
  for (const name of ['pawl_queue_due', 'pawl_queued_total']) {
    const figures = await figuresOf(name)
    assert.deepEqual([figures.size, figures.get('mine'), figures.get('_other')], [101, 2, 201])
  }
  const before = [...(await figuresOf('pawl_queued_total')).keys()]
  await engine.enqueueMany(Array.from({ length: 50 }, () => ({ type: 'late', queue: 'late' })))
  await eventually('the new ones are counted', async () => {
    await countEvents.run(engine.context)
    return (await figuresOf('pawl_queued_total')).get('_other') === 251
  })
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
  await eventually('all is counted', async () => {
    await countEvents.run(engine.context)
    return (await engine.stats()).leftOut.types === 51
  })
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
