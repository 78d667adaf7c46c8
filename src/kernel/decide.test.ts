/** How a task reacts to reports, losses and timeouts. For requests of operators, see decide-control.test.ts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  loseLease,
  outcomes,
  type Report,
  reasonCodes,
  settle,
  type TaskFacts,
  type TaskPatch,
  timeOut,
  type Verdict,
} from './decide.ts'
import { compoundEdges, edgesOf } from './lifecycle.ts'
import { defaultSettings } from './settings.ts'
import { taskLifecycle } from './task.ts'

const settings = { ...defaultSettings, jitter: false }

function facts(change: Partial<TaskFacts> = {}): TaskFacts {
  return { state: 'running', failures: 0, losses: 0, lostBeforeStart: 0, cancelling: false, settings, ...change }
}

const failed = (error: Partial<NonNullable<Report['error']>> = {}): Report => ({
  outcome: 'failed',
  error: { message: 'it broke', ...error },
})

/** The states of a verdict and the columns that it changes. */
function ruled(verdict: Verdict): { to: string[]; patch: TaskPatch } {
  assert.ok(verdict.ok)
  return { to: verdict.steps.map(step => step.to), patch: verdict.patch }
}

test('a task that succeeded keeps its output and forgets its last error', () => {
  const verdict = settle(facts({ failures: 1 }), { outcome: 'succeeded', output: { n: 1 } }, 0)
  assert.deepEqual(ruled(verdict), { to: ['succeeded'], patch: { partial: false, error: null, output: { n: 1 } } })
})

test('a task that succeeded without an output leaves the output as it was', () => {
  assert.deepEqual(ruled(settle(facts(), { outcome: 'succeeded' }, 0)).patch, { partial: false, error: null })
})

test('a task that did only some of it succeeded, says so, and its event says so too', () => {
  const verdict = settle(facts(), { outcome: 'succeeded', partial: true }, 0)
  assert.ok(verdict.ok)
  assert.equal(verdict.patch.partial, true)
  assert.deepEqual(verdict.steps, [{ to: 'succeeded', cause: 'reported_succeeded', payload: { partial: true } }])
})

test('a task is skipped with the reason that its handler gave', () => {
  const verdict = settle(facts(), { outcome: 'skipped', reason: 'nothing to do' }, 0)
  assert.ok(verdict.ok)
  assert.deepEqual(verdict.steps, [{ to: 'skipped', cause: 'reported_skipped', payload: { reason: 'nothing to do' } }])
  assert.deepEqual(verdict.patch, { error: null })
})

test('a failed task is tried again while it has attempts left, each time later', () => {
  const policy = { ...settings, delaySeconds: 5 }
  const waits = [0, 1].map(failures => ruled(settle(facts({ failures, settings: policy }), failed(), 0)))
  assert.deepEqual(
    waits.map(({ to, patch }) => [to, patch.failures, patch.runInSeconds, patch.careful]),
    [
      [['retrying'], 1, 5, false],
      [['retrying'], 2, 10, false],
    ],
  )
})

test('jitter shortens the wait of a retry', () => {
  const policy = { ...settings, delaySeconds: 8, jitter: true }
  assert.equal(ruled(settle(facts({ settings: policy }), failed(), 0.5)).patch.runInSeconds, 6)
})

test('a handler that says when to try again is believed, and pays with an attempt', () => {
  const { to, patch } = ruled(settle(facts(), failed({ retryInSeconds: 90 }), 0))
  assert.deepEqual([to, patch.runInSeconds, patch.failures], [['retrying'], 90, 1])
  const last = ruled(settle(facts({ failures: 2 }), failed({ retryInSeconds: 90 }), 0))
  assert.deepEqual(last.to, ['dead_lettered'])
})

