import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nextAct } from '../../test/harness/next-act.ts'
import type { Act, JobFacts, StageFacts } from './advance.ts'
import { jobLifecycle } from './job.ts'
import { edgesOf, isFinal, statesOf } from './lifecycle.ts'
import { stageLifecycle } from './stage.ts'

const plainPlan: StageFacts['plan'] = {
  name: 'a',
  needs: [],
  needsWritten: true,
  join: 'all',
  when: null,
  forEach: null,
  task: 'a',
  queue: null,
  single: false,
  open: 'sealed',
  tolerate: {},
  failFast: true,
  onFailure: 'fail',
  gate: null,
  parallelism: null,
  compensate: null,
  settings: {},
  metadata: null,
}

type Facts = Partial<Omit<StageFacts, 'plan'>> & { plan?: Partial<StageFacts['plan']> }

function stage({ plan, ...facts }: Facts = {}): StageFacts {
  const name = facts.name ?? 'a'
  return {
    id: name,
    name,
    kind: 'work',
    state: 'pending',
    plan: { ...plainPlan, ...plan, name },
    open: 'sealed',
    ...{ total: 0, good: 0, bad: 0, partial: 0, blocked: 0, unfanned: 0, badBefore: 0, approvals: 0, undoable: 0 },
    ...{ begun: false, held: false, busy: false, calledOff: false },
    ...{ endedIn: 1, endsAs: null, endsCause: null, opening: null },
    ...facts,
  }
}

function job(facts: Partial<JobFacts> = {}): JobFacts {
  const still = { endsAs: null, endsCause: null, compensated: false }
  return { state: 'running', round: 1, open: 'sealed', begun: true, ...still, ...facts }
}

/** Formats an act: `a → running`, `a ends as failed`, `job → failed`. */
function describe(act: Act | undefined): string {
  if (act === undefined) return 'nothing'
  switch (act.act) {
    case 'move stage':
      return `${act.stage.name} → ${act.to}`
    case 'intend stage':
      return `${act.stage.name} ends as ${act.endsAs}: ${act.cause}`
    case 'intend job':
      return `job ends as ${act.endsAs}: ${act.cause}`
    case 'move job':
      return `job → ${act.to}`
    case 'plan undoing':
      return act.act
    default:
      return `${act.act} ${act.stage.name}`
  }
}

const next = (jobFacts: Partial<JobFacts>, ...stages: Facts[]) => describe(nextAct(job(jobFacts), stages.map(stage)))

test('an ended job does nothing more, whatever its stages are', () => {
  for (const state of statesOf(jobLifecycle, 'final')) {
    for (const of of statesOf(stageLifecycle)) assert.equal(next({ state }, { state: of, total: 2, bad: 2 }), 'nothing')
  }
})

test('a job that was not started opens nothing', () => {
  assert.equal(next({ state: 'created', begun: false }, { state: 'created', total: 1, blocked: 1 }), 'nothing')
  assert.equal(next({ state: 'created', begun: false }), 'nothing')
})

test('a stage ends when its tasks have and it may: sealed at once, open never, untilDone once it has had one', () => {
  const rows = [
    ['sealed', 0, 'a → succeeded'],
    ['sealed', 2, 'a → succeeded'],
    ['open', 0, 'nothing'],
    ['open', 2, 'nothing'],
    ['untilDone', 0, 'nothing'],
    ['untilDone', 2, 'a → succeeded'],
  ] as const
  for (const [open, total, act] of rows) assert.equal(next({}, { open, total, good: total }), act, `${open} ${total}`)
})

test('a job ends when its stages have and it may: sealed at once, open never, untilDone once it has had one', () => {
  const rows = [
    ['sealed', 0, 'job → succeeded'],
    ['sealed', 1, 'job → succeeded'],
    ['open', 0, 'nothing'],
    ['open', 1, 'nothing'],
    ['untilDone', 0, 'nothing'],
    ['untilDone', 1, 'job → succeeded'],
  ] as const
  for (const [open, count, act] of rows) {
    const stages = Array.from({ length: count }, () => ({ state: 'succeeded' as const }))
    assert.equal(next({ open }, ...stages), act, `${open} ${count}`)
  }
})

