import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEvents } from '../harness/event-source.ts'
import { eventually } from '../harness/eventually.ts'
import { type Served, served } from '../harness/served.ts'

const limits = { timeout: 600_000 }

async function refusalOf({ request }: Served, path = '/v1/events', headers: Record<string, string> = {}) {
  const answer = await request(path, { headers: { accept: 'text/event-stream', ...headers } })
  const body = (await answer.json()) as { code?: string; hint?: string }
  return { status: answer.status, code: body.code, retryAfter: answer.headers.get('retry-after') }
}

test(
  'a server has only so many streams of events open at once, and a place is free again when one ends',
  limits,
  async t => {
    const run = await served(t, { server: { maxStreams: 2 } })
    const [one, two] = [await openEvents(run.server.url), await openEvents(run.server.url)]
    assert.deepEqual(await refusalOf(run), { status: 503, code: 'STREAMS_FULL', retryAfter: '5' })
    // Pages of events and everything else are served as before.
    assert.equal((await run.request('/v1/events')).status, 200)
    assert.equal((await run.request('/healthz')).status, 200)
    await one.cut()
    const three = await eventually('a place is free', () => openEvents(run.server.url).catch(() => undefined))
    await two.cut()
    await three.cut()
  },
)

test('clients with one key cannot take all streams: others with another key have theirs', limits, async t => {
  const run = await served(t, { server: { maxStreams: 10, maxStreamsPerKey: 1 } })
  const headersOf = async (name: string) => {
    const { secret } = await run.engine.createKey({ name, role: 'viewer' })
    return { authorization: `Bearer ${secret}` }
  }
  const [greedy, other] = [await headersOf('greedy'), await headersOf('other')]
  const mine = await openEvents(run.server.url, '', greedy)
  const { status, code } = await refusalOf(run, '/v1/events', greedy)
  assert.deepEqual([status, code], [429, 'STREAMS_OF_KEY'])
  const theirs = await openEvents(run.server.url, '', other)
  await mine.cut()
  await theirs.cut()
})

test('a stream of a dialect counts as one too', limits, async t => {
  const run = await served(t, { server: { maxStreams: 1 } })
  const job = await run.engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const source = await openEvents(run.server.url)
  const path = `/dialects/pipeline/v1/pipeline/jobs/${job.id}/stream`
  assert.equal((await run.request(path)).status, 503)
  await source.cut()
  await eventually('a place is free', async () => {
    const over = new AbortController()
    const answer = await run.request(path, { signal: over.signal })
    over.abort()
    return answer.status === 200
  })
})