test('a task that was postponed by its handler is no longer careful, because it started', () => {
  const postponed = { outcome: 'released', error: { message: 'not ready', retryInSeconds: 60 } } as const
  assert.deepEqual(ruled(settle(facts(), postponed, 0)).patch, { runInSeconds: 60, careful: false })
  assert.deepEqual(ruled(settle(facts(), { outcome: 'released' }, 0)).patch, { runInSeconds: 0 })
})

test('a permanent error fails a task at once, whatever attempts are left', () => {
  const { to, patch } = ruled(settle(facts(), failed({ permanent: true }), 0))
  assert.deepEqual(to, ['failed'])
  assert.deepEqual(patch, { failures: 1, error: { message: 'it broke', permanent: true } })
})

test('a task without attempts left is set aside, with the evidence', () => {
  const verdict = settle(facts({ failures: 2 }), failed({ step: 'output' }), 0)
  const error = { message: 'it broke', step: 'output' }
  const evidence = { reasonCode: 'exhausted_retries', step: 'output' }
  assert.deepEqual(ruled(verdict), { to: ['dead_lettered'], patch: { failures: 3, error, deadLetter: evidence } })
  assert.ok(verdict.ok)
  assert.deepEqual(verdict.steps[0]!.payload, { ...evidence, error })
})

test('a task whose last failure has a reason of its own is set aside for that reason', () => {
  for (const reasonCode of reasonCodes) {
    const { patch } = ruled(settle(facts({ failures: 2 }), failed({ reasonCode }), 0))
    assert.deepEqual(patch.deadLetter, { reasonCode })
  }
})

test('a task that shall never be a dead letter fails when its attempts are used up', () => {
  const never = { ...settings, deadLetter: 'never' as const }
  const { to, patch } = ruled(settle(facts({ failures: 2, settings: never }), failed(), 0))
  assert.deepEqual(to, ['failed'])
  assert.equal(patch.failures, 3)
})

test('a task with one attempt is not tried twice', () => {
  const once = { ...settings, attempts: 1 }
  assert.deepEqual(ruled(settle(facts({ settings: once }), failed(), 0)).to, ['dead_lettered'])
})

test('a failure that nobody explained is still explained', () => {
  const { patch } = ruled(settle(facts(), { outcome: 'failed' }, 0))
  assert.deepEqual(patch.error, { message: 'The worker reported failed.' })
  assert.deepEqual(ruled(settle(facts(), { outcome: 'failed', reason: 'no disk' }, 0)).patch.error, {
    message: 'no disk',
  })
})

test('a handler can set its task aside, for its own reason or for a policy', () => {
  const deadLetterReport: Report = {
    outcome: 'dead_lettered',
    error: { message: 'bad input', reasonCode: 'parse_error' },
  }
  const { to, patch } = ruled(settle(facts(), deadLetterReport, 0))
  assert.deepEqual(to, ['dead_lettered'])
  assert.deepEqual(patch.deadLetter, { reasonCode: 'parse_error' })
  assert.equal(patch.failures, undefined, 'no attempt is burnt')
  const plain = ruled(settle(facts(), { outcome: 'dead_lettered' }, 0))
  assert.deepEqual(plain.patch.deadLetter, { reasonCode: 'policy_violation' })
})

test('a task that is given back is charged nothing and may be claimed at once, or when its worker says', () => {
  for (const state of ['assigned', 'running'] as const) {
    const { to, patch } = ruled(settle(facts({ state }), { outcome: 'released' }, 0))
    assert.deepEqual(to, ['retrying'])
    assert.deepEqual(patch, { runInSeconds: 0 })
  }
  const later: Report = { outcome: 'released', error: { message: 'shutting down', retryInSeconds: 7 } }
  assert.equal(ruled(settle(facts(), later, 0)).patch.runInSeconds, 7)
})

test('a worker can report a task as cancelled, with or without an error', () => {
  assert.deepEqual(ruled(settle(facts(), { outcome: 'cancelled' }, 0)), { to: ['cancelled'], patch: {} })
  const error = { message: 'stopped half-way' }
  assert.deepEqual(ruled(settle(facts(), { outcome: 'cancelled', error }, 0)).patch, { error })
})

