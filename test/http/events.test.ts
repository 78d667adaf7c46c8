import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Problem } from '../../src/kernel/problem.ts'
import type { FeedPage } from '../../src/protocol/tasks/tasks.ts'
import { dice } from '../harness/dice.ts'
import { openEvents } from '../harness/event-source.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
const tasks = (count: number) => Array.from({ length: count }, () => ({ type: 'a' }))

test('a stream of events that is cut again and again misses none and repeats none', limits, async t => {
  const run = await served(t)
  await run.engine.enqueueMany(tasks(700))
  const throwing = dice(7)
  const seen: string[] = []
  let last = ''
  for (let queued = 700; seen.length < 900; ) {
    const source = await openEvents(run.server.url, '', last === '' ? {} : { 'last-event-id': last })
    if (queued < 900) await run.engine.enqueueMany(tasks(100))
    queued = Math.min(queued + 100, 900)
    await eventually('some events have come', () => source.events.length > 0)
    await source.cut()
    // Events that were received but not processed before the cut are sent again.
    const taken = source.events.slice(0, 1 + Math.floor(throwing.throw() * source.events.length))
    seen.push(...taken.map(({ data }) => data.id))
    last = taken.at(-1)!.id
  }
  const { items } = await run.engine.events({ limit: 10_000 })
  assert.deepEqual(
    seen,
    items.map(({ id }) => id),
  )
})

test('a stream of events shows what happens while it is open, and only what it was asked for', limits, async t => {
  const run = await served(t)
  const everything = await openEvents(run.server.url)
  const ended = await openEvents(run.server.url, '?types=task.succeeded,task.failed')
  const job = await run.engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const ofJob = await openEvents(run.server.url, `?jobId=${job.id}`)
  await run.engine.enqueue('b', 1)
  const { claimed } = await run.sync({ queues: ['a', 'b'], claim: 10 })
  await run.sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const })) })
  await eventually('the end of the job was told', () => ofJob.events.some(({ type }) => type === 'job.succeeded'))
  const { items } = await run.engine.events()
  await eventually('all was told', () => everything.events.length === items.length)
  await eventually('both ends were told', () => ended.events.length === 2)
  assert.ok(ofJob.events.every(({ data }) => data.jobId === job.id))
  assert.equal(ofJob.events.length, items.filter(({ jobId }) => jobId === job.id).length)
  for (const source of [everything, ended, ofJob]) await source.cut()
})

test('a stream in which nothing happens says that it is still there', limits, async t => {
  const run = await served(t, { server: { heartbeatSeconds: 0.1 } })
  const source = await openEvents(run.server.url)
  await eventually('it was said twice', () => source.comments.length > 1)
  await source.cut()
})

test(
  'the end of the feed is answered without reading it, and all that is committed after comes behind',
  limits,
  async t => {
    const run = await served(t)
    await run.engine.enqueueMany(tasks(5))
    await eventually('the feed has come so far', async () => (await run.engine.events()).items.length === 5)
    const ask = async (query: string) => (await (await run.request(`/v1/events?${query}`)).json()) as FeedPage
    const { items, next, more } = await ask('latest=0')
    assert.deepEqual([items, more], [[], false])
    assert.equal((await ask('latest=2')).items.length, 2)
    assert.equal((await ask('latest=2&types=task.failed')).items.length, 0)
    const queued = await run.engine.enqueueMany(tasks(2))
    await eventually('both are behind it', async () => (await ask(`cursor=${next}`)).items.length >= 2)
    assert.deepEqual(
      (await ask(`cursor=${next}`)).items.map(({ entityId }) => entityId),
      queued.map(({ id }) => id),
    )
    const mixed = await run.request(`/v1/events?latest=1&cursor=${next}`)
    assert.deepEqual([mixed.status, ((await mixed.json()) as { code: string }).code], [400, 'OPTION_INVALID'])
  },
)

