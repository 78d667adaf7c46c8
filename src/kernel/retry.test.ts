import assert from 'node:assert/strict'
import { test } from 'node:test'
import { backoffSeconds } from './decide.ts'
import { defaultSettings, leaseLength, resolveSettings } from './settings.ts'

const plain = { delaySeconds: 5, factor: 2, maxSeconds: 60, jitter: false }

test('without jitter, a delay of 5 s becomes 5, 10, 20', () => {
  assert.deepEqual(
    [0, 1, 2].map(failures => backoffSeconds(plain, failures, 0.9)),
    [5, 10, 20],
  )
})

test('no delay is longer than the longest one allowed, however often it failed', () => {
  assert.equal(backoffSeconds(plain, 4, 0), 60)
  assert.equal(backoffSeconds(plain, 10_000, 0), 60)
  assert.equal(backoffSeconds({ ...plain, delaySeconds: 600 }, 0, 0), 60)
})

test('jitter takes away at most half of the delay, and never adds to it', () => {
  const jittered = { ...plain, jitter: true }
  assert.equal(backoffSeconds(jittered, 1, 0), 10)
  assert.equal(backoffSeconds(jittered, 1, 0.5), 7.5)
  for (let n = 0; n < 200; n++) {
    const seconds = backoffSeconds(jittered, 1, n / 200)
    assert.ok(seconds > 5 && seconds <= 10, `${seconds}`)
  }
})

test('jitter is taken from the longest delay too, so that what failed together does not come back together', () => {
  assert.equal(backoffSeconds({ ...plain, jitter: true }, 100, 0.5), 45)
})

test('by default a task waits about half a second, then doubles, up to a minute', () => {
  const waits = [0, 1, 2, 20].map(failures => backoffSeconds(defaultSettings, failures, 0))
  assert.deepEqual(waits, [0.5, 1, 2, 60])
})

test('a setting is the task’s own, else its type’s, else the default', () => {
  const settings = resolveSettings({ attempts: 5, losses: 7 }, { attempts: 9 })
  assert.deepEqual([settings.attempts, settings.losses, settings.leaseSeconds], [9, 7, 60])
  assert.deepEqual(resolveSettings(null, null), defaultSettings)
})

test('a lease ends by itself or after two missed heartbeats, whichever is earlier', () => {
  assert.equal(leaseLength(defaultSettings), 20)
  assert.equal(leaseLength({ ...defaultSettings, heartbeatSeconds: 40 }), 60)
  assert.equal(leaseLength({ ...defaultSettings, heartbeatSeconds: null }), 60)
})
