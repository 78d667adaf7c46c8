import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bucketCount, bucketOf, quantile, upperSeconds } from './metrics.ts'

test('every duration falls into the one bucket that it fits', () => {
  for (const seconds of [-1, 0, 0.0005, 0.001, 0.0011, 0.7, 1, 59.9, 3600, 86_400, 1e9, Number.POSITIVE_INFINITY]) {
    const bucket = bucketOf(seconds)
    assert.ok(bucket >= 0 && bucket < bucketCount, `${seconds}`)
    assert.ok(seconds <= upperSeconds(bucket) * 1.000001, `${seconds} above ${upperSeconds(bucket)}`)
    assert.ok(bucket === 0 || seconds > upperSeconds(bucket - 1) * 0.999999, `${seconds} below its bucket`)
  }
  assert.equal(bucketOf(Number.NaN), 0)
})

test('what is read off is wrong by a fifth at most', () => {
  const durations = Array.from({ length: 1000 }, (_, index) => 0.01 * 1.007 ** index)
  const counts = new Map<number, number>()
  for (const seconds of durations) counts.set(bucketOf(seconds), (counts.get(bucketOf(seconds)) ?? 0) + 1)
  for (let share = 0.01; share < 1; share += 0.01) {
    const [read, real] = [quantile(counts, share)!, durations[Math.round(share * 1000) - 1]!]
    assert.ok(read / real < 1.2 && read / real > 1 / 1.2, `p${Math.round(share * 100)}: ${read} for ${real}`)
  }
  assert.equal(quantile(new Map(), 0.5), null)
  assert.equal(quantile(new Map([[bucketCount - 1, 1]]), 0.5), upperSeconds(bucketCount - 2))
})