test('a stage stops as soon as more is bad, in this round, than it tolerates of the tasks it has', () => {
  const stops = 'a ends as failed: too_many_bad'
  const rows: [Facts, string][] = [
    [{ total: 3, bad: 1 }, stops],
    [{ total: 3, bad: 1, plan: { failFast: false } }, 'nothing'],
    [{ total: 3, bad: 1, plan: { tolerate: { count: 1 } } }, 'nothing'],
    [{ total: 3, bad: 2, plan: { tolerate: { count: 1 } } }, stops],
    [{ total: 10, bad: 2, plan: { tolerate: { percent: 20 } } }, 'nothing'],
    [{ total: 9, bad: 2, plan: { tolerate: { percent: 20 } } }, stops],
    [{ total: 4, bad: 2, badBefore: 2 }, 'nothing'],
    [{ total: 4, bad: 3, badBefore: 2 }, stops],
    // Once all stages have ended, failures of earlier rounds count too.
    [{ total: 3, bad: 2, good: 1, badBefore: 2 }, 'a → failed'],
    [{ total: 3, bad: 2, good: 1, badBefore: 2, plan: { tolerate: { count: 2 } } }, 'a → partial'],
  ]
  for (const [facts, act] of rows) {
    assert.equal(next({}, { state: 'running', begun: true, ...facts }), act, JSON.stringify(facts))
  }
})

test('what is decided is carried out in order: open tasks are called off, the stage stops, and ends with the last', () => {
  const failing = { state: 'running', begun: true, total: 3, endsAs: 'failed' } as const
  assert.equal(next({}, { ...failing, bad: 1 }), 'call off a')
  assert.equal(next({}, { ...failing, bad: 2, calledOff: true }), 'a → stopping')
  assert.equal(next({}, { ...failing, bad: 2, calledOff: true, state: 'stopping' }), 'nothing')
  assert.equal(next({}, { ...failing, bad: 3, calledOff: true, state: 'stopping' }), 'a → failed')
  assert.equal(next({}, { ...failing, bad: 3, calledOff: true }), 'a → failed', 'stopping is passed over')
})

test('a held stage goes nowhere until it is approved; then it runs if a task had started', () => {
  const waiting = { state: 'waiting', total: 2, good: 2 } as const
  assert.equal(next({}, { ...waiting, held: true }), 'nothing')
  assert.equal(next({}, waiting), 'a → pending')
  assert.equal(next({}, { ...waiting, begun: true }), 'a → running')
  assert.equal(next({}, { state: 'running', begun: true, held: true, total: 1, good: 1 }), 'a → waiting')
  assert.equal(next({}, { ...waiting, held: true, endsAs: 'failed' }), 'a → failed')
})

test('a gate is asked after the needs and the condition, and opens with its last approver', () => {
  const gate = { approvers: 2, timeoutSeconds: null, ask: null }
  const gated = { state: 'created', name: 'b', plan: { needs: ['a'], gate, when: 'true' } } as const
  const after = (a: Facts, b: Facts) => next({}, { name: 'a', ...a }, { ...gated, ...b })
  assert.equal(after({ total: 1 }, {}), 'nothing')
  assert.equal(after({ state: 'succeeded' }, {}), 'evaluate b')
  assert.equal(after({ state: 'succeeded' }, { opening: 'no' }), 'b ends as skipped: condition_false')
  assert.equal(after({ state: 'succeeded' }, { opening: 'error' }), 'b ends as failed: condition_error')
  assert.equal(after({ state: 'succeeded' }, { opening: 'yes' }), 'b → waiting')
  assert.equal(after({ state: 'succeeded' }, { opening: 'yes', state: 'waiting', approvals: 1 }), 'nothing')
  assert.equal(after({ state: 'succeeded' }, { opening: 'yes', state: 'waiting', approvals: 2 }), 'b → pending')
})

