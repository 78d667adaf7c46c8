import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Problem } from '../kernel/problem.ts'
import type { Issue } from './faults.ts'
import type { JobSpec, StageSpec } from './job-spec.ts'
import { parseJobSpec } from './parse-job-spec.ts'

function issuesOf(stages: readonly Partial<StageSpec>[]): Issue[] {
  const spec = { name: 'job', stages: stages.map(stage => ({ task: 't', ...stage })) } as JobSpec
  try {
    parseJobSpec(spec)
    return []
  } catch (error) {
    return (error as Problem).details.issues as Issue[]
  }
}

/** A random graph without cycles, in random order: each stage needs only stages that were drawn earlier. */
const graphs = fc
  .array(fc.array(fc.nat(), { maxLength: 4 }), { minLength: 2, maxLength: 30 })
  .map(draws =>
    draws.map((picks, index): StageSpec & { needs: string[] } => {
      const needs = index === 0 ? [] : [...new Set(picks.map(pick => `s${pick % index}`))]
      return { name: `s${index}`, task: 't', needs }
    }),
  )
  .chain(stages => fc.shuffledSubarray(stages, { minLength: stages.length }))

test('any graph without a cycle is accepted, in whichever order its stages stand', () => {
  fc.assert(
    fc.property(graphs, stages => {
      const plan = parseJobSpec({ name: 'job', stages })
      assert.deepEqual(
        plan.stages.map(({ needs }) => needs),
        stages.map(({ needs }) => needs),
      )
    }),
  )
})

test('a graph that any edge back makes a circle is refused, and the circle that is named exists', () => {
  fc.assert(
    fc.property(graphs, fc.nat(), (stages, pick) => {
      const needsOf = (name: string) => stages.find(stage => stage.name === name)!.needs
      const above = (name: string): string[] => needsOf(name).flatMap(need => [need, ...above(need)])
      const withAbove = stages.filter(({ needs }) => needs.length > 0)
      fc.pre(withAbove.length > 0)
      const below = withAbove[pick % withAbove.length]!
      const ancestors = [...new Set(above(below.name))]
      const ancestor = ancestors[pick % ancestors.length]!
      needsOf(ancestor).push(below.name)

      const [issue] = issuesOf(stages)
      const circle = /cycle: (.*)$/.exec(issue?.why ?? '')![1]!.split(' → ')
      assert.equal(circle[0], circle.at(-1))
      for (const [place, name] of circle.slice(1).entries()) {
        if (name !== '…' && circle[place] !== '…') assert.ok(needsOf(name).includes(circle[place]!), issue?.why)
      }
    }),
  )
})

test('a condition may look at every stage above it, and at no other', () => {
  fc.assert(
    fc.property(graphs, fc.nat(), fc.nat(), (stages, one, other) => {
      const seer = stages[one % stages.length]!
      const seen = stages[other % stages.length]!
      const needsOf = (name: string) => stages.find(stage => stage.name === name)!.needs
      const isAbove = (name: string): boolean => needsOf(name).some(need => need === seen.name || isAbove(need))
      const written = stages.map(stage => (stage === seer ? { ...stage, when: `stages.${seen.name}.output` } : stage))
      assert.equal(issuesOf(written).length, isAbove(seer.name) ? 0 : 1)
    }),
  )
})

test('a circle is named in the order in which its stages would run', () => {
  const circle = issuesOf([
    { name: 'a', needs: ['c'] },
    { name: 'b', needs: ['a'] },
    { name: 'c', needs: ['b'] },
    { name: 'd', needs: ['c'] },
  ])
  assert.deepEqual(circle, [{ at: 'stages[0].needs', why: 'the stages form a cycle: a → b → c → a' }])
})

test('a circle that the mere order of the list closes says how to open it', () => {
  const [issue] = issuesOf([{ name: 'a', needs: ['b'] }, { name: 'b' }])
  assert.match(
    issue?.why ?? '',
    /a → b → a; by default, a stage needs the one before it; write needs: \[\] if it needs none/,
  )
})

test('names that stand twice, needs that nobody has, and a need of oneself are refused', () => {
  assert.deepEqual(issuesOf([{ name: 'a' }, { name: 'b' }, { name: 'a' }]), [
    { at: 'stages[2].name', why: "stages[0] already has the name 'a'" },
  ])
  assert.deepEqual(issuesOf([{ name: 'a' }, { name: 'b', needs: ['a', 'a'] }]), [
    { at: 'stages[1].needs', why: "'a' is listed twice" },
  ])
  assert.deepEqual(issuesOf([{ name: 'a', needs: ['a'] }]), [{ at: 'stages[0].needs', why: "'a' cannot need itself" }])
  assert.deepEqual(issuesOf([{ name: 'a', needs: ['nothing like it'] }]), [
    { at: 'stages[0].needs', why: "no stage has the name 'nothing like it'" },
  ])
})

test('a stage that waits for any of no stages is refused', () => {
  for (const stage of [
    { name: 'a', join: 'any' as const },
    { name: 'a', join: 'any' as const, needs: [] },
  ]) {
    assert.equal(issuesOf([stage])[0]?.at, 'stages[0].join')
  }
  assert.deepEqual(issuesOf([{ name: 'a' }, { name: 'b', join: 'any' }]), [], 'the one before it is one')
})

test('a job of 10,000 stages, one after another, is taken; one more is not', () => {
  const stages = Array.from({ length: 10_000 }, (_, n) => ({
    name: `s${n}`,
    when: n > 0 ? 'stages.s0.output' : 'true',
  }))
  assert.deepEqual(issuesOf(stages), [])
  const tooMany = issuesOf([...stages, { name: 's0' }])
  assert.deepEqual(tooMany, [{ at: 'stages', why: 'must have at most 10000 elements, not 10001' }])
  const [circle] = issuesOf([{ ...stages[0], needs: ['s9999'] }, ...stages.slice(1)])
  assert.match(circle?.why ?? '', /s0 → s1 → .* → … → s0/)
})
