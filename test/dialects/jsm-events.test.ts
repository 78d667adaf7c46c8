/** The events of all jobs in Job State Machine v1: by type and time, and of compensations. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'
import { type Event, jsmClient, refusalOf } from './jsm-client.ts'

async function rigFor(t: TestContext) {
  const run = await served(t)
  const jsm = jsmClient(() => run.server.url)
  /** All pages of a list of events. */
  const eventsWith = async (query: Record<string, string>): Promise<Event[]> => {
    const all: Event[] = []
    for (let next: string | null | undefined; next !== null; ) {
      const asked = new URLSearchParams({ ...query, ...(next !== undefined && { cursor: next }) })
      const page: { items: Event[]; next: string | null } = await jsm.ask('GET', `/events?${asked}`)
      all.push(...page.items)
      next = page.next
    }
    return all
  }
  return { ...run, jsm, eventsWith }
}

const schema = ['actor', 'cause', 'correlation_id', 'id', 'job_id', 'payload', 'ts', 'type', 'version']

test('events of all jobs are found by type and time, as they stand in the story of each job', async t => {
  const { jsm, advance, eventsWith } = await rigFor(t)
  const ids: string[] = []
  for (const error_class of ['PermanentError', 'ValidationError', 'PermanentError']) {
    const { id } = await jsm.enqueue({ type: 'mail', correlation_id: 'order-7', trace_id: 'my trace' })
    await jsm.claim({ worker: 'w', types: ['mail'] })
    await jsm.say(id, 'start', { worker: 'w' })
    await jsm.say(id, 'fail', { worker: 'w', error_class, message: 'no' })
    ids.push(id)
    await advance(60)
  }
  const stories = await Promise.all(ids.map(id => jsm.events(id)))
  const all = await eventually('all is told', async () => {
    const found = await eventsWith({ limit: '2' })
    return found.length === stories.flat().length && found
  })
  for (const [index, id] of ids.entries()) {
    assert.deepEqual(
      all.filter(({ job_id }) => job_id === id),
      stories[index],
    )
  }
  const failures = all.filter(({ type }) => type === 'job_failed')
  assert.deepEqual(await eventsWith({ type: 'job_failed' }), failures)
  const [first, last] = failures.map(({ ts }) => ts)
  assert.deepEqual(await eventsWith({ type: 'job_failed', since: last! }), failures.slice(1))
  assert.deepEqual(await eventsWith({ type: 'job_failed', until: first! }), failures.slice(0, 1))
  assert.deepEqual(await eventsWith({ type: 'job_dead_lettered', since: first!, until: last! }), [
    ...stories[1]!.slice(-1),
  ])
})

test('job_compensated has the fields of the document’s schema, and is found by its type and by its job', async t => {
  const { jsm, engine, eventsWith } = await rigFor(t)
  const { id } = await engine.submit({
    name: 'order',
    correlationId: 'order-7',
    traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`,
    stages: [
      { name: 'charge', task: 'charge', compensate: { task: 'refund' } },
      { name: 'ship', task: 'ship' },
    ],
  })
  for (const [type, end] of [
    ['charge', 'succeed'],
    ['ship', 'fail'],
    ['refund', 'succeed'],
  ] as const) {
    const job = await jsm.claim({ worker: 'w', types: [type] })
    await jsm.say(job!.id, 'start', { worker: 'w' })
    const failure = end === 'fail' && { error_class: 'PermanentError', message: 'no' }
    await jsm.say(job!.id, end, { worker: 'w', ...failure })
  }
  const [event] = await eventually('it is told', async () => {
    const found = await eventsWith({ type: 'job_compensated' })
    return found.length > 0 && found
  })
  const { id: eventId, ts, ...rest } = event!
  assert.deepEqual(Object.keys(event!).sort(), schema)
  assert.ok(eventId !== '' && !Number.isNaN(Date.parse(ts)))
  assert.deepEqual(rest, {
    job_id: id,
    type: 'job_compensated',
    actor: 'engine',
    correlation_id: 'order-7',
    cause: 'compensated',
    payload: { from: null, to: null, epoch: 0, trace_id: 'a'.repeat(32), undone: 1, failed: 0 },
    version: 1,
  })
  assert.deepEqual(await jsm.events(id), [event])
})

test('heartbeats are read with their job: the list of all events refuses their types, and says so', async t => {
  const { jsm } = await rigFor(t)
  for (const type of ['job_heartbeat', 'job_lease_renewed', 'job_lost']) {
    const { status, code, message } = await refusalOf(jsm.ask('GET', `/events?type=${type}`))
    assert.deepEqual([status, code], [400, 'INVALID_REQUEST'])
    assert.match(message, /"type" must be one of job_queued, .*heartbeats are listed only with the events of their job/)
  }
  const { status, code } = await refusalOf(jsm.ask('GET', '/events?since=soon'))
  assert.deepEqual([status, code], [400, 'INVALID_REQUEST'])
})
