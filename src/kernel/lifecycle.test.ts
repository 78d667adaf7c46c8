import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobLifecycle } from './job.ts'
import {
  compoundEdges,
  defineLifecycle,
  edgesOf,
  type Lifecycle,
  mayMove,
  movesFrom,
  movesOpenTo,
  openingEdges,
  type State,
  statesOf,
} from './lifecycle.ts'
import { lifecycles } from './lifecycles.ts'
import { stageLifecycle } from './stage.ts'
import { taskLifecycle } from './task.ts'

const begun: State = { kind: 'open', rank: 0, means: 'It has begun.' }
const underway: State = { kind: 'open', rank: 1, means: 'It is under way.' }
const done: State = { kind: 'final', rank: 2, outcome: 'good', means: 'It is done.' }
const start = { from: ['begun'], to: 'underway', by: ['worker'], when: 'it starts' } as const
const finish = { from: ['underway'], to: 'done', by: ['worker'], when: 'it ends' } as const

/** A valid table, typed as loosely as one that was never compiled. */
const sound: Lifecycle = {
  entity: 'thing',
  initial: ['begun'],
  states: { begun, underway, done },
  moves: { start, finish },
}

/** Tables that the compiler would reject must also be rejected at load, so this one is passed without its types. */
function define(change: Partial<Lifecycle>): Lifecycle {
  const table: Lifecycle = { ...sound, ...change }
  return defineLifecycle(table)
}

function refused(change: Partial<Lifecycle>, why: RegExp): void {
  assert.throws(() => define(change), why)
}

test('a sound lifecycle can be defined, and not be changed afterwards', () => {
  const defined = defineLifecycle(sound)
  assert.equal(defined, sound)
  assert.ok(Object.isFrozen(defined))
})

test('a lifecycle with a state that nothing leads to cannot be defined', () => {
  refused({ states: { ...sound.states, lost: { ...underway } } }, /thing: nothing leads to "lost"/)
})

test('a lifecycle with a state that never ends cannot be defined', () => {
  refused({ moves: { start } }, /thing: "begun" never ends/)
  const trap = { from: ['begun'], to: 'trap', by: ['worker'], when: 'it falls in' } as const
  refused(
    { states: { ...sound.states, trap: { ...underway } }, moves: { start, finish, trap } },
    /thing: "trap" never ends/,
  )
})

test('a lifecycle that names a state which does not exist cannot be defined', () => {
  const typo = { from: ['underway'], to: 'dnoe', by: ['worker'], when: 'it ends' } as const
  refused({ moves: { start, finish, typo } }, /thing: there is no state "dnoe"/)
  const ghost = { from: ['ghost'], to: 'done', by: ['worker'], when: 'it ends' } as const
  refused({ moves: { start, finish, ghost } }, /thing: there is no state "ghost"/)
  refused({ initial: ['begun', 'nowhere'] }, /thing: there is no state "nowhere"/)
})

test('a lifecycle in which a move leads back cannot be defined, unless it leads out of a hold', () => {
  const back = { from: ['underway'], to: 'begun', by: ['operator'], when: 'asked to' } as const
  refused({ moves: { start, finish, back } }, /thing: "back" leads back from "underway" to "begun"/)
  const still = { from: ['underway'], to: 'underway', by: ['operator'], when: 'asked to' } as const
  refused({ moves: { start, finish, still } }, /"still" leads back from "underway" to "underway"/)
  define({
    states: { begun, underway: { ...underway, hold: true }, done },
    moves: { start, finish, back },
  })
})

test('a lifecycle in which a final state is left without a new round cannot be defined', () => {
  const undo = { from: ['done'], to: 'begun', by: ['operator'], when: 'asked to' } as const
  refused({ moves: { start, finish, undo } }, /thing: "done" is final in its round, but "undo" leaves it/)
  define({ moves: { start, finish, undo: { ...undo, opensRound: true } } })
})

test('a lifecycle in which a round begins before the last one ended cannot be defined', () => {
  const again = { from: ['underway'], to: 'begun', by: ['operator'], opensRound: true, when: 'asked to' } as const
  refused({ moves: { start, finish, again } }, /"again" opens a round from "underway", which has not ended/)
})

