import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type LaneFacts, laneRank } from './rank.ts'

const [minute, hour, day] = [60, 3600, 86_400]
const lane = { priority: 0, waitedSeconds: 0, softInSeconds: null, hardInSeconds: null }
const rank = (facts: Partial<LaneFacts>) => laneRank({ ...lane, ...facts })

test('a lane gains one rank for every minute that its oldest work waits, and 400 at most', () => {
  const waits = [0, 59, 60, 10 * minute, 400 * minute, 30 * day]
  assert.deepEqual(
    waits.map(waitedSeconds => rank({ priority: -5, waitedSeconds })),
    [-5, -5, -4, 5, 395, 395],
  )
})

test('a lane in which nothing is due has its priority, whatever its deadlines', () => {
  assert.equal(rank({ priority: 7, waitedSeconds: null, softInSeconds: -hour, hardInSeconds: -minute }), 7)
})

test('the nearer its deadline, the sooner a lane is served: from 1, a day before, to 499', () => {
  const nears = [30 * day, day, day / 2, hour, 1].map(softInSeconds => rank({ softInSeconds }))
  assert.deepEqual(nears, [1, 1, 250, 478, 499])
  assert.deepEqual(
    nears,
    [30 * day, day, day / 2, hour, 1].map(hardInSeconds => rank({ hardInSeconds })),
  )
  assert.equal(rank({ softInSeconds: hour, hardInSeconds: 2 * day }), 478, 'the soft one counts while it is ahead')
})

test('a lane that is late goes before all that are not: 500, and one more for every minute, up to 999', () => {
  const late = [0, 59, 60, hour, 10 * day].map(seconds => rank({ softInSeconds: -seconds, hardInSeconds: day }))
  assert.deepEqual(late, [500, 500, 501, 560, 999])
})

test('a lane that is too late goes before all that are only late: 1000, and one more for every minute', () => {
  const tooLate = [0, 60, day].map(seconds => rank({ softInSeconds: -10 * day, hardInSeconds: -seconds }))
  assert.deepEqual(tooLate, [1000, 1001, 2440])
  assert.equal(rank({ hardInSeconds: -60 }), 1001)
})

test('a deadline never makes a lane wait longer than its priority and age would', () => {
  assert.equal(rank({ priority: 600, softInSeconds: hour }), 600)
  assert.equal(rank({ priority: 200, waitedSeconds: 400 * minute, softInSeconds: -minute }), 600)
  assert.equal(rank({ priority: -50, softInSeconds: 2 * day }), 1)
})
