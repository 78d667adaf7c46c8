import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nextAct } from '../../test/harness/next-act.ts'
import type { Act, JobFacts, StageFacts } from './advance.ts'
import { isFinal } from './lifecycle.ts'
import { NextActs } from './next-acts.ts'
import type { Join } from './plan.ts'
import { stageLifecycle } from './stage.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }
interface Shape {
  readonly needs: readonly number[]
  readonly join: Join
  readonly total: number
  readonly undoes: boolean
  readonly endsAs: 'failed' | 'skipped' | null
}

function jobWith(shapes: readonly Shape[], facts: Partial<JobFacts>, onRead = () => {}) {
  const job: Mutable<JobFacts> = {
    ...{ state: 'pending', round: 1, open: 'sealed', begun: false, endsAs: null, endsCause: null, compensated: false },
    ...facts,
  }
  const stages = shapes.map(({ needs, join, total, undoes, endsAs }, index): Mutable<StageFacts> => {
    const plan = {
      ...{ name: `${index}`, needsWritten: true, when: null, forEach: null, task: 'a', queue: null, single: false },
      ...{ open: 'sealed', tolerate: {}, failFast: true, onFailure: 'continue', gate: null, parallelism: null },
      ...{ compensate: null, settings: {}, metadata: null, join, needs: needs.map(String) },
    } as StageFacts['plan']
    let busy = false
    return {
      ...{ id: `${index}`, name: `${index}`, kind: undoes ? 'undo' : 'work', state: 'created', open: 'sealed' },
      ...{ total, good: 0, bad: 0, partial: 0, blocked: total, unfanned: 0, badBefore: 0, approvals: 0, undoable: 0 },
      ...{ begun: false, held: false, calledOff: false, endsAs, endsCause: null, opening: null, endedIn: null, plan },
      get busy() {
        onRead()
        return busy
      },
      set busy(now) {
        busy = now
      },
    } as Mutable<StageFacts>
  })
  return { job, stages }
}

/** Applies an act as if tasks ended immediately. */
function done(job: Mutable<JobFacts>, act: Act): StageFacts[] {
  if (act.act === 'move job') job.state = act.to
  else if (act.act === 'intend job') Object.assign(job, { endsAs: act.endsAs, endsCause: act.cause })
  if (!('stage' in act)) return []
  const stage = act.stage as Mutable<StageFacts>
  if (act.act === 'move stage') Object.assign(stage, { state: act.to, endedIn: 1 })
  else if (act.act === 'intend stage') Object.assign(stage, { endsAs: act.endsAs, endsCause: act.cause })
  else if (act.act === 'call off') Object.assign(stage, { calledOff: true, bad: stage.total, blocked: 0 })
  else Object.assign(stage, { good: stage.total, blocked: 0 })
  return [stage]
}

const shape = fc.record({
  needs: fc.uniqueArray(fc.nat(1000), { maxLength: 4 }),
  join: fc.constantFrom<Join>('all', 'any', 'done', 'taken'),
  total: fc.nat(2),
  undoes: fc.boolean(),
  endsAs: fc.constantFrom('failed' as const, 'skipped' as const, null, null),
})
/** A stage may come before the stages that it needs. */
const shapes = fc.array(shape, { minLength: 1, maxLength: 10 }).map(all => {
  const works = all.map(({ undoes }) => !undoes)
  const ranks = all.map((_, index) => (index * 7) % all.length)
  return all.map((each, index) => ({
    ...each,
    needs: [...new Set(each.needs.map(need => need % all.length))].filter(
      need => works[need] && ranks[need]! < ranks[index]!,
    ),
  }))
})

test('a job does the same whether all of its stages are looked at after each act or only those it may concern', () => {
  const states = fc.constantFrom<Partial<JobFacts>>({}, { endsAs: 'cancelled' }, { state: 'compensating' })
  fc.assert(
    fc.property(shapes, states, (all, facts) => {
      const { job, stages } = jobWith(all, facts)
      const acts = new NextActs(job, stages)
      let changed: StageFacts[] = []
      for (let count = 0; count < 1000; count++) {
        const wanted = nextAct(job, stages)
        const act = acts.ofStages(changed) ?? acts.ofJob()
        assert.deepEqual(act, wanted)
        if (act === undefined || act.act === 'plan undoing') return
        changed = done(job, act)
      }
      throw new Error('it never rests')
    }),
    { numRuns: 1000 },
  )
})

const length = 2000
const all = Array.from({ length }, (_, index) => index)
const plain = { join: 'all' as const, total: 1, undoes: false, endsAs: null }
const graphs: Record<string, readonly Shape[]> = {
  'that do not need each other': all.map(() => ({ ...plain, needs: [] })),
  'each of which needs the one before': all.map(index => ({ ...plain, needs: index === 0 ? [] : [index - 1] })),
  'each of which needs the one behind it': all.map(index => ({
    ...plain,
    needs: index === length - 1 ? [] : [index + 1],
  })),
  'the first of which needs all others': all.map(index => ({ ...plain, needs: index === 0 ? all.slice(1) : [] })),
}
for (const [title, graph] of Object.entries(graphs)) {
  test(`2,000 stages ${title} are driven to their end with a few looks at each`, () => {
    let reads = 0
    const { job, stages } = jobWith(graph, {}, () => {
      reads += 1
    })
    const acts = new NextActs(job, stages)
    let changed: StageFacts[] = []
    for (;;) {
      const act = acts.ofStages(changed) ?? acts.ofJob()
      if (act === undefined) break
      changed = done(job, act)
    }
    assert.ok(stages.every(({ state }) => isFinal(stageLifecycle, state)))
    assert.equal(job.state, 'succeeded')
    assert.ok(reads <= 10 * length, `${reads} looks`)
  })
}
