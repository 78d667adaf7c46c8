import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobView, Progress, StageView } from '../protocol/jobs/jobs.ts'
import { makeEstimate, progressLines } from './progress.ts'
import { render } from './styled-line.ts'

const progressOf = (total: number, good: number, bad = 0): Progress => {
  const percent = total === 0 ? 0 : Math.floor((100 * (good + bad)) / total)
  return { total, good, bad, partial: 0, skipped: 0, percent }
}

const stageOf = (name: string, state: string, progress: Progress) =>
  ({
    id: name,
    name,
    state,
    progress,
    gate: null,
    approvals: [],
    held: false,
    cause: null,
    error: null,
  }) as unknown as StageView

const jobOf = (stages: readonly StageView[]) =>
  ({ name: 'j', state: 'running', progress: progressOf(10, 5), stages }) as unknown as JobView

const shown = (job: JobView, room: { width: number; height: number }, left?: number) =>
  progressLines(job, room, left).map(line => render(line, { colour: false, width: room.width }))

test('the time left follows from how fast tasks ended lately, and is not made up before one has', () => {
  const estimate = makeEstimate(10_000)
  assert.equal(estimate(progressOf(100, 0), 0), undefined)
  assert.equal(estimate(progressOf(100, 0), 1000), undefined)
  assert.equal(estimate(progressOf(100, 20), 2000), 8)
  // It was fast once; what counts is the last ten seconds.
  assert.equal(estimate(progressOf(100, 21), 12_000), 790)
  // A retry opened the next round, with fewer ended than before.
  assert.equal(estimate(progressOf(100, 5), 13_000), undefined)
})

test('every stage has a bar that is as full as the stage is done, with its bad tasks named', () => {
  const job = jobOf([stageOf('a', 'succeeded', progressOf(4, 4)), stageOf('b', 'running', progressOf(4, 1, 1))])
  const [head, a, b] = shown(job, { width: 60, height: 20 }, 12.3)
  assert.equal(head, 'j  running  50 %  about 12 s left')
  assert.match(a!, /^ {2}✓ a +█{22} 4\/4$/)
  assert.match(b!, /^ {2}▸ b +█{11}░{11} 2\/4 1 bad {2}running$/)
})

test('a job with more stages than the terminal has lines shows those at work, and says how many it hides', () => {
  const ended = Array.from({ length: 50 }, (_, index) => stageOf(`s${index}`, 'succeeded', progressOf(1, 1)))
  const lines = shown(jobOf([...ended, stageOf('busy', 'running', progressOf(2, 1))]), { width: 80, height: 10 })
  assert.ok(lines.length < 10, `${lines.length} lines`)
  assert.ok(lines.some(line => line.includes('busy')))
  assert.match(lines.at(-1)!, /and 44 more stages/)
})