test('a paused job stays paused when its stages have ended well, and stops when one that matters has not', () => {
  assert.equal(next({ state: 'paused' }, { state: 'succeeded' }), 'nothing')
  assert.equal(next({ state: 'paused' }, { state: 'failed', plan: { onFailure: 'continue' } }), 'nothing')
  assert.equal(next({ state: 'paused' }, { state: 'failed' }), 'job ends as failed: stage a failed')
})

test('a stage that went bad in an earlier round does not stop this one, and counts when all have ended', () => {
  const again = { round: 2 }
  const old: Facts = { state: 'failed', endedIn: 1 }
  const beside: Facts = { name: 'b', state: 'running', begun: true, total: 1 }
  assert.equal(next(again, old, beside), 'nothing')
  assert.equal(next(again, { ...old, endedIn: 2 }, beside), 'job ends as failed: stage a failed')
  assert.match(next(again, old, { ...beside, state: 'succeeded', good: 1 }), /^job ends as failed/)
})

test('a job whose end is decided stops its stages, undoes what it did, and ends so', () => {
  const ending = { endsAs: 'cancelled', endsCause: 'cancel' } as const
  const done: Facts = { state: 'succeeded', undoable: 1, plan: { compensate: { task: 'u', queue: null } } }
  const undo: Facts = { name: 'u', kind: 'undo', state: 'created', total: 1, unfanned: 1 }
  assert.equal(next(ending, done, { name: 'b', total: 1 }), 'b ends as cancelled: cancel')
  assert.equal(next(ending, done), 'job → stopping')
  assert.equal(next({ ...ending, state: 'stopping' }, done), 'plan undoing')
  assert.equal(next({ ...ending, state: 'stopping' }, done, undo), 'job → compensating')
  assert.equal(next({ ...ending, state: 'compensating' }, done, undo), 'u → pending')
  assert.equal(next({ ...ending, state: 'compensating' }, done, { ...undo, state: 'pending', unfanned: 0 }), 'nothing')
  assert.equal(next({ ...ending, state: 'compensating' }, done, { ...undo, state: 'failed' }), 'job → cancelled')
  assert.equal(next(ending, { ...done, undoable: 0 }), 'job → cancelled', 'both are passed over')
})

test('undoing goes one stage at a time, and goes on though one of them failed', () => {
  const at: Partial<JobFacts> = { state: 'compensating', endsAs: 'failed' }
  const done: Facts = { state: 'succeeded', undoable: 1, plan: { compensate: { task: 'u', queue: null } } }
  const undo = (name: string, state: StageFacts['state']): Facts => ({ name, kind: 'undo', state, total: 1 })
  assert.equal(next(at, done, undo('second', 'running'), undo('first', 'created')), 'nothing')
  assert.equal(next(at, done, undo('second', 'failed'), undo('first', 'created')), 'first → pending')
})

const legal = {
  stage: new Set(edgesOf(stageLifecycle).map(({ from, to }) => `${from} ${to}`)),
  job: new Set(edgesOf(jobLifecycle).map(({ from, to }) => `${from} ${to}`)),
}

type Fact<T> = { -readonly [K in keyof T]: T[K] }

/** Applies an act like the engine; `inHand` tasks of each stage are held and cannot be cancelled. */
function perform(act: Act, facts: Fact<JobFacts>, inHand: number): void {
  if (act.act === 'move job') {
    assert.ok(legal.job.has(`${facts.state} ${act.to}`), `job ${facts.state} → ${act.to}`)
    facts.state = act.to
  } else if (act.act === 'intend job') Object.assign(facts, { endsAs: act.endsAs, endsCause: act.cause })
  else if (act.act !== 'plan undoing') performOn(act, act.stage as Fact<StageFacts>, inHand)
}

