/**
 * The two transition tables of Job State Machine v1, through its own routes: every allowed and every forbidden
 * transition.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Served, served } from '../harness/served.ts'
import {
  type Job,
  type JsmClient,
  jsmClient,
  type Request,
  refusalOf,
  type State,
  transitionsIn,
} from './jsm-client.ts'

interface Rig extends Served {
  readonly jsm: JsmClient
}

async function rigFor(t: TestContext): Promise<Rig> {
  const run = await served(t)
  return { ...run, jsm: jsmClient(() => run.server.url) }
}

type Report = readonly [Request, object]

const aside = { reason_code: 'policy_violation' }
let types = 0

/** A new job with its own type, brought into a state by the document's requests. */
async function jobIn({ jsm }: Rig, state: State, options: object = {}): Promise<Job> {
  types += 1
  const type = `type-${types}`
  const { id } = await jsm.enqueue({ type, correlation_id: 'c-7', ...options })
  const start: Report = ['start', { worker: 'w' }]
  const asked: Record<State, readonly Report[]> = {
    queued: [],
    assigned: [],
    running: [start],
    succeeded: [start, ['succeed', { worker: 'w' }]],
    failed: [start, ['fail', { worker: 'w', error_class: 'PermanentError', message: 'no' }]],
    cancelled: [['cancel', { mode: 'hard' }]],
    dead_lettered: [['dead_letter', aside]],
  }
  if (state !== 'queued') await jsm.claim({ worker: 'w', types: [type], lease_sec: 60 })
  for (const [request, body] of asked[state]) await jsm.say(id, request, body)
  const job = await jsm.job(id)
  assert.equal(job.state, state)
  return job
}

type Act = (rig: Rig, job: Job) => Promise<unknown>

const claimed: Act = ({ jsm }, { type }) => jsm.claim({ worker: 'w', types: [type] })
const reports =
  (request: Request, body: object = {}): Act =>
  ({ jsm }, { id }) =>
    jsm.say(id, request, { worker: 'w', ...body })
/** Without a worker's name, the request is an operator's. */
const asks =
  (request: Request, body: object = {}): Act =>
  ({ jsm }, { id }) =>
    jsm.say(id, request, body)
const fails = (error_class: string) => reports('fail', { error_class, message: 'no' })
const expires: Act = async ({ advance, engine }) => {
  await advance(200)
  await rescue({ beginsBlind: false, now: () => 0 }).run(engine.context)
}
const rows: [row: string, from: State, act: Act, to: State, event: string][] = [
  ['queued → assigned, when a claim succeeds and a lease is acquired', 'queued', claimed, 'assigned', 'job_claimed'],
  [
    'assigned → running, when the worker acknowledges its start',
    'assigned',
    reports('start'),
    'running',
    'job_started',
  ],
  ['assigned → running, by the first heartbeat', 'assigned', reports('heartbeat'), 'running', 'job_started'],
  ['running → succeeded', 'running', reports('succeed', { result: 7 }), 'succeeded', 'job_succeeded'],
  ['running → failed, by a PermanentError', 'running', fails('PermanentError'), 'failed', 'job_failed'],
  ['running → cancelled, by user or policy', 'running', asks('cancel', { mode: 'hard' }), 'cancelled', 'job_cancelled'],
  ['running → cancelled, by its worker', 'running', reports('cancel', { hard: true }), 'cancelled', 'job_cancelled'],
  ['queued → cancelled, by user or policy', 'queued', asks('cancel', { mode: 'soft' }), 'cancelled', 'job_cancelled'],
  ['assigned → cancelled, by user or policy', 'assigned', asks('cancel', { hard: true }), 'cancelled', 'job_cancelled'],
  ['queued → dead_lettered, by policy', 'queued', asks('dead_letter', aside), 'dead_lettered', 'job_dead_lettered'],
  ['assigned → dead_lettered, by policy', 'assigned', asks('dead_letter', aside), 'dead_lettered', 'job_dead_lettered'],
  ['running → dead_lettered, by policy', 'running', asks('dead_letter', aside), 'dead_lettered', 'job_dead_lettered'],
  [
    'assigned → dead_lettered, by its worker, whose checks before the execution fail',
    'assigned',
    reports('dead_letter', { reason_code: 'validation_failed', stage: 'input' }),
    'dead_lettered',
    'job_dead_lettered',
  ],
  [
    'running → dead_lettered, by its worker',
    'running',
    reports('dead_letter', { reason_code: 'parse_error' }),
    'dead_lettered',
    'job_dead_lettered',
  ],
  [
    'running → dead_lettered, by a ValidationError',
    'running',
    fails('ValidationError'),
    'dead_lettered',
    'job_dead_lettered',
  ],
  ['running → queued again, by a TransientError', 'running', fails('TransientError'), 'queued', 'job_queued'],
  [
    'running → queued again, by an error of no class that it knows',
    'running',
    fails('DiskError'),
    'queued',
    'job_queued',
  ],
  ['running → queued again, when the lease expires', 'running', expires, 'queued', 'job_queued'],
  ['assigned → queued again, when the lease expires', 'assigned', expires, 'queued', 'job_queued'],
  [
    'dead_lettered → queued again, by a retry from the DLQ',
    'dead_lettered',
    (rig, { id }) => rig.jsm.retry(id),
    'queued',
    'job_queued',
  ],
]

