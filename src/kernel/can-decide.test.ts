import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { nextAct } from '../../test/harness/next-act.ts'
import type { JobFacts, StageFacts } from './advance.ts'
import { isFinal } from './lifecycle.ts'
import { canDecide } from './next-acts.ts'
import type { Join, OnFailure } from './plan.ts'
import { stageLifecycle } from './stage.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

class World {
  readonly job: Mutable<JobFacts> = {
    ...{ state: 'pending', round: 1, open: 'sealed', begun: false, endsAs: null, endsCause: null, compensated: false },
  }
  readonly stages: Mutable<StageFacts>[]

  constructor(shapes: readonly Shape[]) {
    this.stages = shapes.map(({ needs, join, onFailure, isConditional, total }, index) => ({
      ...{ id: `${index}`, name: `${index}`, kind: 'work', state: 'created', open: 'sealed', endedIn: null },
      ...{ total, good: 0, bad: 0, partial: 0, blocked: total, unfanned: 0, badBefore: 0, approvals: 0, undoable: 0 },
      ...{ begun: false, held: false, busy: false, calledOff: false, endsAs: null, endsCause: null, opening: null },
      plan: {
        ...{
          name: `${index}`,
          needsWritten: true,
          forEach: null,
          task: 'a',
          queue: null,
          single: false,
          open: 'sealed',
        },
        ...{
          tolerate: {},
          failFast: true,
          gate: null,
          parallelism: null,
          compensate: null,
          settings: {},
          metadata: null,
        },
        ...{ join, onFailure, when: isConditional ? 'false' : null, needs: needs.map(String) },
      },
    }))
  }

  readonly neededBy = (name: string) =>
    this.stages.filter(({ plan }) => plan.needs.includes(name)).map(stage => stage.name)

  readonly #watched = new Map<string, string>()
  readonly waitsFor = (name: string) => this.#watched.get(name)

  /** Records for each stage the last of its needs that has not ended. */
  watch(): void {
    this.#watched.clear()
    for (const { name, state, plan } of this.stages) {
      const isOpen = (need: string) => !isFinal(stageLifecycle, this.stages[Number(need)]!.state)
      const last = plan.needs.findLast(isOpen)
      if (state === 'created' && plan.join !== 'any' && last !== undefined) this.#watched.set(name, last)
    }
  }

  /** The stage, its dependents, and their needs. For dependents that are waiting, only the stage that they wait for. */
  near(stage: StageFacts): StageFacts[] {
    const next = this.neededBy(stage.name)
    const needs = next.flatMap(name => {
      const watched = this.#watched.get(name)
      return watched === undefined ? [name, ...this.stages[Number(name)]!.plan.needs] : [watched]
    })
    const names = new Set([stage.name, ...needs])
    return this.stages.filter(({ name }) => names.has(name))
  }

  /** Drives the job until it rests. Returns how often the whole job had to be read: at most once. */
  drive(seen: readonly StageFacts[]): number {
    let known = seen
    let reads = 0
    for (let acts = 0; acts < 1000; acts++) {
      if (known !== this.stages && !canDecide(this.job, known, this)) {
        known = this.stages
        reads += 1
      }
      const act = nextAct(this.job, known)
      if (act === undefined) return reads
      if (act.act === 'move job') this.job.state = act.to
      else if (act.act === 'intend job') Object.assign(this.job, { endsAs: act.endsAs, endsCause: act.cause })
      else if (act.act !== 'plan undoing') Object.assign(act.stage, this.#changeOf(act))
    }
    throw new Error('it never rests')
  }

  #changeOf(act: Extract<ReturnType<typeof nextAct>, { stage: StageFacts }>): Partial<StageFacts> {
    switch (act.act) {
      case 'move stage':
        return { state: act.to, endedIn: isFinal(stageLifecycle, act.to) ? 1 : null }
      case 'intend stage':
        return { endsAs: act.endsAs, endsCause: act.cause }
      case 'evaluate':
        return { opening: Number(act.stage.name) % 2 === 0 ? 'yes' : 'no' }
      case 'release':
        return { blocked: 0 }
      case 'pass over':
        return { good: act.stage.total, blocked: 0 }
      case 'call off':
        return act.stage.begun ? { calledOff: true } : { calledOff: true, bad: act.stage.total, blocked: 0 }
      default:
        return {}
    }
  }
}

