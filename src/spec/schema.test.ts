import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import type { Problem } from '../kernel/problem.ts'
import type { Issue } from './faults.ts'
import { jobSpecSchema } from './job-spec.ts'
import { parseJobSpec } from './parse-job-spec.ts'

const root = join(import.meta.dirname, '../../..')
const published = JSON.parse(readFileSync(join(root, 'docs/job.schema.json'), 'utf8'))
const allows = new Ajv2020({ strict: true, allowUnionTypes: true, strictRequired: false, strictTypes: false }).compile(
  jobSpecSchema(),
)

function isAccepted(spec: unknown): boolean {
  try {
    parseJobSpec(spec as never)
    return true
  } catch {
    return false
  }
}

const stage = (more: object = {}) => ({ name: 'job', stages: [{ name: 'a', task: 't', ...more }] })

const good: unknown[] = [
  stage(),
  { name: 'job', open: true },
  { name: 'job', open: 'untilDone', stages: [] },
  { ...stage(), priority: -5, input: [1], metadata: {}, correlationId: 'c', start: false },
  { ...stage(), deadlineSeconds: 1, staleSeconds: null, softDeadlineSeconds: 0.5, hardDeadlineSeconds: 2 },
  { ...stage(), traceparent: `00-${'0'.repeat(32)}-${'0'.repeat(16)}-00` },
  stage({ payload: null }),
  stage({ payloads: [1, {}, null] }),
  stage({ forEach: 'input.list', when: 'true' }),
  stage({ open: true, queue: 'q', join: 'done', needs: [] }),
  stage({ task: undefined, gives: '{"n": 1}' }),
  stage({ task: undefined, gives: 'input', gate: true, when: 'true' }),
  stage({ gate: true }),
  stage({ gate: { approvers: 2, timeoutSeconds: null, ask: 'Well?' }, task: undefined }),
  stage({ open: 'untilDone', task: undefined }),
  stage({ tolerate: { count: 1, percent: 0.5 }, failFast: false, onFailure: 'continue', parallelism: 3 }),
  stage({ compensate: { task: 'undo', queue: 'q' }, metadata: { a: 1 } }),
  stage({ retry: { losses: null } }),
  stage({ retry: { attempts: 1, losses: 1, delaySeconds: 0, factor: 1, maxSeconds: 0, jitter: false } }),
  stage({ leaseSeconds: 5, heartbeatSeconds: null, timeoutSeconds: 1, graceSeconds: 0, expireInSeconds: null }),
  stage({ keepSeconds: 0, deadLetter: 'never' }),
  stage({ inputs: { doc: { uri: 'file:///docs', glob: '/*' }, 'model.v2': { uri: 's3://bucket' } } }),
  stage({ inputs: { cross: [{ a: { uri: 'file:///a' } }, { union: [{ b: { uri: 's3://b/c/' } }] }] } }),
]

const bad: unknown[] = [
  null,
  [],
  'job',
  {},
  { name: 'job' },
  { name: 'job', open: false },
  { stages: [] },
  { name: '', stages: [] },
  { name: 'a'.repeat(201), stages: [] },
  { name: 'a\0', stages: [] },
  { ...stage(), priority: 1.5 },
  { ...stage(), priority: 2_000_000 },
  { ...stage(), unknown: 1 },
  { ...stage(), deadlineSeconds: 0 },
  { ...stage(), traceparent: 'x' },
  { ...stage(), metadata: [] },
  { ...stage(), open: 'yes' },
  { name: 'job', stages: [null] },
  { name: 'job', stages: [{ task: 't' }] },
  stage({ task: undefined }),
  stage({ task: undefined, open: false }),
  stage({ task: undefined, gate: true, payload: 1 }),
  stage({ task: undefined, open: true, forEach: 'input' }),
  stage({ payload: 1, payloads: [] }),
  stage({ payload: 1, forEach: 'input' }),
  stage({ payloads: [], forEach: 'input' }),
  stage({ payloads: {} }),
  stage({ gives: 'input' }),
  stage({ task: undefined, gives: 'input', payloads: [] }),
  stage({ task: undefined, gives: 'input', open: true }),
  stage({ task: undefined, gives: 7 }),
  stage({ needs: 'a' }),
  stage({ needs: ['b', 'b'] }),
  stage({ join: 'none' }),
  stage({ when: '' }),
  stage({ when: 'a'.repeat(2001) }),
  stage({ gate: false }),
  stage({ gate: { approvers: 0 } }),
  stage({ gate: { aproval: 1 } }),
  stage({ tolerate: { percent: 101 } }),
  stage({ compensate: {} }),
  stage({ retry: { attempts: 0 } }),
  stage({ retry: { unknown: 0 } }),
  stage({ leaseSeconds: null }),
  stage({ parallelism: '4' }),
  stage({ run: {} }),
  stage({ inputs: {} }),
  stage({ inputs: { doc: { uri: 'docs' } } }),
  stage({ inputs: { doc: { uri: 'file:///docs', stage: 'a' } } }),
  stage({ inputs: { doc: { glob: '/*' } } }),
  stage({ inputs: { doc: { uri: 'file:///docs', globb: '/*' } } }),
  stage({ inputs: { out: { uri: 'file:///docs' } } }),
  stage({ inputs: { 'a b': { uri: 'file:///docs' } } }),
  stage({ inputs: { cross: [] } }),
  stage({ inputs: { cross: { a: { uri: 'file:///a' } } } }),
  stage({ inputs: { cross: [{ a: { uri: 'file:///a' } }], b: { uri: 'file:///b' } } }),
]

