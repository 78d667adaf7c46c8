/** Leases, heartbeats, retries and the DLQ of Job State Machine v1, through its own routes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { endGraces } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Served, served } from '../harness/served.ts'
import { type Job, type JsmClient, jsmClient, type Request, refusalOf } from './jsm-client.ts'

interface Rig extends Served {
  readonly jsm: JsmClient
  /** Runs the babysitter as if it had been watching all the time. */
  runRescue(): Promise<void>
}

async function rigFor(t: TestContext): Promise<Rig> {
  const run = await served(t)
  const runRescue = async () => void (await rescue({ beginsBlind: false, now: () => 0 }).run(run.engine.context))
  return { ...run, jsm: jsmClient(() => run.server.url), runRescue }
}

const claims = async ({ jsm }: Rig, worker: string, options: object = {}): Promise<Job> => {
  const job = await jsm.claim({ worker, types: ['mail'], lease_sec: 60, ...options })
  assert.ok(job !== null, 'there is something to claim')
  return job
}

async function running(rig: Rig, worker: string, job: object = {}): Promise<Job> {
  await rig.jsm.enqueue({ type: 'mail', ...job })
  const { id, lease } = await claims(rig, worker)
  return { ...(await rig.jsm.say(id, 'start', { worker })), lease }
}

test('a claim that names no interval has the one of the job’s type, and 30 s where the type has none', async t => {
  const rig = await rigFor(t)
  await rig.engine.putTaskType('mail', { heartbeatSeconds: 12, leaseSeconds: 90 })
  for (const type of ['mail', 'letter']) await rig.jsm.enqueue({ type })
  const leases = new Map<string, unknown>()
  for (const _ of [1, 2]) {
    const job = await rig.jsm.claim({ worker: 'w', types: ['mail', 'letter'] })
    leases.set(job!.type, [job!.lease!.lease_sec, job!.lease!.heartbeat_sec])
  }
  assert.deepEqual(Object.fromEntries(leases), { mail: [24, 12], letter: [60, 30] })
})

test('a lease is as long as the claim says, is renewed by every heartbeat, and ends with two missed ones', async t => {
  const rig = await rigFor(t)
  const { jsm, engine, advance } = rig
  /** Requests that give a lease of this many seconds, counted from the request. */
  const leased = async (seconds: number, ask: () => Promise<Job>): Promise<Job> => {
    const before = await engine.internals.clock()
    const job = await ask()
    const began = Date.parse(job.lease!.expires_at) - seconds * 1000
    assert.ok(
      began >= before - 2 && began <= (await engine.internals.clock()) + 2,
      `${job.lease!.expires_at}: ${seconds} s`,
    )
    return job
  }
  const lengths: [options: object, seconds: number, heartbeat: number][] = [
    [{ lease_sec: 30 }, 30, 30],
    [{ lease_sec: 45, heartbeat_sec: 10 }, 20, 10],
    [{ lease_sec: 120 }, 60, 30],
    [{ lease_sec: undefined }, 60, 30],
  ]
  for (const [options, seconds, heartbeat] of lengths) {
    await jsm.enqueue({ type: 'mail' })
    const job = await leased(seconds, () => claims(rig, 'w', options))
    assert.deepEqual([job.lease!.lease_sec, job.lease!.heartbeat_sec], [seconds, heartbeat])
    await advance(seconds / 2)
    await leased(seconds, () => jsm.say(job.id, 'heartbeat', { worker: 'w' }))
    await advance(seconds / 2)
    await rig.runRescue()
    assert.equal((await jsm.job(job.id)).state, 'running')
    await advance(seconds / 2)
    await rig.runRescue()
    assert.deepEqual([(await jsm.job(job.id)).state, (await jsm.job(job.id)).lease], ['queued', null])
    assert.equal((await claims(rig, 'next')).id, job.id)
    await jsm.say(job.id, 'dead_letter', { worker: 'next', reason_code: 'timeout' })
  }
})

const everyReport: readonly [Request, object][] = [
  ['start', {}],
  ['heartbeat', { progress: 99, checkpoint: 'late' }],
  ['succeed', { result: 'late' }],
  ['fail', { error_class: 'PermanentError', message: 'late' }],
  ['fail', { error_class: 'ValidationError', message: 'late' }],
  ['cancel', { mode: 'hard' }],
  ['dead_letter', { reason_code: 'timeout' }],
]

