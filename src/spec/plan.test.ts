import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec, StageSpec } from './job-spec.ts'
import { parseJobSpec } from './parse-job-spec.ts'

const job = (...stages: StageSpec[]): JobSpec => ({ name: 'job', stages })
const stage = (more: Partial<StageSpec> = {}): StageSpec => ({ name: 'a', task: 't', ...more })

test('a spec that says no more than it must gets every default', () => {
  assert.deepEqual(parseJobSpec(job({ name: 'a', task: 't' })), {
    name: 'job',
    priority: 0,
    input: null,
    metadata: null,
    correlationId: null,
    traceparent: null,
    start: true,
    open: 'sealed',
    deadlineSeconds: null,
    staleSeconds: null,
    softDeadlineSeconds: null,
    hardDeadlineSeconds: null,
    stages: [
      {
        name: 'a',
        needs: [],
        needsWritten: false,
        join: 'all',
        when: null,
        forEach: null,
        task: 't',
        queue: null,
        payloads: [null],
        single: true,
        open: 'sealed',
        tolerate: {},
        failFast: true,
        onFailure: 'fail',
        gate: null,
        parallelism: null,
        compensate: null,
        settings: {},
        metadata: null,
      },
    ],
  })
})

test('what is written is in the plan as it was written', () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const plan = parseJobSpec({
    name: 'job',
    priority: 7,
    input: { n: 1 },
    metadata: { team: 'x' },
    correlationId: 'c',
    traceparent,
    start: false,
    open: 'untilDone',
    deadlineSeconds: 10,
    staleSeconds: 20,
    softDeadlineSeconds: 30,
    hardDeadlineSeconds: 40,
    stages: [
      stage({
        join: 'done',
        when: 'input.n == 1',
        queue: 'q',
        open: true,
        tolerate: { percent: 5 },
        failFast: false,
        onFailure: 'continue',
        gate: { approvers: 2, ask: 'Well?' },
        parallelism: 4,
        compensate: { task: 'undo' },
        retry: { attempts: 5, jitter: false },
        leaseSeconds: 30,
        heartbeatSeconds: null,
        deadLetter: 'never',
        metadata: { colour: 'red' },
      }),
    ],
  })
  const { stages, ...top } = plan
  assert.deepEqual(top, {
    name: 'job',
    priority: 7,
    input: { n: 1 },
    metadata: { team: 'x' },
    correlationId: 'c',
    traceparent,
    start: false,
    open: 'untilDone',
    deadlineSeconds: 10,
    staleSeconds: 20,
    softDeadlineSeconds: 30,
    hardDeadlineSeconds: 40,
  })
  assert.deepEqual(stages[0], {
    name: 'a',
    needs: [],
    needsWritten: false,
    join: 'done',
    when: 'input.n == 1',
    forEach: null,
    task: 't',
    queue: 'q',
    payloads: [],
    single: false,
    open: 'open',
    tolerate: { percent: 5 },
    failFast: false,
    onFailure: 'continue',
    gate: { approvers: 2, timeoutSeconds: null, ask: 'Well?' },
    parallelism: 4,
    compensate: { task: 'undo', queue: null },
    settings: { attempts: 5, jitter: false, leaseSeconds: 30, heartbeatSeconds: null, deadLetter: 'never' },
    metadata: { colour: 'red' },
  })
})

test('one payload is one task; a list is a list, also of one; forEach and open stages begin with none', () => {
  const tasks = (more: Partial<StageSpec>) => {
    const { payloads, single } = parseJobSpec(job(stage(more))).stages[0]!
    return { payloads, single }
  }
  assert.deepEqual(tasks({ payload: { n: 1 } }), { payloads: [{ n: 1 }], single: true })
  assert.deepEqual(tasks({ payload: null }), { payloads: [null], single: true })
  assert.deepEqual(tasks({ payloads: ['one'] }), { payloads: ['one'], single: false })
  assert.deepEqual(tasks({ payloads: [] }), { payloads: [], single: false })
  assert.deepEqual(tasks({ forEach: 'input' }), { payloads: [], single: false })
  assert.deepEqual(tasks({ open: 'untilDone' }), { payloads: [], single: false })
  assert.deepEqual(tasks({ open: true, payload: 1 }), { payloads: [1], single: true })
  assert.deepEqual(tasks({ open: false }), { payloads: [null], single: true })
})

test('a mere gate and an open stage may go without a task; a gate before a task asks first', () => {
  const { stages } = parseJobSpec(
    job({ name: 'gate', gate: true }, { name: 'open', open: true }, stage({ gate: true })),
  )
  assert.deepEqual(
    stages.map(({ task, payloads, gate }) => ({ task, payloads, gate: gate?.approvers })),
    [
      { task: null, payloads: [], gate: 1 },
      { task: null, payloads: [], gate: undefined },
      { task: 't', payloads: [null], gate: 1 },
    ],
  )
})

test('stages follow one another unless they say what they need; [] opens at once', () => {
  const names = ['a', 'b', 'c', 'd']
  const specs = names.map(name => stage({ name }))
  specs[2] = stage({ name: 'c', needs: [] })
  specs[3] = stage({ name: 'd', needs: ['a', 'c'] })
  const plan = parseJobSpec(job(...specs))
  assert.deepEqual(
    plan.stages.map(({ needs, needsWritten }) => ({ needs, needsWritten })),
    [
      { needs: [], needsWritten: false },
      { needs: ['a'], needsWritten: false },
      { needs: [], needsWritten: true },
      { needs: ['a', 'c'], needsWritten: true },
    ],
  )
})

test('an open job may begin without stages, and a sealed one may have none', () => {
  assert.deepEqual(parseJobSpec({ name: 'job', open: true }).stages, [])
  assert.deepEqual(parseJobSpec({ name: 'job', stages: [] }).stages, [])
})
