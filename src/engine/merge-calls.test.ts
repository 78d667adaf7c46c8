import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { latch } from '../../test/harness/eventually.ts'
import { Problem } from '../kernel/problem.ts'
import { againFirst, mergeCalls } from './merge-calls.ts'

const one = { concurrentRuns: 1, maxSize: 100, sizeOf: () => 1 }

/** Records the runs. Each waits for the gate. */
function recorded(options = {}) {
  const runs: string[][] = []
  const gate = latch()
  const call = mergeCalls(
    async (requests: readonly string[]) => {
      runs.push([...requests])
      await gate.opened
      return requests.map(request => request.toUpperCase())
    },
    { ...one, ...options },
  )
  return { runs, gate, call }
}

test('calls that arrive during a run share the next one, in order, and each gets its own answer', async () => {
  const { runs, gate, call } = recorded()
  const first = call('a')
  await nextTurn()
  const later = ['b', 'c', 'd'].map(call)
  await nextTurn()
  assert.deepEqual(runs, [['a']])
  gate.open()
  assert.deepEqual(await Promise.all([first, ...later]), ['A', 'B', 'C', 'D'])
  assert.deepEqual(runs, [['a'], ['b', 'c', 'd']])
})

test('a run takes no more than its size, and a call that is larger runs alone', async () => {
  const { runs, gate, call } = recorded({ maxSize: 3, sizeOf: (text: string) => text.length })
  gate.open()
  await Promise.all(['aaaaa', 'bb', 'c', 'd'].map(call))
  assert.deepEqual(runs, [['aaaaa'], ['bb', 'c'], ['d']])
})

test('groups do not share a run and do not wait for each other', async () => {
  const { runs, gate, call } = recorded({ groupOf: (text: string) => text[0]! })
  const calls = ['a1', 'b1', 'a2', 'b2'].map(call)
  await nextTurn()
  assert.deepEqual(runs, [
    ['a1', 'a2'],
    ['b1', 'b2'],
  ])
  gate.open()
  await Promise.all(calls)
})

test('a run that is stuck keeps other calls waiting only for a moment', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { runs, gate, call } = recorded({ slowMs: 50 })
  const calls = [call('stuck')]
  await nextTurn()
  calls.push(call('next'))
  await nextTurn()
  assert.deepEqual(runs, [['stuck']])
  t.mock.timers.tick(50)
  await nextTurn()
  assert.deepEqual(runs, [['stuck'], ['next']])
  gate.open()
  await Promise.all(calls)
})

test('a call that a run left out comes first in the next run', async () => {
  const runs: string[][] = []
  const call = mergeCalls<string, string>(
    async requests => {
      runs.push([...requests])
      return requests.map((request, index) => (index === 0 ? request : againFirst))
    },
    { ...one, maxSize: 2 },
  )
  assert.deepEqual(await Promise.all(['a', 'b', 'c'].map(call)), ['a', 'b', 'c'])
  assert.deepEqual(runs, [['a', 'b'], ['b', 'c'], ['c']])
})

test('a call that a slow run left out is run again', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const gate = latch()
  const call = mergeCalls<string, string>(
    async requests => {
      if (requests.length === 1) return requests
      await gate.opened
      return ['a', againFirst]
    },
    { ...one, slowMs: 50 },
  )
  const calls = ['a', 'b'].map(call)
  await nextTurn()
  t.mock.timers.tick(50)
  await nextTurn()
  gate.open()
  assert.deepEqual(await Promise.all(calls), ['a', 'b'])
})

test('a call that fails fails alone, and an unavailable store fails all calls of its run', async () => {
  const call = mergeCalls<string, string>(async requests => {
    if (requests.includes('bad')) throw new Error('a bug')
    if (requests.includes('away')) throw new Problem('STORE_UNAVAILABLE')
    return requests
  }, one)
  const results = await Promise.allSettled(['good', 'bad', 'good'].map(call))
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  const away = await Promise.allSettled(['good', 'away'].map(call))
  assert.deepEqual(
    away.map(({ status }) => status),
    ['rejected', 'rejected'],
  )
})