test('every transition of the document’s tables is made by its request', async t => {
  const rig = await rigFor(t)
  for (const [row, from, act, to, type] of rows) {
    await t.test(`${row}: one event, with its time, actor, cause and correlation`, async () => {
      const job = await jobIn(rig, from)
      const earlier = await rig.jsm.events(job.id)
      await act(rig, job)
      assert.equal((await rig.jsm.job(job.id)).state, to)
      const events = (await rig.jsm.events(job.id)).slice(earlier.length)
      assert.deepEqual(transitionsIn(events), [`${from} → ${to}`])
      const [event] = events
      assert.deepEqual([event!.type, event!.job_id, event!.correlation_id, event!.version], [type, job.id, 'c-7', 1])
      assert.ok(event!.actor !== '' && event!.cause !== null && Date.parse(event!.ts) > 0)
    })
  }
})

/** The document's tables, copied as they are. All other transitions are forbidden. */
const allowed: Record<State, readonly string[]> = {
  queued: ['claim', 'cancel', 'dead_letter'],
  assigned: ['start', 'heartbeat', 'cancel', 'dead_letter'],
  running: ['heartbeat', 'succeed', 'fail', 'cancel', 'dead_letter'],
  succeeded: [],
  failed: [],
  cancelled: [],
  dead_lettered: ['retry'],
}
const bodies: Record<Request, object> = {
  start: {},
  heartbeat: { progress: 1 },
  succeed: { result: 'late' },
  fail: { error_class: 'TransientError', message: 'late' },
  cancel: { mode: 'hard' },
  dead_letter: aside,
}
/** A report that its sender repeats gets the same answer. */
const repeated: readonly string[] = ['running start', 'succeeded succeed', 'failed fail']
/** The job was taken from its worker, and the answer says so. */
const taken: readonly State[] = ['cancelled', 'dead_lettered']
const operators: readonly Request[] = ['cancel', 'dead_letter']

const storyOf = async ({ jsm }: Rig, id: string) => ({ job: await jsm.job(id), events: await jsm.events(id) })

for (const state of Object.keys(allowed) as State[]) {
  test(`whatever the document’s tables do not allow of a job that is ${state} is refused, and changes nothing`, async t => {
    const rig = await rigFor(t)
    for (const request of Object.keys(bodies) as Request[]) {
      if (allowed[state].includes(request) || repeated.includes(`${state} ${request}`)) continue
      const byOperator = operators.includes(request)
      const code = !byOperator && taken.includes(state) ? 'LEASE_LOST' : 'INVALID_TRANSITION'
      await t.test(`${state}: ${request} is refused with ${code}`, async () => {
        const { id } = await jobIn(rig, state)
        const before = await storyOf(rig, id)
        const body = { ...(!byOperator && { worker: 'w' }), ...bodies[request] }
        const refusal = await refusalOf(rig.jsm.say(id, request, body))
        assert.deepEqual([refusal.status, refusal.code, refusal.state], [409, code, state])
        assert.deepEqual(refusal.allowed, allowed[state])
        assert.equal(refusal.error_class, code === 'LEASE_LOST' ? 'LeaseConflictError' : 'PermanentError')
        assert.deepEqual(await storyOf(rig, id), before)
      })
    }
    if (!allowed[state].includes('claim')) {
      await t.test(`${state}: it cannot be claimed`, async () => {
        const { type } = await jobIn(rig, state)
        assert.equal(await rig.jsm.claim({ worker: 'another', types: [type] }), null)
      })
    }
    if (!allowed[state].includes('retry')) {
      await t.test(`${state}: it is not in the DLQ, and cannot be retried from there`, async () => {
        const { id } = await jobIn(rig, state)
        const refusal = await refusalOf(rig.jsm.retry(id))
        assert.deepEqual([refusal.status, refusal.code, refusal.state], [409, 'INVALID_TRANSITION', state])
      })
    }
  })
}

test('what is said again by whoever said it is answered, and has no second effect', async t => {
  const rig = await rigFor(t)
  for (const pair of repeated) {
    const [state, request] = pair.split(' ') as [State, Request]
    await t.test(`${request} of a job that is ${state}`, async () => {
      const { id } = await jobIn(rig, state)
      const before = await storyOf(rig, id)
      assert.deepEqual(await rig.jsm.say(id, request, { worker: 'w', ...bodies[request] }), before.job)
      assert.deepEqual(await storyOf(rig, id), before)
    })
  }
})
