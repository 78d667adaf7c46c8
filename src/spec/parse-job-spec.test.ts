import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../kernel/problem.ts'
import type { Issue } from './faults.ts'
import type { JobSpec, StageSpec } from './job-spec.ts'
import { parseJobSpec } from './parse-job-spec.ts'

function issuesOf(spec: unknown): Issue[] {
  try {
    parseJobSpec(spec as JobSpec)
  } catch (error) {
    assert.ok(error instanceof Problem && error.code === 'SPEC_INVALID', String(error))
    return error.details.issues as Issue[]
  }
  return []
}

const job = (...stages: StageSpec[]): JobSpec => ({ name: 'job', stages })
const stage = (more: Partial<StageSpec> = {}): StageSpec => ({ name: 'a', task: 't', ...more })
const issuesOfStage = (more: object) => issuesOf({ name: 'job', stages: [stage(more)] })

test('all faults are told at once, each with its place, and the message shows them', () => {
  const spec = {
    nmae: 'job',
    priority: 'high',
    stages: [
      { name: 'extract', task: 't', retry: { attemps: 3 }, tolerate: { percent: 101 } },
      { name: 'classify', task: 't', payload: 1, payloads: [2] },
      { name: 'publish', taks: 't', needs: ['clasify'], gate: { approvers: 0 } },
    ],
  }
  assert.deepEqual(issuesOf(spec), [
    { at: 'nmae', why: "unknown field; did you mean 'name'?", didYouMean: 'name' },
    { at: 'priority', why: 'must be a number' },
    { at: 'stages[0].retry.attemps', why: "unknown field; did you mean 'attempts'?", didYouMean: 'attempts' },
    { at: 'stages[0].tolerate.percent', why: 'must be from 0 to 100' },
    { at: 'stages[2].taks', why: "unknown field; did you mean 'task'?", didYouMean: 'task' },
    { at: 'stages[2].gate.approvers', why: 'must be from 1 to 100' },
    { at: 'name', why: 'is required' },
    {
      at: 'stages[1].payloads',
      why: 'cannot be combined with payload: a stage takes its tasks from only one of them',
    },
    {
      at: 'stages[2].needs',
      why: "no stage has the name 'clasify'; did you mean 'classify'?",
      didYouMean: 'classify',
    },
  ])
  assert.throws(() => parseJobSpec(spec as never), {
    status: 422,
    message: /"at":"nmae","why":"unknown field/,
  })
})

test('a stage that has neither a task nor a reason to go without is refused', () => {
  const without = [{}, { gate: true, payload: 1 }, { open: true, payloads: [1] }, { gate: true, forEach: 'input' }]
  for (const more of without) {
    assert.equal(issuesOfStage({ task: undefined, ...more })[0]?.at, 'stages[0].task', JSON.stringify(more))
  }
})

test('a sealed job must say which stages it has', () => {
  assert.deepEqual(issuesOf({ name: 'job' }), [{ at: 'stages', why: 'is required, unless the job is open' }])
})

test('of very many faults the first fifty are told, and how many more there are', () => {
  const spec = {
    name: 'job',
    stages: Array.from({ length: 5000 }, (_, n) => ({ name: `${n}`, task: 't', needs: ['x'] })),
  }
  assert.throws(
    () => parseJobSpec(spec),
    (error: Problem) => (error.details.issues as Issue[]).length === 50 && error.details.more === 4950,
  )
})

test('what is not a spec at all is refused, not crashed on', () => {
  for (const spec of [undefined, null, 5, true, [], '', 'text', '- a', 'null']) {
    assert.deepEqual(issuesOf(spec), [{ at: 'spec', why: 'must be an object' }], JSON.stringify(spec))
  }
  assert.deepEqual(issuesOf({ name: 'job', stages: {} }), [{ at: 'stages', why: 'must be a list' }])
  assert.equal(issuesOf({ name: 'job', stages: [null, 'a'] })[0]?.at, 'stages[0]')
})

test('values of the wrong type or out of range are refused, where they stand', () => {
  const wrong: [object, string][] = [
    [{ name: 'a'.repeat(201) }, 'name'],
    [{ name: 'a\0b' }, 'name'],
    [{ task: '' }, 'task'],
    [{ needs: 'a' }, 'needs'],
    [{ needs: [5] }, 'needs[0]'],
    [{ join: 'some' }, 'join'],
    [{ open: 'sealed' }, 'open'],
    [{ tolerate: 5 }, 'tolerate'],
    [{ gate: 'yes' }, 'gate'],
    [{ gate: false }, 'gate'],
    [{ parallelism: 0 }, 'parallelism'],
    [{ parallelism: 1.5 }, 'parallelism'],
    [{ compensate: {} }, 'compensate.task'],
    [{ leaseSeconds: 4 }, 'leaseSeconds'],
    [{ timeoutSeconds: Number.NaN }, 'timeoutSeconds'],
    [{ onFailure: 'ignore' }, 'onFailure'],
    [{ metadata: [] }, 'metadata'],
    [{ dedupeSeconds: 5 }, 'dedupeSeconds'],
    [{ run: { command: [] } }, 'run.command'],
  ]
  for (const [more, at] of wrong) {
    const first = issuesOfStage(more)[0]?.at
    assert.equal(first, `stages[0].${at}`, JSON.stringify(more))
  }
})

