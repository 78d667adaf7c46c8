import assert from 'node:assert/strict'
import { test } from 'node:test'
import { artifactLifecycle } from './artifact.ts'
import { jobLifecycle } from './job.ts'
import {
  edgesOf,
  isFinal,
  isGoodFinal,
  type Lifecycle,
  type Mover,
  movesFrom,
  movesOpenTo,
  statesOf,
  wasExecuted,
} from './lifecycle.ts'
import { lifecycles } from './lifecycles.ts'
import { stageLifecycle } from './stage.ts'
import { taskLifecycle } from './task.ts'

/** The lifecycles of the design, written out by hand, so that a mistake in a table cannot hide. */
interface Promised {
  readonly good: string[]
  readonly mixed: string[]
  readonly bad: string[]
  readonly executed: string[]
  /** `from → to · to`; `⇒` starts a new round. */
  readonly arrows: string
  /** The moves that an operator may request, by state. */
  readonly operator: Record<string, string[]>
}

const promised = new Map<Lifecycle, Promised>([
  [
    taskLifecycle,
    {
      good: ['succeeded', 'skipped'],
      mixed: [],
      bad: ['failed', 'cancelled', 'expired', 'dead_lettered'],
      executed: ['succeeded', 'failed', 'expired', 'dead_lettered'],
      arrows: `
        blocked → queued · skipped · cancelled · expired
        queued → assigned · skipped · cancelled · expired · dead_lettered
        retrying → assigned · skipped · cancelled · expired · dead_lettered
        assigned → running · retrying · failed · cancelled · expired · dead_lettered
        running → succeeded · skipped · failed · cancelled · expired · dead_lettered · retrying
        cancelled ⇒ queued · blocked
        failed ⇒ queued · blocked
        expired ⇒ queued · blocked
        dead_lettered ⇒ queued · blocked
        skipped ⇒ blocked`,
      operator: {
        blocked: ['passOver', 'cancel'],
        queued: ['passOver', 'cancel', 'deadLetter'],
        retrying: ['passOver', 'cancel', 'deadLetter'],
        assigned: ['cancel', 'deadLetter'],
        running: ['cancel', 'deadLetter'],
        cancelled: ['resume'],
        failed: ['retry'],
        expired: ['retry'],
        dead_lettered: ['redrive'],
      },
    },
  ],
  [
    stageLifecycle,
    {
      good: ['succeeded', 'skipped'],
      mixed: ['partial'],
      bad: ['failed', 'cancelled'],
      executed: ['running', 'stopping', 'succeeded', 'partial', 'failed'],
      arrows: `
        created → pending · waiting · failed · skipped · cancelled
        pending → running · waiting · succeeded · partial · failed · skipped · stopping · cancelled
        waiting → pending · running · failed · stopping · cancelled
        running → waiting · succeeded · partial · failed · stopping · cancelled
        stopping → failed · cancelled
        failed ⇒ created
        cancelled ⇒ created
        partial ⇒ created
        skipped ⇒ created`,
      operator: {
        created: ['hold', 'cancel'],
        pending: ['hold', 'cancel'],
        waiting: ['approve', 'reject', 'cancel'],
        running: ['hold', 'cancel'],
        stopping: ['cancel'],
        failed: ['revive'],
        cancelled: ['revive'],
        partial: ['revive'],
      },
    },
  ],
  [
    jobLifecycle,
    {
      good: ['succeeded'],
      mixed: ['partial'],
      bad: ['failed', 'cancelled', 'expired'],
      executed: ['running', 'stopping', 'compensating', 'succeeded', 'partial', 'failed', 'expired'],
      arrows: `
        created → pending · stopping · failed · cancelled · expired
        pending → running · paused · succeeded · partial · stopping · failed · cancelled · expired
        running → paused · succeeded · partial · stopping · failed · cancelled · expired
        paused → pending · running · stopping · failed · cancelled · expired
        stopping → compensating · failed · cancelled · expired
        compensating → failed · cancelled · expired
        failed ⇒ pending
        cancelled ⇒ pending
        expired ⇒ pending
        partial ⇒ pending
        succeeded ⇒ pending`,
      operator: {
        created: ['submit', 'cancel'],
        pending: ['pause', 'cancel'],
        running: ['pause', 'cancel'],
        paused: ['unpause', 'cancel'],
        stopping: ['cancel'],
        compensating: ['cancel'],
        failed: ['revive'],
        cancelled: ['revive'],
        expired: ['revive'],
        partial: ['revive'],
      },
    },
  ],
  [
    artifactLifecycle,
    {
      good: ['stored'],
      mixed: [],
      bad: ['error', 'discarded'],
      executed: ['stored', 'error'],
      arrows: `
        registered → uploaded · error · discarded
        uploaded → stored · error · discarded`,
      operator: {},
    },
  ],
])