test('a report without a start makes both moves; giving back needs no start', () => {
  for (const outcome of outcomes) {
    const { to } = ruled(settle(facts({ state: 'assigned' }), { outcome }, 0))
    const started = ruled(settle(facts({ state: 'running' }), { outcome }, 0)).to
    assert.equal(started.length, 1)
    assert.deepEqual(to, outcome === 'released' ? started : ['running', ...started], outcome)
  }
})

test('a task that is being cancelled never comes back: good ends are kept, all else is cancelled', () => {
  for (const state of ['assigned', 'running'] as const) {
    const cancelling = facts({ state, cancelling: true })
    for (const outcome of outcomes) {
      const end = ruled(settle(cancelling, { outcome }, 0)).to.at(-1)
      assert.equal(end, outcome === 'succeeded' || outcome === 'skipped' ? outcome : 'cancelled', outcome)
    }
    assert.equal(ruled(settle(cancelling, failed({ permanent: true }), 0)).to.at(-1), 'cancelled')
    assert.equal(ruled(settle(cancelling, failed({ retryInSeconds: 1 }), 0)).to.at(-1), 'cancelled')
    assert.deepEqual(ruled(loseLease(cancelling, { charged: true })).to, ['cancelled'])
    assert.deepEqual(ruled(loseLease({ ...cancelling, losses: 2 }, { charged: true })).to, ['cancelled'])
    assert.deepEqual(ruled(timeOut(cancelling, 0)).to, ['cancelled'])
  }
})

test('a lost lease is charged only to a task that was running, and only if the babysitter could see', () => {
  const rows = [
    ['running', true, 1, false],
    ['running', false, 0, false],
    ['assigned', true, 0, true],
    ['assigned', false, 0, true],
  ] as const
  for (const [state, charged, losses, careful] of rows) {
    const verdict = loseLease(facts({ state }), { charged })
    assert.deepEqual(ruled(verdict), { to: ['retrying'], patch: { losses, careful, runInSeconds: 0 } }, state)
    assert.ok(verdict.ok)
    assert.deepEqual(verdict.steps[0]!.payload, { charged: losses === 1 })
  }
})

test('a task that loses its worker again and again is set aside as infrastructure_failure', () => {
  const { to, patch } = ruled(loseLease(facts({ losses: 2 }), { charged: true }))
  assert.deepEqual(
    [to, patch.losses, patch.deadLetter],
    [['dead_lettered'], 3, { reasonCode: 'infrastructure_failure' }],
  )
  const never = facts({ losses: 2, settings: { ...settings, deadLetter: 'never' } })
  assert.deepEqual(ruled(loseLease(never, { charged: true })).to, ['failed'])
})

test('of the losses before a start, the tenth in a row is charged, if the babysitter could see', () => {
  const lost = (lostBeforeStart: number, charged = true) =>
    ruled(loseLease(facts({ state: 'assigned', lostBeforeStart }), { charged })).patch
  assert.deepEqual(lost(8), { losses: 0, careful: true, runInSeconds: 0 })
  assert.deepEqual(lost(9), { losses: 1, careful: true, runInSeconds: 0 })
  assert.deepEqual(lost(9, false), { losses: 0, careful: true, runInSeconds: 0 })
  assert.deepEqual(lost(10), { losses: 1, careful: true, runInSeconds: 0 }, 'the tenth could not be seen')
})