test('payloads, input and metadata that are not JSON are refused, and which one it is', () => {
  const cycle: Record<string, unknown> = {}
  cycle.self = cycle
  assert.match(issuesOfStage({ payload: cycle })[0]?.why ?? '', /^must be JSON that can be stored: .*circular/)
  assert.equal(issuesOfStage({ payloads: [1, () => {}] })[0]?.at, 'stages[0].payloads[1]')
  assert.equal(issuesOfStage({ payload: { text: 'a\0' } })[0]?.at, 'stages[0].payload')
  assert.equal(issuesOfStage({ metadata: { n: 1n } })[0]?.at, 'stages[0].metadata')
  assert.equal(issuesOf({ name: 'job', input: '\ud800', stages: [] })[0]?.at, 'input')
})

test('bad CEL is refused with its place, and so is one that looks at a stage which it does not wait for', () => {
  assert.deepEqual(issuesOfStage({ when: 'input.n >' }), [
    { at: 'stages[0].when', why: 'must be CEL: Unexpected token: EOF, at character 10' },
  ])
  assert.deepEqual(issuesOfStage({ forEach: '1' }), [
    { at: 'stages[0].forEach', why: 'must be CEL: it returns int, not a list' },
  ])
  const stages = [stage(), stage({ name: 'b' }), stage({ name: 'c', needs: ['a'], when: 'stages.b.output == 1' })]
  const why = "it reads 'b', which is not among the stages before it"
  assert.deepEqual(issuesOf(job(...stages)), [{ at: 'stages[2].when', why }])
  assert.equal(issuesOfStage({ when: 'stages.a.state == "failed"' })[0]?.at, 'stages[0].when', 'nor at itself')
  const chain = [stage(), stage({ name: 'b' }), stage({ name: 'c', when: 'stages.a.state == "skipped"' })]
  assert.deepEqual(issuesOf(job(...chain)), [], 'through another is before it too')
})

test('a spec given as an object is left as it was', () => {
  const spec = job(stage({ needs: [], payload: { n: [1] }, tolerate: { count: 1 } }), stage({ name: 'b' }))
  const before = structuredClone(spec)
  deepFreeze(spec)
  parseJobSpec(spec)
  assert.deepEqual(spec, before)
})

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null) return
  Object.freeze(value)
  for (const inner of Object.values(value)) deepFreeze(inner)
}

const command = (more: Partial<StageSpec> = {}): StageSpec => ({ name: 'a', run: { command: ['x'] }, ...more })

test('a URI that is relative to a file is refused where no file is known, and it is said who would know', () => {
  const inputs = { cross: [{ doc: { uri: 'file:///docs' } }, { model: { uri: 'file://./model' } }] }
  const issues = issuesOf(job(command({ inputs, outputs: 'file://../out' })))
  assert.deepEqual(
    issues.map(({ at }) => at),
    ['stages[0].inputs', 'stages[0].outputs'],
  )
  assert.match(issues[0]!.why, /"model" that must have a "uri" that must be absolute: file:\/\/\.\/model is meant from/)
  assert.match(issues[1]!.why, /must be absolute: file:\/\/\.\.\/out .*`pawl job run FILE` knows/)
})

test('files can be taken only from a stage that is before and says where it puts them out', () => {
  const taking = (stage: string, more: object = {}) =>
    command({ name: 'b', inputs: { union: [{ part: { stage } }, { again: { stage } }] }, ...more })
  const first = command({ outputs: 's3://bucket/a' })
  assert.deepEqual(issuesOf(job(first, taking('a'))), [])
  const at = 'stages[1].inputs'
  assert.deepEqual(issuesOf(job(command(), taking('a'))), [
    { at, why: "'a' has no `outputs`, so it produces no files" },
  ])
  assert.deepEqual(issuesOf(job(first, taking('a', { needs: [] }))), [
    { at, why: "'a' is not among the stages before it" },
  ])
  const odd = issuesOf(job({ ...first, name: 'first' }, taking('frist')))
  assert.deepEqual(odd, [{ at, why: "no stage has the name 'frist'; did you mean 'first'?", didYouMean: 'first' }])
})

test('conditions that are too long together are refused before any of them is parsed', () => {
  const long = `input.a == ${'('.repeat(1500)}1`
  const stages = Array.from({ length: 200 }, (_, index) => ({ name: `s${index}`, task: 't', when: long }))
  assert.throws(() => parseJobSpec({ name: 'j', stages }), {
    code: 'SPEC_INVALID',
    message: /the conditions of all stages have more than 300,000 characters/,
  })
})