test('what the schema allows parseJobSpec takes, and what it forbids is refused', () => {
  for (const spec of good) {
    assert.ok(allows(asJson(spec)), JSON.stringify([spec, allows.errors]))
    assert.ok(isAccepted(spec), JSON.stringify(spec))
  }
  for (const spec of bad) {
    assert.ok(!allows(asJson(spec)), JSON.stringify(spec))
    assert.ok(!isAccepted(spec), JSON.stringify(spec))
  }
})

const names = Object.keys((jobSpecSchema().$defs as { stage: { properties: object } }).stage.properties)
const values: unknown[] = [
  null,
  true,
  false,
  0,
  1,
  1.5,
  60,
  -1,
  '',
  'x',
  'input',
  'untilDone',
  'any',
  'continue',
  'never',
]
values.push(
  [],
  [1],
  ['b'],
  {},
  { task: 't' },
  { count: 1 },
  { attempts: 2, jitter: true },
  { approvers: 3 },
  { odd: 1 },
)

test('whatever a stage holds, the schema and parseJobSpec agree, but for graphs and CEL', () => {
  const stages = fc.dictionary(fc.constantFrom(...names, 'odd'), fc.constantFrom(...values), { maxKeys: 5 })
  fc.assert(
    fc.property(stages, fc.boolean(), (more, isWhole) => {
      const spec = { name: 'job', stages: [isWhole ? { task: 't', ...more, name: 'a' } : more] }
      const beyond = faultsBeyondSchema(spec)
      assert.equal(allows(spec), isAccepted(spec) || beyond, JSON.stringify(spec))
    }),
    { numRuns: 3000 },
  )
})

/** Only the graph or the CEL has a fault. */
function faultsBeyondSchema(spec: unknown): boolean {
  try {
    parseJobSpec(spec as never)
    return false
  } catch (error) {
    const issues = (error as Problem).details.issues as Issue[]
    return issues.every(({ why }) => /CEL|no stage has the name|cannot need itself|'any' requires|reads/.test(why))
  }
}

test('the published schema forbids and allows the same', () => {
  const ofFile = new Ajv2020({ strict: false }).compile(published)
  for (const spec of [...good, ...bad]) assert.equal(ofFile(asJson(spec)), allows(asJson(spec)), JSON.stringify(spec))
})

test('the published schema describes every field that is not plain from its name', () => {
  const { properties, $defs } = published
  for (const fields of [properties, $defs.stage.properties]) {
    for (const name of ['name', 'open', 'metadata']) assert.match(fields[name].description, /\.$/, name)
  }
  assert.match($defs.stage.properties.gate.anyOf[1].properties.approvers.description, /approve/)
  assert.match($defs.stage.properties.timeoutSeconds.description, /attempt/)
})

/** JSON and parseJobSpec both ignore fields that are undefined. */
function asJson(spec: unknown): unknown {
  return JSON.parse(JSON.stringify(spec))
}