test('there are four lifecycles, and each is promised something', () => {
  assert.deepEqual(lifecycles, [...promised.keys()])
})

for (const [table, expected] of promised) {
  const states = statesOf(table)
  const an = table.entity === 'artifact' ? 'an artifact' : `a ${table.entity}`
  const sorted = (words: Iterable<string>) => [...new Set(words)].sort()

  test(`${an} makes the moves of the design, and no others`, () => {
    const made = edgesOf(table).map(({ from, to, opensRound }) => `${from} ${opensRound ? '⇒' : '→'} ${to}`)
    assert.deepEqual(sorted(made), sorted(arrowsOf(expected.arrows)))
  })

  test(`${an} that has ended is known by its state, and whether it ended well`, () => {
    const ends = [...expected.good, ...expected.mixed, ...expected.bad]
    assert.deepEqual(sorted(statesOf(table, 'final')), sorted(ends))
    assert.deepEqual(sorted(states.filter(state => isFinal(table, state))), sorted(ends))
    assert.deepEqual(sorted(states.filter(state => isGoodFinal(table, state))), sorted(expected.good))
    const mixed = states.filter(state => table.states[state]!.outcome === 'mixed')
    assert.deepEqual(sorted(mixed), sorted(expected.mixed))
    assert.deepEqual(sorted(states.filter(state => wasExecuted(table, state))), sorted(expected.executed))
  })

  test(`from every state of ${an} the moves that exist are named, and who may make them`, () => {
    for (const state of states) {
      const moves = movesFrom(table, state)
      assert.deepEqual(sorted(moves), sorted(edgesOf(table).flatMap(edge => (edge.from === state ? [edge.move] : []))))
      assert.deepEqual(movesOpenTo(table, state, 'operator'), expected.operator[state] ?? [], `operator, ${state}`)
      const movers: Mover[] = ['worker', 'operator', 'engine', 'babysitter']
      assert.deepEqual(sorted(movers.flatMap(mover => movesOpenTo(table, state, mover))), sorted(moves))
      for (const mover of movers) {
        for (const move of movesOpenTo(table, state, mover)) assert.ok(table.moves[move]!.by.includes(mover))
      }
    }
  })

  test(`every state and move of ${an} says what it means`, () => {
    for (const { means } of Object.values(table.states)) assert.match(means, /^[A-Z].*\.$/)
    for (const { when } of Object.values(table.moves)) assert.notEqual(when, '')
  })
}

test('nobody can set a task running, succeeded or failed by hand', () => {
  const byHand = edgesOf(taskLifecycle).filter(({ move }) => taskLifecycle.moves[move].by.includes('operator'))
  const reached = new Set<string>(byHand.map(({ to }) => to))
  for (const state of ['assigned', 'running', 'succeeded', 'failed']) assert.ok(!reached.has(state), state)
})

test('a task that succeeded is done for ever', () => {
  assert.deepEqual(movesFrom(taskLifecycle, 'succeeded'), [])
})

function arrowsOf(text: string): string[] {
  return text
    .trim()
    .split('\n')
    .flatMap(line => {
      const [, from, arrow, targets] = /^(\w+) ([→⇒]) (.*)$/.exec(line.trim())!
      return targets!.split(' · ').map(to => `${from} ${arrow} ${to}`)
    })
}
