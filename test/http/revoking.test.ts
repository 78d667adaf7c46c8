/** Revoking a key ends its streams and long polls, on every server of the store. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { type TestContext, test } from 'node:test'
import { type Engine, openEngine, type PawlOptions } from '../../src/engine/engine.ts'
import { dialectNames } from '../../src/protocol/dialects.ts'
import { startServer } from '../../src/server/server.ts'
import { openEvents } from '../harness/event-source.ts'
import { eventually, latch } from '../harness/eventually.ts'
import { type Served, served } from '../harness/served.ts'

interface Fleet extends Served {
  /** A second server on the same store; on the embedded one, which has one process, on the same engine. */
  readonly otherUrl: string
  readonly otherEngine: Engine
}

async function twoServers(t: TestContext, more: PawlOptions = {}): Promise<Fleet> {
  const opened: (() => Promise<void>)[] = []
  t.after(async () => {
    for (const close of opened.reverse()) await close()
  })
  const run = await served(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'first', role: 'admin' }),
  })
  const isOwn = run.url !== undefined
  const otherEngine = isOwn
    ? await openEngine({ ...more, database: run.url!, schema: run.schema, migrate: false })
    : run.engine
  if (isOwn) opened.push(() => otherEngine.close())
  const other = await startServer(otherEngine, { port: 0, keysOnly: true, dialects: dialectNames })
  opened.push(() => other.close())
  return { ...run, otherUrl: other.url, otherEngine }
}

/** Everything that waits or streams. Each is a promise of its end: the status of a refusal, or `ended`. */
async function everythingOpen({ otherUrl, otherEngine, engine }: Fleet, secret: string) {
  const headers = { authorization: `Bearer ${secret}` }
  const post = (path: string, body: object) =>
    fetch(otherUrl + path, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }).then(async response => [response.status, ((await response.json()) as { code?: string }).code ?? null])
  const { id } = await engine.submit({ name: 'j', stages: [{ name: 's', task: 'elsewhere' }] })
  const stream = await fetch(`${otherUrl}/dialects/pipeline/v1/pipeline/jobs/${id}/stream`, { headers })
  const events = await openEvents(otherUrl, '', headers)
  const wait = { queues: ['q'], waitSeconds: 60, worker: 'w' }
  const open = {
    events: events.ended.then(() => 'ended'),
    pipeline: stream.text().then(() => 'ended'),
    claims: post('/v1/claims', wait),
    sync: post('/v1/workers/w/sync', { queues: ['q'], claim: 1, waitSeconds: 60, session: randomUUID() }),
    jsm: post('/dialects/jsm/jobs/claim', { worker: 'w', types: ['q'], wait_sec: 60 }),
  }
  await eventually('three wait for work', () => otherEngine.context.wake.waiterCount() === 3)
  return open
}

async function ends(open: Record<string, Promise<unknown>>) {
  const ended = await Promise.all(Object.entries(open).map(async ([name, end]) => [name, await end] as const))
  assert.deepEqual(Object.fromEntries(ended), {
    events: 'ended',
    pipeline: 'ended',
    claims: [401, 'KEY_MISSING'],
    sync: [401, 'KEY_MISSING'],
    jsm: [401, 'UNAUTHORIZED'],
  })
}

const held = ['viewer', 'worker'] as const

test('revoking a key ends its streams and long polls on every server of the store, and no other’s', async t => {
  const run = await twoServers(t)
  const revoked = await run.engine.createKey({ name: 'gone', roles: held })
  const kept = await run.engine.createKey({ name: 'stays', roles: held })
  const staying = await openEvents(run.otherUrl, '', { authorization: `Bearer ${kept.secret}` })
  const open = await everythingOpen(run, revoked.secret)
  await run.engine.revokeKey(revoked.id)
  await ends(open)
  const { id } = await run.engine.enqueue('mail', 1)
  await eventually('the other stream goes on', () => staying.events.some(({ data }) => data.id.startsWith(id)))
  await staying.cut()
})

test('where no notification comes through, a server finds by itself that a key was revoked', async t => {
  const run = await twoServers(t, { pooler: 'transaction' })
  const { id, secret } = await run.engine.createKey({ name: 'gone', roles: held })
  const open = await everythingOpen(run, secret)
  await run.engine.revokeKey(id)
  await ends(open)
})

test('revoking your own key is answered as done', async t => {
  const run = await twoServers(t)
  const { id, secret } = await run.engine.createKey({ name: 'me', role: 'admin' })
  const headers = { authorization: `Bearer ${secret}` }
  const revoke = await run.request(`/v1/keys/${id}/revoke`, { method: 'POST', headers, json: {} })
  assert.equal(revoke.status, 200)
  assert.equal((await run.request('/v1/jobs', { headers })).status, 401)
})

test('a request whose body comes after its key was revoked is refused', async t => {
  const { engine, server } = await served(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'first', role: 'admin' }),
  })
  const { id, secret } = await engine.createKey({ name: 'second', role: 'admin' })
  const admitted = latch()
  const { internals } = engine
  const { keyOf } = internals
  internals.keyOf = async shown => {
    const key = await keyOf(shown)
    admitted.open()
    return key
  }
  const body = JSON.stringify({ name: 'third', role: 'admin' })
  const headers = {
    authorization: `Bearer ${secret}`,
    'content-type': 'application/json',
    'content-length': body.length,
  }
  const asked = request(`${server.url}/v1/keys`, { method: 'POST', headers })
  const answered = once(asked, 'response')
  asked.flushHeaders()
  await admitted.opened
  await engine.revokeKey(id)
  asked.end(body)
  const [response] = (await answered) as [IncomingMessage]
  response.resume()
  assert.equal(response.statusCode, 401)
  assert.equal(
    (await engine.keys()).some(({ name }) => name === 'third'),
    false,
  )
})
