/** A web page must not be able to change anything on this server. Afterwards, the store is searched for traces of it. */
import assert from 'node:assert/strict'
import { request as rawRequest } from 'node:http'
import { test } from 'node:test'
import { Problem } from '../../src/kernel/problem.ts'
import { startServer } from '../../src/server/server.ts'
import { fresh } from '../harness/fresh.ts'
import { type Served, served } from '../harness/served.ts'

/** `fetch` cannot send another Host header, as an attacker would. */
function send(
  { server }: Served,
  path: string,
  { method = 'POST', headers, body = '' }: { method?: string; headers: Record<string, string>; body?: string },
): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const sending = rawRequest({ hostname, port, path, method, headers, agent: false }, response => {
      let text = ''
      response.on('data', part => {
        text += part
      })
      response.on('end', () => resolve({ status: response.statusCode!, text }))
    })
    sending.on('error', reject)
    sending.end(body)
  })
}

const task = JSON.stringify({ type: 'a' })
const json = { 'content-type': 'application/json' }

const tricks = {
  'a form on another site': {
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'https://evil.example' },
    body: 'type=a',
  },
  'a form whose page hides where it is': {
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: 'null' },
    body: 'type=a',
  },
  'a form of many parts': {
    headers: { 'content-type': 'multipart/form-data; boundary=x' },
    body: '--x\r\ncontent-disposition: form-data; name="type"\r\n\r\na\r\n--x--\r\n',
  },
  'text that is JSON': { headers: { 'content-type': 'text/plain' }, body: task },
  'text that calls itself JSON behind a comma': {
    headers: { 'content-type': 'text/plain, application/json' },
    body: task,
  },
  'a body without a type': { headers: {}, body: task },
  'a page of another site that sends JSON': { headers: { ...json, origin: 'https://evil.example' }, body: task },
  'a page on another port of this machine': { headers: { ...json, origin: 'http://127.0.0.1:1' }, body: task },
  'a name that was made to point here': { headers: { ...json, host: 'evil.example' }, body: task },
  'a name that only begins as ours does': { headers: { ...json, host: '127.0.0.1.evil.example' }, body: task },
  'somebody behind a proxy on this machine': { headers: { ...json, 'x-forwarded-for': '203.0.113.9' }, body: task },
  'a name with ours before an @': { headers: { ...json, host: 'localhost@evil.example' }, body: task },
}

test('nothing that a web page can send makes a loopback server work', async t => {
  const run = await served(t)
  for (const [trick, sent] of Object.entries(tricks)) {
    const { status, text } = await send(run, '/v1/tasks', sent)
    assert.ok([400, 403, 415].includes(status), `${trick}: ${status} ${text}`)
  }
  assert.deepEqual((await run.engine.tasks()).items, [])
})

test('a web page cannot cancel a task with an empty form either', async t => {
  const run = await served(t)
  const { id } = await run.engine.enqueue('a', 1)
  for (const headers of [
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'text/plain' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { host: 'evil.example' },
  ]) {
    const { status } = await send(run, `/v1/tasks/${id}/cancel`, { headers: { 'content-length': '0', ...headers } })
    assert.ok(status === 403 || status === 415, `${JSON.stringify(headers)}: ${status}`)
  }
  assert.equal((await run.engine.task(id)).state, 'queued')
})

test('a web page of another site is not told what the store holds, and is given no leave to send', async t => {
  const run = await served(t)
  const headers = { origin: 'https://evil.example' }
  assert.equal((await send(run, '/v1/tasks', { method: 'GET', headers })).status, 403)
  const asked = {
    ...headers,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'content-type',
  }
  const preflight = await run.request('/v1/tasks', { method: 'OPTIONS', headers: asked })
  assert.equal(preflight.headers.get('access-control-allow-origin'), null)
})

test('programs on this machine and its own pages are let in', async t => {
  const run = await served(t)
  const { host, port } = new URL(run.server.url)
  for (const headers of [
    { ...json },
    { ...json, host: `localhost:${port}` },
    { ...json, host: `LocalHost:${port}`, origin: `http://localhost:${port}` },
    { ...json, host: `[::1]:${port}` },
    { ...json, host, origin: `http://${host}` },
  ]) {
    const { status, text } = await send(run, '/v1/tasks', { headers, body: task })
    assert.equal(status, 201, text)
  }
})

test('on an address that others can reach, a server without keys does not start', async t => {
  const { engine } = await fresh(t)
  const wanted = (error: unknown) => error instanceof Problem && error.code === 'KEYS_WANTED'
  for (const host of ['0.0.0.0', '::', '192.0.2.1', 'example.org']) {
    await assert.rejects(startServer(engine, { host, port: 0 }), wanted, host)
  }
  const { id } = await engine.createKey({ name: 'ada', role: 'admin' })
  await engine.revokeKey(id)
  await assert.rejects(startServer(engine, { host: '0.0.0.0', port: 0 }), wanted)
  await engine.createKey({ name: 'bea', role: 'admin' })
  const server = await startServer(engine, { host: '0.0.0.0', port: 0 })
  t.after(() => server.close())
  const { port } = new URL(server.url)
  assert.equal((await fetch(`http://127.0.0.1:${port}/v1/jobs`)).status, 401)
})
