import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeWake } from './wake.ts'

const never = () => new AbortController().signal

function testWake(found: () => { queue: string; seconds: number }[]) {
  const reads: (readonly string[])[] = []
  const readDue = async (queues: readonly string[]) => {
    reads.push(queues)
    return found()
  }
  return { reads, wake: makeWake(undefined, readDue, never()) }
}

test('a thousand who wait look for work together', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { reads, wake } = testWake(() => [])
  for (let index = 0; index < 1000; index++) void wake.wait([`q${index % 3}`], wake.notificationCount(), 60)
  assert.equal(wake.waiterCount(), 1000)
  for (let second = 0; second < 10; second++) {
    // A new waiter does not postpone the poll.
    void wake.wait(['q0'], wake.notificationCount(), 60)
    t.mock.timers.tick(1000)
    await new Promise(setImmediate)
  }
  assert.equal(reads.length, 5)
  assert.deepEqual([...reads[0]!].sort(), ['q0', 'q1', 'q2'])
})

test('new work wakes a few of those who wait for it, and each that wins wakes the next', async () => {
  const { wake } = testWake(() => [])
  let awake = 0
  for (let index = 0; index < 20; index++) void wake.wait(['a'], wake.notificationCount(), 60).then(() => awake++)
  void wake.wait(['b'], wake.notificationCount(), 60)
  wake.notify(['a'])
  await new Promise(setImmediate)
  assert.equal(awake, 4)
  wake.wakeSome(['a'])
  await new Promise(setImmediate)
  assert.equal(awake, 8)
  wake.notify(['*'])
  await new Promise(setImmediate)
  assert.deepEqual([awake, wake.waiterCount()], [20, 0])
})

test('whoever waits is woken when a task comes due, and when a look finds work that no word came of', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let seconds = 0.5
  const { reads, wake } = testWake(() => [{ queue: 'a', seconds }])
  const waiting = wake.wait(['a'], wake.notificationCount(), 60)
  wake.expectDueIn(0.2)
  t.mock.timers.tick(200)
  await new Promise(setImmediate)
  assert.deepEqual([reads.length, wake.waiterCount()], [1, 1])
  seconds = -0.001
  t.mock.timers.tick(500)
  await waiting
  assert.equal(reads.length, 2)
})