test('a stream that begins at the end and is cut before its first event misses nothing', limits, async t => {
  const run = await served(t)
  await run.engine.enqueueMany(tasks(5))
  await eventually('the feed has come so far', async () => (await run.engine.events()).items.length === 5)
  const quiet = await openEvents(run.server.url, '?latest=0')
  const end = await eventually('it says where it begins', () => quiet.lastId())
  await quiet.cut()
  const [queued] = await run.engine.enqueueMany(tasks(1))
  const again = await openEvents(run.server.url, '?latest=0', { 'last-event-id': end })
  await eventually('what was committed meanwhile has come', () => again.events.length > 0)
  assert.deepEqual(
    again.events.map(({ data }) => data.id.split(':')[0]),
    [queued!.id],
  )
  await again.cut()
  const some = await openEvents(run.server.url, '?latest=2')
  await eventually('the latest two have come', () => some.events.length === 2)
  await some.cut()
})

test('a stream cannot begin behind a cursor that nobody made, or of another store', limits, async t => {
  const run = await served(t)
  await assert.rejects(openEvents(run.server.url, '?cursor=x'), /^Error: 400 .*CURSOR_INVALID/)
  const { next } = await run.engine.events()
  const foreign = Buffer.from(next, 'base64url')
    .toString()
    .replace(/"of":"[^"]+"/, '"of":"another"')
  const headers = { 'last-event-id': Buffer.from(foreign).toString('base64url') }
  await assert.rejects(openEvents(run.server.url, '', headers), /^Error: 410 .*CURSOR_GONE/)
})

test('a stream is cut when the store cannot be read, and goes on where it was', limits, async t => {
  const run = await served(t)
  await run.engine.enqueueMany(tasks(3))
  const source = await openEvents(run.server.url)
  await eventually('three have come', () => source.events.length === 3)
  const away = t.mock.method(run.engine.context.feed, 'read', async () => {
    throw new Problem('STORE_UNAVAILABLE')
  })
  await source.ended
  await assert.rejects(openEvents(run.server.url), /^Error: 503 /)
  away.mock.restore()
  await run.engine.enqueueMany(tasks(2))
  const next = await openEvents(run.server.url, '', { 'last-event-id': source.events.at(-1)!.id })
  await eventually('the other two have come', () => next.events.length === 2)
  await next.cut()
})

test('a reader that is slow gets all in the end', limits, async t => {
  const run = await served(t)
  await run.engine.enqueueMany(Array.from({ length: 10_000 }, () => ({ type: 'a', correlationId: 'c'.repeat(200) })))
  const response = await run.request('/v1/events', { headers: { accept: 'text/event-stream' } })
  // Nobody reads for now, so the server waits with what is left; others are served meanwhile.
  assert.equal((await run.request('/v1/queues')).status, 200)
  let text = ''
  for await (const part of response.body!) {
    text += Buffer.from(part as Uint8Array)
    if (text.split('\nevent: ').length > 10_000) break
  }
  const ids = [...text.matchAll(/^data: \{"id":"([^"]+)"/gm)].map(([, id]) => id)
  assert.equal(new Set(ids).size, 10_000)
})

test('events of a time are found over HTTP, by a moment as a text or as a Date of the client', limits, async t => {
  const { engine, client, request, advance } = await served(t)
  await engine.enqueue('a', 1)
  await advance(60)
  const { id } = await engine.enqueue('a', 2)
  const { createdAt } = await engine.task(id)
  await eventually('the feed has both', async () => (await engine.events()).items.length === 2)
  const found = (await (await request(`/v1/events?since=${createdAt}`)).json()) as FeedPage
  const same = await client.events({ since: new Date(createdAt) })
  for (const { items } of [found, same]) {
    assert.deepEqual(
      items.map(({ entityId }) => entityId),
      [id],
    )
  }
  assert.equal((await request('/v1/events?since=soon')).status, 400)
})
