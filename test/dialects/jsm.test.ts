/** Job State Machine v1 through its own routes: idempotency, events, metrics, keys and errors. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { countEvents } from '../../src/babysitter/chores.ts'
import { eventually } from '../harness/eventually.ts'
import { type Served, type ServedOptions, served } from '../harness/served.ts'
import { type JsmClient, jsmClient, refusalOf } from './jsm-client.ts'

async function rigFor(t: TestContext, options: ServedOptions = {}): Promise<Served & { jsm: JsmClient }> {
  const run = await served(t, options)
  return { ...run, jsm: jsmClient(() => run.server.url) }
}

test('a job queued again under its key is the same job; another under that key is refused, and nothing is queued', async t => {
  const { jsm, engine } = await rigFor(t)
  const ask = { type: 'mail', payload: { to: 'Ada' }, idempotency_key: 'k-1', trace_id: 'a'.repeat(32) }
  const [first, second] = await Promise.all([jsm.enqueue(ask), jsm.enqueue(ask)])
  assert.equal(second.id, first.id)
  await jsm.claim({ worker: 'w', types: ['mail'] })
  const late = await jsm.enqueue(ask)
  assert.deepEqual([late.id, late.state], [first.id, 'assigned'], 'as it is by then')
  for (const other of [{ payload: { to: 'Bob' } }, { type: 'post' }, { priority: 3 }]) {
    const refusal = await refusalOf(jsm.enqueue({ ...ask, ...other }))
    assert.deepEqual([refusal.status, refusal.code], [422, 'IDEMPOTENCY_CONFLICT'])
    assert.equal(refusal.error_class, 'ValidationError')
  }
  assert.equal((await engine.tasks()).items.length, 1)
})

test('a claim that is sent again under its key returns the winning claim, and claims no more', async t => {
  const { jsm } = await rigFor(t)
  await jsm.enqueue({ type: 'mail' })
  await jsm.enqueue({ type: 'mail' })
  const ask = { worker: 'w', types: ['mail'], lease_sec: 60, idempotency_key: 'claim-1' }
  const [first, again] = [await jsm.claim(ask), await jsm.claim(ask)]
  assert.deepEqual([again!.id, again!.lease!.epoch], [first!.id, first!.lease!.epoch])
  const next = await jsm.claim({ ...ask, idempotency_key: 'claim-2' })
  assert.notEqual(next!.id, first!.id)
  assert.equal(await jsm.claim({ ...ask, idempotency_key: 'claim-3' }), null)
})

test('cancel and dead_letter repeated under their key have the first answer and no second effect', async t => {
  const { jsm } = await rigFor(t)
  for (const [request, body] of [
    ['cancel', { mode: 'hard' }],
    ['dead_letter', { reason_code: 'policy_violation' }],
  ] as const) {
    const { id } = await jsm.enqueue({ type: 'mail' })
    const keyed = { ...body, idempotency_key: `once ${request}` }
    const first = await jsm.say(id, request, keyed)
    const events = await jsm.events(id)
    assert.deepEqual(await jsm.say(id, request, keyed), first)
    assert.deepEqual(await jsm.events(id), events)
    assert.equal((await refusalOf(jsm.say(id, request, { ...keyed, reason: 'another' }))).code, 'IDEMPOTENCY_CONFLICT')
  }
})

test('correlation_id and trace_id go with the job: to its worker, into every event and into the DLQ', async t => {
  const { jsm, engine } = await rigFor(t)
  for (const trace_id of ['0af7651916cd43dd8448eb211c80319c', 'no W3C trace']) {
    const { id } = await jsm.enqueue({ type: 'mail', correlation_id: 'order-7', trace_id })
    const claimed = await jsm.claim({ worker: 'w', types: ['mail'] })
    assert.deepEqual([claimed!.correlation_id, claimed!.trace_id], ['order-7', trace_id])
    await jsm.say(id, 'heartbeat', { worker: 'w' })
    await jsm.say(id, 'dead_letter', { worker: 'w', reason_code: 'timeout' })
    for (const event of await jsm.events(id)) {
      assert.deepEqual([event.correlation_id, event.payload.trace_id], ['order-7', trace_id], event.type)
    }
    const [letter] = await jsm.deadLetters()
    assert.deepEqual([letter!.job_id, letter!.correlation_id], [id, 'order-7'])
    const { traceparent } = await engine.task(id)
    assert.equal(traceparent?.split('-')[1] ?? 'no W3C trace', trace_id, 'it goes on to workers of ours')
  }
})

test('events have the fields of the document’s schema, and heartbeats stand where they came', async t => {
  const { jsm, advance } = await rigFor(t)
  const { id } = await jsm.enqueue({ type: 'mail' })
  await jsm.claim({ worker: 'w', types: ['mail'], lease_sec: 45 })
  await jsm.say(id, 'start', { worker: 'w' })
  await advance(10)
  await jsm.say(id, 'heartbeat', { worker: 'w', progress: { done: 3 } })
  await jsm.say(id, 'cancel', { mode: 'soft' })
  await jsm.say(id, 'succeed', { worker: 'w' })
  const events = await jsm.events(id)
  assert.deepEqual(
    events.map(({ type, actor }) => `${type} by ${actor}`),
    [
      'job_queued by producer',
      'job_claimed by worker:w',
      'job_started by worker:w',
      'job_heartbeat by worker:w',
      'job_lease_renewed by worker:w',
      'job_succeeded by worker:w',
    ],
  )
  const schema = ['actor', 'cause', 'correlation_id', 'id', 'job_id', 'payload', 'ts', 'type', 'version']
  for (const event of events) assert.deepEqual(Object.keys(event).sort(), schema)
  assert.equal(new Set(events.map(event => event.id)).size, events.length)
  assert.deepEqual(events[1]!.payload.lease_sec, 45)
  assert.deepEqual(events[3]!.payload.progress, { done: 3 })
  const { items, next } = await jsm.ask<{ items: object[]; next: string }>('GET', `/jobs/${id}/events?limit=2`)
  assert.deepEqual(items, events.slice(0, 2))
  const rest = await jsm.ask<{ items: object[]; next: null }>('GET', `/jobs/${id}/events?cursor=${next}`)
  assert.deepEqual(rest, { items: events.slice(2), next: null })
})

test('the figures count claims, renewals, expiries, retries, failures and dead letters, and tell latencies by type', async t => {
  const { jsm, engine } = await rigFor(t)
  for (const error_class of ['TransientError', 'ValidationError', undefined]) {
    const { id } = await jsm.enqueue({ type: 'mail', backoff: { base_sec: 60, jitter: false } })
    await jsm.claim({ worker: 'w', types: ['mail'] })
    await jsm.say(id, 'heartbeat', { worker: 'w' })
    if (error_class === undefined) await jsm.say(id, 'succeed', { worker: 'w' })
    else await jsm.say(id, 'fail', { worker: 'w', error_class, message: 'no' })
  }
  const { latency, ...counts } = await eventually('all is counted', async () => {
    await countEvents.run(engine.context)
    const figures = await jsm.metrics()
    const { mail } = figures.latency as Record<string, { run?: { count: number } }>
    return figures.failures === 2 && figures.claims === 3 && mail?.run?.count === 3 && figures
  })
  assert.deepEqual(counts, {
    claims: 3,
    claim_conflicts: 0,
    lease_renewals: 3,
    lease_expiries: 0,
    retries: 1,
    failures: 2,
    dlq_count: 1,
  })
  const { queue, run } = (latency as Record<string, Record<string, { count: number; p95_sec: number }>>).mail!
  assert.deepEqual([queue!.count, run!.count], [3, 3])
  assert.ok(queue!.p95_sec > 0 && run!.p95_sec > 0)
})

const nobody = '01980000-0000-7000-8000-000000000000'
const w = { worker: 'w' }
type Bad = [asked: string, method: 'GET' | 'POST', path: string, body: unknown, status: number, code: string]
const bad: Bad[] = [
  ['a job without a type', 'POST', '/jobs', { payload: 1 }, 400, 'INVALID_REQUEST'],
  ['a job whose type is no text', 'POST', '/jobs', { type: 7 }, 400, 'INVALID_REQUEST'],
  ['a job with an odd priority', 'POST', '/jobs', { type: 'mail', priority: 'high' }, 400, 'INVALID_REQUEST'],
  ['a job that is a list', 'POST', '/jobs', [], 400, 'INVALID_REQUEST'],
  ['a job with a NUL in it', 'POST', '/jobs', { type: 'mail', payload: 'a\0b' }, 400, 'PAYLOAD_INVALID'],
  ['a claim by nobody', 'POST', '/jobs/claim', { types: ['mail'] }, 400, 'INVALID_REQUEST'],
  ['a claim of nothing', 'POST', '/jobs/claim', { ...w, types: [] }, 400, 'INVALID_REQUEST'],
  [
    'a lease that is too short',
    'POST',
    '/jobs/claim',
    { ...w, types: ['mail'], lease_sec: 29 },
    400,
    'INVALID_REQUEST',
  ],
  [
    'a lease that is too long',
    'POST',
    '/jobs/claim',
    { ...w, types: ['mail'], lease_sec: 121 },
    400,
    'INVALID_REQUEST',
  ],
  ['too rare heartbeats', 'POST', '/jobs/claim', { ...w, types: ['mail'], heartbeat_sec: 31 }, 400, 'INVALID_REQUEST'],
  ['a start by nobody', 'POST', `/jobs/${nobody}/start`, {}, 400, 'INVALID_REQUEST'],
  ['a cancel that is both', 'POST', `/jobs/${nobody}/cancel`, { soft: true, hard: true }, 400, 'INVALID_REQUEST'],
  ['a cancel of no such mode', 'POST', `/jobs/${nobody}/cancel`, { mode: 'medium' }, 400, 'INVALID_REQUEST'],
  ['a dead letter without a reason', 'POST', `/jobs/${nobody}/dead_letter`, {}, 400, 'INVALID_REQUEST'],
  ['an unknown reason', 'POST', `/jobs/${nobody}/dead_letter`, { reason_code: 'odd' }, 400, 'INVALID_REQUEST'],
  ['an unknown stage', 'POST', `/jobs/${nobody}/fail`, { ...w, stage: 'odd' }, 400, 'INVALID_REQUEST'],
  ['a page of no length', 'GET', '/dlq?limit=none', undefined, 400, 'INVALID_REQUEST'],
  ['a cursor of nobody’s', 'GET', '/dlq?cursor=odd', undefined, 400, 'CURSOR_INVALID'],
  ['an unknown job', 'GET', `/jobs/${nobody}`, undefined, 404, 'JOB_NOT_FOUND'],
  ['an id that is none', 'GET', '/jobs/7', undefined, 404, 'JOB_NOT_FOUND'],
  ['events of an unknown job', 'GET', `/jobs/${nobody}/events`, undefined, 404, 'JOB_NOT_FOUND'],
  ['the start of an unknown job', 'POST', `/jobs/${nobody}/start`, w, 404, 'JOB_NOT_FOUND'],
  ['the cancel of an unknown job', 'POST', `/jobs/${nobody}/cancel`, {}, 404, 'JOB_NOT_FOUND'],
  ['the retry of an unknown job', 'POST', `/dlq/${nobody}/retry`, {}, 404, 'JOB_NOT_FOUND'],
  ['an unknown address', 'GET', '/nothing', undefined, 404, 'ROUTE_NOT_FOUND'],
]

test('whatever cannot be understood or found is refused with a class, a code and a message, and does nothing', async t => {
  const { jsm, engine } = await rigFor(t)
  for (const [asked, method, path, body, status, code] of bad) {
    await t.test(`${asked}: ${status} ${code}`, async () => {
      const refusal = await refusalOf(jsm.ask(method, path, body as object))
      const error_class = status === 404 ? 'PermanentError' : 'ValidationError'
      assert.deepEqual([refusal.status, refusal.code, refusal.error_class], [status, code, error_class])
      assert.deepEqual([refusal.state, refusal.allowed], [null, null])
      assert.ok(refusal.message !== '' && !refusal.message.includes('task'), refusal.message)
    })
  }
  assert.deepEqual((await engine.tasks()).items, [])
})

test('fields that are not known, and those that are null, are passed over', async t => {
  const { jsm } = await rigFor(t)
  const { id } = await jsm.enqueue({ type: 'mail', correlation_id: null, priority: null, shard: 7, payload: null })
  const job = await jsm.claim({ worker: 'w', types: ['mail'], lease_sec: null, region: 'eu' })
  assert.deepEqual([job!.id, job!.lease!.lease_sec, job!.payload], [id, 60, null])
  await jsm.say(id, 'start', { worker: 'w', epoch: null, host: 'h' })
  assert.equal((await jsm.say(id, 'succeed', { worker: 'w', result: null })).state, 'succeeded')
})

test('a worker’s key claims, reports and sets aside what it holds in its queues; all else is refused in the dialect’s words', async t => {
  const { server, engine } = await rigFor(t)
  const as = async (role: 'worker' | 'producer' | 'operator', queues?: string[]) => {
    const { secret } = await engine.createKey({ name: role, role, ...(queues && { queues }) })
    return jsmClient(() => server.url, { authorization: `Bearer ${secret}` })
  }
  const [producer, worker, stranger] = [
    await as('producer'),
    await as('worker', ['mail']),
    await as('worker', ['post']),
  ]
  const { id } = await producer.enqueue({ type: 'mail' })
  const refused = async (asked: Promise<unknown>) => {
    const { status, code, error_class } = await refusalOf(asked)
    assert.deepEqual([status, code, error_class], [403, 'KEY_REFUSED', 'PermanentError'])
  }
  await refused(producer.claim({ worker: 'w', types: ['mail'] }))
  await refused(worker.enqueue({ type: 'mail' }))
  await refused(stranger.claim({ worker: 'w', types: ['mail'] }))
  await worker.claim({ worker: 'w', types: ['mail'] })
  await refused(stranger.say(id, 'start', { worker: 'w' }))
  await refused(stranger.say(id, 'dead_letter', { worker: 'w', reason_code: 'timeout' }))
  await refused(worker.say(id, 'cancel', { mode: 'hard' }))
  await refused(worker.say(id, 'dead_letter', { reason_code: 'timeout' }))
  await refused(worker.retry(id))
  const { state } = await worker.say(id, 'dead_letter', { worker: 'w', reason_code: 'timeout' })
  assert.equal(state, 'dead_lettered')
  const [letter] = await (await as('operator')).deadLetters()
  assert.equal(letter!.job_id, id)
  const nobody = jsmClient(() => server.url, { authorization: 'Bearer wrong' })
  assert.deepEqual((await refusalOf(nobody.job(id))).status, 401)
})