test('a lifecycle in which an epoch begins without a lease cannot be defined', () => {
  refused({ moves: { start: { ...start, raisesEpoch: true }, finish } }, /"start" raises the epoch without a lease/)
  define({
    states: { begun, underway: { ...underway, kind: 'held' }, done },
    moves: { start: { ...start, raisesEpoch: true }, finish },
  })
})

test('a lifecycle with a move that nobody may make cannot be defined', () => {
  refused({ moves: { start, finish: { ...finish, by: [] } } }, /nobody may "finish"/)
})

test('a lifecycle whose outcomes and final states do not match cannot be defined', () => {
  const { outcome: _, ...noOutcome } = done
  refused({ states: { begun, underway, done: noOutcome } }, /"done": outcome iff final/)
  refused({ states: { begun, underway: { ...underway, outcome: 'bad' }, done } }, /"underway": outcome iff final/)
})

test('the states of a lifecycle can be told apart by kind', () => {
  assert.deepEqual(statesOf(taskLifecycle, 'held'), ['assigned', 'running'])
  assert.deepEqual(statesOf(taskLifecycle, 'open'), ['blocked', 'queued', 'retrying'])
  assert.deepEqual(statesOf(sound), ['begun', 'underway', 'done'])
})

test('a move with several targets counts as one move and as several arrows', () => {
  const fork = { from: ['begun', 'underway'], to: ['done', 'gone'], by: ['engine'], when: 'asked to' } as const
  const table: Lifecycle = { ...sound, states: { ...sound.states, gone: { ...done } }, moves: { start, fork } }
  assert.deepEqual(
    edgesOf(table).map(({ move, from, to }) => `${from} ${move} ${to}`),
    ['begun start underway', 'begun fork done', 'begun fork gone', 'underway fork done', 'underway fork gone'],
  )
  assert.deepEqual(movesFrom(table, 'begun'), ['start', 'fork'])
  assert.deepEqual(movesFrom(table, 'underway'), ['fork'])
  assert.equal(mayMove(table, 'underway', 'fork'), true)
  assert.equal(mayMove(table, 'done', 'fork'), false)
})

test('a settle without its start may make of a task what a worker may make of a running one, and nothing else', () => {
  assert.deepEqual(
    compoundEdges(taskLifecycle)
      .filter(({ raisesEpoch }) => !raisesEpoch)
      .map(({ from, via, to }) => `${from} ${via} ${to}`),
    [
      'assigned running succeeded',
      'assigned running skipped',
      'assigned running retrying',
      'assigned running failed',
      'assigned running cancelled',
      'assigned running dead_lettered',
    ],
  )
  assert.deepEqual(compoundEdges(sound), [])
})

test('a claim may also start the task, and nothing else', () => {
  assert.deepEqual(
    compoundEdges(taskLifecycle)
      .filter(({ raisesEpoch }) => raisesEpoch)
      .map(({ from, via, to }) => `${from} ${via} ${to}`),
    ['queued assigned running', 'retrying assigned running'],
  )
})

test('an insert may start a job and open a stage, and nothing else', () => {
  const openings = lifecycles.flatMap(table =>
    openingEdges(table).map(({ from, to }) => `${table.entity} ${from} ${to}`),
  )
  assert.deepEqual(openings.sort(), ['job created pending', 'stage created pending'])
  refused({ opening: ['done'] }, /a new row cannot open as "done"/)
})

test('a stage or job that starts and ends between two looks at it makes both moves at once', () => {
  for (const table of [jobLifecycle, stageLifecycle]) {
    assert.deepEqual(
      compoundEdges<string>(table).map(({ from, via, to }) => `${from} ${via} ${to}`),
      ['pending running succeeded', 'pending running partial', 'pending running failed'],
    )
  }
})

test('a mover is offered only the moves that are its own', () => {
  assert.deepEqual(movesOpenTo(taskLifecycle, 'running', 'operator'), ['cancel', 'deadLetter'])
  assert.deepEqual(movesOpenTo(taskLifecycle, 'queued', 'worker'), ['claim', 'cancel', 'deadLetter'])
  assert.deepEqual(movesOpenTo(taskLifecycle, 'succeeded', 'operator'), [])
})