function performOn(
  act: Exclude<Act, { act: 'move job' | 'intend job' | 'plan undoing' }>,
  on: Fact<StageFacts>,
  inHand: number,
) {
  const left = on.total - on.good - on.bad
  switch (act.act) {
    case 'move stage':
      assert.ok(legal.stage.has(`${on.state} ${act.to}`), `stage ${on.state} → ${act.to}`)
      on.state = act.to
      if (isFinal(stageLifecycle, act.to)) on.endedIn = 1
      return
    case 'intend stage':
      Object.assign(on, { endsAs: act.endsAs, endsCause: act.cause, total: on.total - on.unfanned, unfanned: 0 })
      return
    case 'evaluate':
      on.opening = 'yes'
      return
    case 'release':
      on.blocked = 0
      return
    case 'fan out':
      on.unfanned = 0
      return
    case 'pass over':
      Object.assign(on, { good: on.good + left, blocked: 0 })
      return
    case 'call off':
      Object.assign(on, { bad: on.bad + Math.max(0, left - inHand), calledOff: true, blocked: 0 })
  }
}

const stageFacts = fc.record({
  state: fc.constantFrom('created' as const, 'pending' as const, 'running' as const, 'waiting' as const),
  counts: fc.tuple(fc.nat(3), fc.nat(3), fc.nat(3)),
  held: fc.boolean(),
  begun: fc.boolean(),
  open: fc.constantFrom('sealed' as const, 'open' as const, 'untilDone' as const),
  endsAs: fc.constantFrom(null, 'failed' as const, 'cancelled' as const),
  opening: fc.constantFrom(null, 'yes' as const, 'no' as const, 'error' as const),
  needs: fc.boolean(),
  when: fc.constantFrom(null, 'true'),
  gate: fc.constantFrom(null, { approvers: 1, timeoutSeconds: null, ask: null }),
  join: fc.constantFrom('all' as const, 'any' as const, 'done' as const),
  onFailure: fc.constantFrom('fail' as const, 'failAtOnce' as const, 'continue' as const),
  failFast: fc.boolean(),
})

test('from wherever it is, a job comes to rest by legal moves, and no child is open under an ended parent', () => {
  const jobState = fc.constantFrom('pending' as const, 'running' as const, 'paused' as const)
  const ends = fc.constantFrom(null, 'failed' as const, 'cancelled' as const, 'expired' as const)
  const mostInHand = fc.nat(2)
  fc.assert(
    fc.property(jobState, ends, fc.array(stageFacts, { maxLength: 4 }), mostInHand, (state, endsAs, made, inHand) => {
      const facts: Fact<JobFacts> = job({ state, endsAs, begun: state === 'running' })
      const stages = made.map(
        ({ counts: [good, bad, left], needs, when, gate, join, onFailure, failFast, ...of }, n) => {
          const isFirst = n === 0
          const plan = { needs: needs && !isFirst ? [`s${n - 1}`] : [], when, gate, onFailure, failFast, join }
          const before = of.state === 'created'
          const counts = before ? { total: left, blocked: left } : { total: good + bad + left, good, bad }
          const begun = of.state === 'running' || (of.begun && !before)
          return stage({ ...of, name: `s${n}`, plan, ...counts, begun }) as Fact<StageFacts>
        },
      )
      let acts = 0
      for (let act = nextAct(facts, stages); act !== undefined; act = nextAct(facts, stages)) {
        acts += 1
        assert.ok(acts < 200, `it does not come to rest: ${describe(act)}`)
        perform(act, facts, inHand)
        for (const each of stages) {
          const left = each.total - each.good - each.bad
          if (isFinal(stageLifecycle, each.state)) assert.equal(left, 0, 'a task is open under an ended stage')
          if (isFinal(jobLifecycle, facts.state)) assert.ok(isFinal(stageLifecycle, each.state), 'a stage is open')
        }
      }
      // Everything that was decided is done, except for running work.
      const isInHand = stages.some(each => each.total > each.good + each.bad)
      if (endsAs !== null && !isInHand) assert.equal(facts.state, endsAs)
    }),
    { numRuns: 5000 },
  )
})