interface Shape {
  readonly needs: readonly number[]
  readonly join: Join
  readonly onFailure: OnFailure
  /** The tasks of a stage: one of two may go bad while the other is held. */
  readonly total: number
  readonly isConditional: boolean
}

const shape = fc.record({
  needs: fc.uniqueArray(fc.nat(1000), { maxLength: 3 }),
  join: fc.constantFrom<Join>('all', 'any', 'done'),
  onFailure: fc.constantFrom<OnFailure>('fail', 'failAtOnce', 'continue'),
  total: fc.constantFrom(1, 2),
  isConditional: fc.boolean(),
})
const shapes = fc.array(shape, { minLength: 1, maxLength: 12 }).map(all =>
  all.map((each, index) => ({
    ...each,
    needs: index === 0 ? [] : [...new Set(each.needs.map(need => need % index))],
  })),
)
/** The next events: which open stage, and which event. */
const happenings = fc.array(fc.tuple(fc.nat(1000), fc.constantFrom('starts', 'ends well', 'ends badly')), {
  maxLength: 40,
})

test('a long job that is read only in part does the same as one that is read whole', () => {
  fc.assert(
    fc.property(shapes, happenings, (all, happened) => {
      const whole = new World(all)
      const inPart = new World(all)
      whole.drive(whole.stages)
      inPart.drive(inPart.stages)
      inPart.watch()
      for (const [which, what] of happened) {
        const isOpen = ({ state }: StageFacts) => state === 'pending' || state === 'running' || state === 'stopping'
        const open = whole.stages.filter(isOpen)
        if (open.length === 0) break
        const { name } = open[which % open.length]!
        for (const world of [whole, inPart]) {
          const stage = world.stages.find(each => each.name === name)!
          const counts = what === 'ends well' ? { good: 1 } : what === 'ends badly' ? { bad: 1 } : {}
          Object.assign(stage, counts, { begun: true })
          world.job.begun = true
          const reads = world.drive(world === whole ? whole.stages : inPart.near(stage))
          // Once the whole job has been read, the open need of each waiting stage is known.
          if (reads > 0) world.watch()
        }
        assert.deepEqual(inPart.stages, whole.stages)
        assert.deepEqual(inPart.job, whole.job)
      }
    }),
    { numRuns: 500 },
  )
})

test('a stage that needs many is read with the last of them only, while that has not ended', () => {
  const length = 30
  const plain = { join: 'all', onFailure: 'fail', isConditional: false, total: 1 } as const
  const needs = Array.from({ length: length - 1 }, (_, index) => index)
  const fan = new World([...needs.map(() => ({ ...plain, needs: [] })), { ...plain, needs }])
  fan.drive(fan.stages)
  fan.watch()
  const reads = fan.stages.map(stage => {
    Object.assign(stage, { good: 1, begun: true })
    fan.job.begun = true
    const near = fan.near(stage)
    assert.ok(near.length <= 2)
    return fan.drive(near)
  })
  assert.deepEqual(reads, [...Array(length - 2).fill(0), 1, 1])
  assert.equal(fan.job.state, 'succeeded')
})

test('of a chain, whoever ends a stage needs to know only of the next one, until the last', () => {
  const length = 30
  const chain = new World(
    Array.from({ length }, (_, index) => ({
      needs: index === 0 ? [] : [index - 1],
      join: 'all',
      onFailure: 'fail',
      isConditional: false,
      total: 1,
    })),
  )
  chain.drive(chain.stages)
  const reads = chain.stages.map(stage => {
    Object.assign(stage, { good: 1, begun: true })
    chain.job.begun = true
    return chain.drive(chain.near(stage))
  })
  assert.deepEqual(reads, [...Array(length - 1).fill(0), 1])
  assert.equal(chain.job.state, 'succeeded')
})