test('a worker whose lease expired gets LEASE_LOST for all that it says, and changes nothing; the job is its heir’s', async t => {
  const rig = await rigFor(t)
  const { jsm } = rig
  const { id, lease } = await running(rig, 'zombie')
  await rig.advance(61)
  await rig.runRescue()
  const assertZombieRefused = async (when: string) => {
    const before = [await jsm.job(id), await jsm.events(id)]
    for (const [request, body] of everyReport) {
      for (const named of [{}, { epoch: lease!.epoch }]) {
        const refusal = await refusalOf(jsm.say(id, request, { worker: 'zombie', ...named, ...body }))
        assert.deepEqual([refusal.status, refusal.code], [409, 'LEASE_LOST'], `${request} ${when}`)
        assert.equal(refusal.error_class, 'LeaseConflictError')
      }
    }
    assert.deepEqual([await jsm.job(id), await jsm.events(id)], before)
  }
  await assertZombieRefused('while nobody has it')
  const { lease: heirs } = await claims(rig, 'heir')
  await assertZombieRefused('while its heir has it')
  const guessed = await refusalOf(jsm.say(id, 'succeed', { worker: 'zombie', epoch: heirs!.epoch }))
  assert.equal(guessed.code, 'LEASE_LOST', 'another’s epoch is of no use under one’s own name')
  await jsm.say(id, 'start', { worker: 'heir' })
  const done = await jsm.say(id, 'succeed', { worker: 'heir', result: 'mine' })
  assert.deepEqual([done.state, done.result], ['succeeded', 'mine'])
  await assertZombieRefused('after its heir has ended it')
})

test('two workers of one name are told apart by the epoch of their claims', async t => {
  const rig = await rigFor(t)
  const { id, lease } = await running(rig, 'twin')
  await rig.advance(61)
  await rig.runRescue()
  const { lease: second } = await claims(rig, 'twin')
  await rig.jsm.say(id, 'start', { worker: 'twin', epoch: second!.epoch })
  const refusal = await refusalOf(rig.jsm.say(id, 'succeed', { worker: 'twin', epoch: lease!.epoch }))
  assert.equal(refusal.code, 'LEASE_LOST')
  assert.equal((await rig.jsm.say(id, 'succeed', { worker: 'twin', epoch: second!.epoch })).state, 'succeeded')
})

test('a report whose answer was lost is answered again, though another has the job by now', async t => {
  const rig = await rigFor(t)
  const { id, lease } = await running(rig, 'w', { backoff: { base_sec: 0 } })
  const failed = { worker: 'w', epoch: lease!.epoch, error_class: 'TransientError', message: 'no' }
  assert.equal((await rig.jsm.say(id, 'fail', failed)).state, 'queued')
  await claims(rig, 'heir')
  const before = await rig.jsm.events(id)
  assert.equal((await rig.jsm.say(id, 'fail', failed)).state, 'assigned')
  assert.deepEqual(await rig.jsm.events(id), before)
})

test('attempts that are used up lead to the DLQ, or to failed, per policy, with the last error', async t => {
  const rig = await rigFor(t)
  for (const [on_exhausted, end] of [
    [undefined, 'dead_lettered'],
    ['dead_lettered', 'dead_lettered'],
    ['failed', 'failed'],
  ] as const) {
    const { id } = await running(rig, 'w', { max_attempts: 2, on_exhausted, backoff: { base_sec: 0 } })
    const error = { worker: 'w', error_class: 'TransientError', message: 'the line is down', stage: 'fetch' }
    assert.equal((await rig.jsm.say(id, 'fail', error)).state, 'queued')
    const { attempts } = await claims(rig, 'w')
    assert.equal(attempts, 2)
    await rig.jsm.say(id, 'start', { worker: 'w' })
    const ended = await rig.jsm.say(id, 'fail', error)
    assert.deepEqual([ended.state, ended.attempts], [end, 2])
    const { error_class, message } = ended.last_error!
    assert.deepEqual([error_class, message], ['TransientError', 'the line is down'])
  }
})