test('a task that is never started is set aside when its charged losses are used up', () => {
  const last = facts({ state: 'assigned', losses: 2, lostBeforeStart: 9 })
  const { to, patch } = ruled(loseLease(last, { charged: true }))
  assert.deepEqual([to, patch.deadLetter], [['dead_lettered'], { reasonCode: 'infrastructure_failure' }])
  const never = { ...last, settings: { ...settings, deadLetter: 'never' as const } }
  assert.deepEqual(ruled(loseLease(never, { charged: true })).to, ['failed'])
  const oneBudget = { ...last, losses: 0, failures: 2, settings: { ...settings, losses: null } }
  assert.deepEqual(ruled(loseLease(oneBudget, { charged: true })).to, ['dead_lettered'])
})

test('a loss that is not charged never ends a task, however many it had', () => {
  assert.deepEqual(ruled(loseLease(facts({ losses: 9 }), { charged: false })).to, ['retrying'])
  assert.deepEqual(ruled(loseLease(facts({ losses: 9, state: 'assigned' }), { charged: true })).to, ['retrying'])
})

test('with one budget for both, a lost worker uses up an attempt as a failure does', () => {
  const one = { ...settings, attempts: 3, losses: null, deadLetter: 'never' } as const
  const rows: [number, number, string][] = [
    [0, 0, 'retrying'],
    [1, 0, 'retrying'],
    [0, 1, 'retrying'],
    [1, 1, 'failed'],
    [2, 0, 'failed'],
    [0, 2, 'failed'],
  ]
  for (const [failures, losses, to] of rows) {
    const task = facts({ failures, losses, settings: one })
    assert.deepEqual(ruled(loseLease(task, { charged: true })).to, [to], `lost after ${failures} and ${losses}`)
    assert.deepEqual(ruled(settle(task, failed(), 0)).to, [to], `failed after ${failures} and ${losses}`)
    assert.deepEqual(ruled(loseLease(task, { charged: false })).to, ['retrying'])
  }
})

test('losses and failures are counted apart', () => {
  assert.equal(ruled(loseLease(facts({ failures: 2 }), { charged: true })).patch.failures, undefined)
  assert.equal(ruled(settle(facts({ losses: 2 }), failed(), 0)).patch.losses, undefined)
})

test('an attempt that runs for too long is a failure; if it was the last, the task is set aside as timeout', () => {
  const timed = facts({ settings: { ...settings, timeoutSeconds: 30, delaySeconds: 5 } })
  const { to, patch } = ruled(timeOut(timed, 0))
  assert.deepEqual([to, patch.failures, patch.runInSeconds], [['retrying'], 1, 5])
  assert.match(patch.error!.message, /longer than 30 s/)
  const last = ruled(timeOut({ ...timed, failures: 2 }, 0))
  assert.deepEqual([last.to, last.patch.deadLetter], [['dead_lettered'], { reasonCode: 'timeout' }])
})

test('whatever a worker reports, the moves that follow are moves of the table', () => {
  const arrows = new Set(edgesOf(taskLifecycle).map(({ from, to }) => `${from} ${to}`))
  const compound = new Set(compoundEdges(taskLifecycle).map(({ from, to }) => `${from} ${to}`))
  for (const state of ['assigned', 'running'] as const) {
    for (const cancelling of [false, true]) {
      for (const failures of [0, 2]) {
        for (const outcome of outcomes) {
          const { to } = ruled(settle(facts({ state, cancelling, failures }), { outcome }, 0))
          let from: string = state
          for (const next of to) {
            assert.ok(arrows.has(`${from} ${next}`), `${from} ${next}`)
            from = next
          }
          if (to.length === 2) assert.ok(compound.has(`${state} ${from}`))
        }
      }
    }
  }
})

test('an error without a message gets one, and what should be text becomes text', () => {
  const errorOf = (error: object) => {
    const report = { outcome: 'failed', error } as Report
    return ruled(settle(facts(), report, 0)).patch.error
  }
  assert.deepEqual(errorOf({ permanent: true }), { permanent: true, message: 'The worker reported failed.' })
  assert.deepEqual(errorOf({ message: { code: 5 }, stack: 7 }), { message: '{"code":5}', stack: '7' })
})
