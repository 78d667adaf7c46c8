/** How a task reacts to requests of operators and to the clock. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventType } from '../../test/harness/event-type.ts'
import { cancel, deadLetter, endGrace, expire, revive, type TaskFacts, type Verdict } from './decide.ts'
import { edgesOf, isFinal, movesOpenTo, statesOf } from './lifecycle.ts'
import { defaultSettings } from './settings.ts'
import { type TaskMove, type TaskState, taskLifecycle } from './task.ts'

const states = statesOf(taskLifecycle)

function facts(state: TaskState, change: Partial<TaskFacts> = {}): TaskFacts {
  return { state, failures: 2, losses: 1, lostBeforeStart: 0, cancelling: false, settings: defaultSettings, ...change }
}

/**
 * From every state, a move is allowed exactly where the table has it. A refusal names the state and the possible moves.
 */
function grantedWhereItExists(move: TaskMove, ask: (facts: TaskFacts) => Verdict): TaskState[] {
  return states.filter(state => {
    const verdict = ask(facts(state))
    const exists = edgesOf(taskLifecycle).some(edge => edge.move === move && edge.from === state)
    assert.equal(verdict.ok, exists, `${move} from ${state}`)
    if (!verdict.ok) {
      const possible = movesOpenTo(taskLifecycle, state, 'operator')
      assert.deepEqual(verdict, { ok: false, state, move, possible })
    }
    return verdict.ok
  })
}

test('a task can be cancelled until it has ended; afterwards the refusal names the moves that exist', () => {
  for (const mode of ['soft', 'hard'] as const) {
    const granted = grantedWhereItExists('cancel', task => cancel(task, mode))
    assert.deepEqual(
      granted,
      states.filter(state => !isFinal(taskLifecycle, state)),
    )
  }
  assert.deepEqual(cancel(facts('failed'), 'soft'), {
    ok: false,
    state: 'failed',
    move: 'cancel',
    possible: ['retry'],
  })
})

test('a task that nobody holds is cancelled at once', () => {
  for (const state of ['blocked', 'queued', 'retrying'] as const) {
    assert.deepEqual(cancel(facts(state), 'soft', 'not needed'), {
      ok: true,
      steps: [{ to: 'cancelled', cause: 'cancel', payload: { mode: 'soft', reason: 'not needed' } }],
      patch: {},
    })
  }
})

test('the holder of a task is asked to stop: written down, and no move yet', () => {
  for (const state of ['assigned', 'running'] as const) {
    assert.deepEqual(cancel(facts(state), 'soft'), {
      ok: true,
      steps: [{ to: state, type: 'task.cancel_requested', cause: 'cancel', payload: { mode: 'soft' } }],
      patch: { cancelRequested: true },
    })
  }
})

test('asking the holder twice is written down once', () => {
  assert.deepEqual(cancel(facts('running', { cancelling: true }), 'soft'), { ok: true, steps: [], patch: {} })
})

test('a hard cancel ends a task at once, whoever holds it and was asked before', () => {
  for (const state of ['assigned', 'running', 'queued'] as const) {
    for (const cancelling of [false, true]) {
      const verdict = cancel(facts(state, { cancelling }), 'hard')
      assert.ok(verdict.ok)
      assert.deepEqual(verdict.steps, [{ to: 'cancelled', cause: 'cancel', payload: { mode: 'hard' } }])
    }
  }
})

test('when the grace has passed, a task that was asked to stop is cancelled', () => {
  grantedWhereItExists('cancel', endGrace)
  const verdict = endGrace(facts('running', { cancelling: true }))
  assert.ok(verdict.ok)
  assert.deepEqual(verdict.steps, [{ to: 'cancelled', cause: 'cancel_grace_passed' }])
})

test('a task whose time to live has passed is expired, held or not, unless it has ended', () => {
  grantedWhereItExists('expire', expire)
  const verdict = expire(facts('running'))
  assert.deepEqual(verdict, { ok: true, steps: [{ to: 'expired', cause: 'time_to_live' }], patch: {} })
})

test('an operator can set a task aside, with a reason code, a step and a word', () => {
  grantedWhereItExists('deadLetter', task => deadLetter(task, { reasonCode: 'policy_violation' }))
  const verdict = deadLetter(facts('running'), { reasonCode: 'parse_error', step: 'input', reason: 'no header' })
  const evidence = { reasonCode: 'parse_error', step: 'input' }
  const error = { message: 'no header', step: 'input' }
  assert.deepEqual(verdict, {
    ok: true,
    steps: [{ to: 'dead_lettered', cause: 'operator', payload: { ...evidence, error } }],
    patch: { error, deadLetter: evidence },
  })
  const terse = deadLetter(facts('queued'), { reasonCode: 'timeout' })
  assert.ok(terse.ok)
  assert.deepEqual(terse.patch, {
    error: { message: 'Moved to the dead-letter queue by an operator.' },
    deadLetter: { reasonCode: 'timeout' },
  })
})

test('an ended task gets another round, with fresh budgets, by the one move that is for its end', () => {
  const ways = { resume: ['cancelled'], retry: ['failed', 'expired'], redrive: ['dead_lettered'] } as const
  for (const [name, from] of Object.entries(ways)) {
    const move = name as keyof typeof ways
    assert.deepEqual(
      grantedWhereItExists(move, task => revive(task, move, {})),
      from,
    )
    assert.deepEqual(revive(facts(from[0]!), move, { reason: 'mended' }), {
      ok: true,
      steps: [{ to: 'queued', cause: move, payload: { reason: 'mended' } }],
      patch: {
        failures: 0,
        losses: 0,
        careful: false,
        runInSeconds: 0,
        error: null,
        deadLetter: null,
        opensRound: true,
      },
    })
  }
})

test('nothing that succeeded can be tried again, and the refusal says that no move is left', () => {
  for (const move of ['resume', 'retry', 'redrive'] as const) {
    assert.deepEqual(revive(facts('succeeded'), move, {}), { ok: false, state: 'succeeded', move, possible: [] })
  }
})

test('an event is named after what happened', () => {
  assert.equal(eventType('task', 'assigned'), 'task.claimed')
  assert.equal(eventType('task', 'running'), 'task.started')
  assert.equal(eventType('job', 'running'), 'job.started')
  assert.equal(eventType('stage', 'partial'), 'stage.partial')
})
