/** Access with and without required keys is the same in every dialect. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import { served } from '../harness/served.ts'

const lists: Readonly<Record<DialectName, string>> = {
  marie: '/api/jobs',
  jobnik: '/v1/jobs',
  falconeri: '/jobs/list',
  pipeline: '/v1/pipeline/jobs',
  jsm: '/dlq',
}

const credentials: readonly Record<string, string>[] = [
  { authorization: 'Bearer anything' },
  { authorization: `Basic ${Buffer.from('falconeri:anything').toString('base64')}` },
  { authorization: 'nonsense' },
  { 'x-api-key': 'anything' },
]

test('a server that has no keys takes clients that always send something as one', async t => {
  const { server, request } = await served(t)
  for (const name of dialectNames) {
    for (const headers of credentials) {
      const { status } = await fetch(`${server.url}/dialects/${name}${lists[name]}`, { headers })
      assert.equal(status, 200, `${name} ${JSON.stringify(headers)}`)
    }
  }
  assert.equal((await request('/v1/jobs', { headers: credentials[0]! })).status, 401)
})

test('it does so too where the dialect is served at the root', async t => {
  const { server } = await served(t, { server: { rootDialect: 'falconeri' } })
  const headers = credentials[1]!
  assert.equal((await fetch(new URL('/jobs/list', server.url), { headers })).status, 200)
  assert.equal((await fetch(`${server.url}/v1/jobs`, { headers })).status, 401)
})

test('a web page of another site is not let in by sending something as a key', async t => {
  const { server } = await served(t)
  for (const name of dialectNames) {
    const headers = { ...credentials[0], origin: 'https://evil.example' }
    assert.equal((await fetch(`${server.url}/dialects/${name}${lists[name]}`, { headers })).status, 403, name)
  }
})

test('where there are keys, one that was revoked or never made is refused, though none is wanted', async t => {
  const { server, engine } = await served(t)
  const { id, secret } = await engine.createKey({ name: 'gone', role: 'admin' })
  await engine.createKey({ name: 'root', role: 'admin' })
  await engine.revokeKey(id)
  const ask = async (headers: Record<string, string>) =>
    (await fetch(`${server.url}/dialects/pipeline${lists.pipeline}`, { headers })).status
  const revoked = [{ authorization: `Bearer ${secret}` }, { 'x-api-key': secret }]
  for (const headers of [...revoked, ...credentials]) assert.equal(await ask(headers), 401, JSON.stringify(headers))
  assert.equal(await ask({}), 200)
})

test('a key that is known counts as what it is, also where none is wanted', async t => {
  const { server, engine } = await served(t)
  const { secret } = await engine.createKey({ name: 'viewer', role: 'viewer' })
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body: JSON.stringify({ type: 'mail' }) }
  assert.equal((await fetch(`${server.url}/dialects/jsm/jobs`, init)).status, 403)
})

test('a server that wants keys refuses what is none, in every dialect', async t => {
  const { server } = await served(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'root', role: 'admin' }),
  })
  for (const name of dialectNames) {
    for (const headers of credentials) {
      const { status } = await fetch(`${server.url}/dialects/${name}${lists[name]}`, { headers })
      assert.equal(status, 401, `${name} ${JSON.stringify(headers)}`)
    }
  }
})