test('retries wait: exponentially, up to the longest interval, and as long as the worker says', async t => {
  const rig = await rigFor(t)
  const backoff = { base_sec: 4, factor: 2, max_sec: 10, jitter: false }
  const { id } = await running(rig, 'w', { max_attempts: 10, backoff })
  for (const [options, seconds] of [
    [{}, 4],
    [{}, 8],
    [{}, 10],
    [{ retry_in_sec: 3 }, 3],
  ] as const) {
    await rig.jsm.say(id, 'fail', { worker: 'w', error_class: 'TransientError', message: 'no', ...options })
    await rig.advance(seconds / 2)
    assert.equal(await rig.jsm.claim({ worker: 'w', types: ['mail'] }), null, `not before ${seconds} s`)
    await rig.advance(seconds / 2)
    await claims(rig, 'w')
    await rig.jsm.say(id, 'start', { worker: 'w' })
  }
})

test('a dead letter has all fields that the document requires, whatever led there', async t => {
  const rig = await rigFor(t)
  const { jsm } = rig
  const once = { max_attempts: 1, correlation_id: 'c-9' }
  const reports = (request: Request, body: object) => (job: Job) => jsm.say(job.id, request, { worker: 'w', ...body })
  const ways: [reason: string, stage: string | null, (job: Job) => Promise<unknown>][] = [
    ['validation_failed', 'input', reports('fail', { error_class: 'ValidationError', message: 'bad', stage: 'input' })],
    ['exhausted_retries', null, reports('fail', { error_class: 'TransientError', message: 'no' })],
    ['parse_error', 'fetch', reports('dead_letter', { reason_code: 'parse_error', stage: 'fetch', reason: 'odd' })],
    ['policy_violation', null, ({ id }) => jsm.say(id, 'dead_letter', { reason_code: 'policy_violation' })],
    [
      'infrastructure_failure',
      null,
      async () => {
        await rig.advance(61)
        await rig.runRescue()
      },
    ],
  ]
  for (const [reason, stage, leads] of ways) {
    const job = await running(rig, 'w', once)
    await leads(job)
    const [letter, ...others] = await jsm.deadLetters(`?reason_code=${reason}`)
    assert.deepEqual(others, [])
    assert.deepEqual([letter!.job_id, letter!.reason_code, letter!.stage], [job.id, reason, stage])
    assert.deepEqual([letter!.last_owner, letter!.correlation_id], ['w', 'c-9'])
    assert.ok(letter!.last_error.message !== '' && Date.parse(letter!.last_lease_expires_at!) > 0)
    assert.equal(letter!.attempts, 1)
  }
  assert.equal((await jsm.deadLetters()).length, ways.length)
  assert.equal((await jsm.deadLetters('?limit=2')).length, 2)
})

test('a dead letter that is retried has fresh attempts and leaves the DLQ', async t => {
  const rig = await rigFor(t)
  const { jsm } = rig
  const { id } = await running(rig, 'w', { max_attempts: 1 })
  await jsm.say(id, 'fail', { worker: 'w', error_class: 'TransientError', message: 'no' })
  const again = await jsm.retry(id, { reason: 'the line is back', idempotency_key: 'once' })
  assert.deepEqual([again.state, again.attempts, again.last_error], ['queued', 0, null])
  assert.deepEqual(await jsm.deadLetters(), [])
  await claims(rig, 'w')
  await jsm.retry(id, { reason: 'the line is back', idempotency_key: 'once' })
  await jsm.say(id, 'start', { worker: 'w' })
  assert.equal((await jsm.say(id, 'succeed', { worker: 'w' })).state, 'succeeded')
})

test('a soft cancel is told by the next heartbeat; the worker checkpoints and ends, or is ended after its grace', async t => {
  const rig = await rigFor(t)
  const { jsm } = rig
  const [good, deaf] = [await running(rig, 'good'), await running(rig, 'deaf')]
  for (const { id } of [good, deaf]) {
    const { state, cancel_requested_at } = await jsm.say(id, 'cancel', { mode: 'soft', reason: 'not wanted' })
    assert.ok(state === 'running' && cancel_requested_at !== null)
  }
  const beaten = await jsm.say(good.id, 'heartbeat', { worker: 'good', checkpoint: { page: 3 } })
  assert.ok(beaten.cancel_requested_at !== null)
  const ended = await jsm.say(good.id, 'cancel', { worker: 'good', hard: true })
  assert.deepEqual([ended.state, ended.checkpoint], ['cancelled', { page: 3 }])
  await rig.advance(31)
  await endGraces.run(rig.engine.context)
  assert.equal((await jsm.job(deaf.id)).state, 'cancelled')
  assert.equal((await refusalOf(jsm.say(deaf.id, 'heartbeat', { worker: 'deaf' }))).code, 'LEASE_LOST')
})
