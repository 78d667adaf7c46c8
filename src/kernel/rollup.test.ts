import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rollUpJob, rollUpStage, type StageEnd, tolerated } from './rollup.ts'

type Row = [bad: number, good: number, partial: number, tolerate: { count?: number; percent?: number }, end: string]

test('a stage is named by its tasks: well, in part, or failed', () => {
  const rows: Row[] = [
    [0, 0, 0, {}, 'succeeded'],
    [0, 3, 0, {}, 'succeeded'],
    [0, 3, 1, {}, 'partial'],
    [0, 3, 3, {}, 'partial'],
    [1, 9, 0, {}, 'failed'],
    [1, 9, 0, { count: 1 }, 'partial'],
    [2, 8, 0, { count: 1 }, 'failed'],
    [1, 9, 4, { count: 1 }, 'partial'],
    [1, 9, 0, { percent: 10 }, 'partial'],
    [1, 9, 0, { percent: 9 }, 'failed'],
    [2, 8, 0, { count: 1, percent: 20 }, 'partial'],
    [2, 0, 0, { count: 5 }, 'failed'],
    [2, 0, 0, { percent: 100 }, 'failed'],
    [0, 5, 0, { count: 5, percent: 100 }, 'succeeded'],
  ]
  for (const [bad, good, partial, tolerate, end] of rows) {
    assert.equal(rollUpStage({ bad, good, partial }, tolerate), end, JSON.stringify({ bad, good, partial, tolerate }))
  }
})

test('every mixture of tasks has a name, and more bad tasks never make it better', () => {
  const order = ['failed', 'partial', 'succeeded']
  for (let good = 0; good <= 4; good++) {
    for (let partial = 0; partial <= good; partial++) {
      for (const tolerate of [{}, { count: 2 }, { percent: 50 }]) {
        const ends = [0, 1, 2, 3, 4].map(bad => order.indexOf(rollUpStage({ bad, good, partial }, tolerate)))
        assert.ok(!ends.includes(-1))
        if (good > 0) assert.deepEqual(ends, [...ends].sort().reverse(), JSON.stringify({ good, partial, tolerate }))
      }
    }
  }
})

test('a stage bears the greater of a number and a share of its tasks, rounded down', () => {
  assert.equal(tolerated({}, 100), 0)
  assert.equal(tolerated({ count: 3 }, 100), 3)
  assert.equal(tolerated({ percent: 5 }, 100), 5)
  assert.equal(tolerated({ percent: 5 }, 39), 1)
  assert.equal(tolerated({ count: 3, percent: 5 }, 100), 5)
  assert.equal(tolerated({ count: 7, percent: 5 }, 100), 7)
})

const words = ['succeeded', 'skipped', 'partial', 'failed', 'cancelled', 'failed?', 'cancelled?'] as const

/** `failed?` is a failed stage with onFailure `continue`. */
function stageOf(word: (typeof words)[number]): StageEnd {
  const mayFail = word.endsWith('?')
  return { state: word.replace('?', '') as StageEnd['state'], onFailure: mayFail ? 'continue' : 'fail' }
}

test('a job is named by its stages: well, in part, or failed', () => {
  const rows: [string, 'succeeded' | 'partial' | 'failed'][] = [
    ['', 'succeeded'],
    ['succeeded', 'succeeded'],
    ['skipped', 'succeeded'],
    ['succeeded skipped', 'succeeded'],
    ['partial', 'partial'],
    ['succeeded partial', 'partial'],
    ['skipped partial', 'partial'],
    ['failed', 'failed'],
    ['cancelled', 'failed'],
    ['succeeded failed', 'failed'],
    ['succeeded cancelled', 'failed'],
    ['failed?', 'failed'],
    ['cancelled?', 'failed'],
    ['failed? skipped', 'failed'],
    ['failed? succeeded', 'partial'],
    ['cancelled? succeeded', 'partial'],
    ['failed? partial', 'partial'],
    ['failed? succeeded failed', 'failed'],
  ]
  for (const [stages, end] of rows) {
    const ends = stages.split(' ').flatMap(word => (word === '' ? [] : [stageOf(word as 'failed')]))
    assert.equal(rollUpJob(ends), end, stages)
  }
})

test('every mixture of stages has a name: one that must not fail decides, skipped ones do not count', () => {
  for (let mixture = 0; mixture < 2 ** words.length; mixture++) {
    const chosen = words.filter((_, index) => (mixture >> index) & 1)
    const has = (...some: (typeof words)[number][]) => some.some(word => chosen.includes(word))
    const bad = has('failed?', 'cancelled?')
    const done = has('succeeded', 'partial')
    const end = has('failed', 'cancelled')
      ? 'failed'
      : bad
        ? done
          ? 'partial'
          : 'failed'
        : has('partial')
          ? 'partial'
          : 'succeeded'
    assert.equal(rollUpJob(chosen.map(stageOf)), end, chosen.join(' '))
    assert.equal(rollUpJob(chosen.map(stageOf).reverse()), end, `${chosen.join(' ')}, reversed`)
  }
})
