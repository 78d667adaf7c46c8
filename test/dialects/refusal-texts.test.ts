/** Refusals use the words of their dialect and do not mention Pawl's own pages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import { served } from '../harness/served.ts'
import { jsmClient, refusalOf } from './jsm-client.ts'

const nobody = '00000000-0000-7000-8000-000000000000'
const json = { 'content-type': 'application/json' }
const post = (body: unknown) => ({ method: 'POST', headers: json, body: JSON.stringify(body) })

/** Various invalid requests. */
const asked: Readonly<Record<DialectName, readonly (readonly [path: string, init?: RequestInit])[]>> = {
  marie: [
    ['/api/v1/invoke', post({ name: 7 })],
    ['/api/v1/invoke', post([])],
    ['/api/jobs', { method: 'PUT' }],
  ],
  jobnik: [
    ['/v1/jobs', post({ name: 'x' })],
    ['/v1/jobs?page=0'],
    ['/v1/jobs?colour=red'],
    ['/v1/jobs', { method: 'PUT' }],
  ],
  falconeri: [
    ['/jobs'],
    ['/jobs', post({ job: 7 })],
    [`/datums/${nobody}/describe`],
    [`/jobs/${nobody}/retry`, { method: 'POST' }],
  ],
  pipeline: [
    ['/v1/pipeline/scheduled-run-async', post({ pipeline: 'nightly' })],
    ['/v1/pipeline/scheduled-run-async', { ...post({}), body: '{' }],
  ],
  jsm: [
    ['/jobs', post({})],
    ['/jobs', { ...post({}), body: '{' }],
    ['/dlq?limit=x'],
    ['/dlq?cursor=x'],
    ['/jobs', { method: 'PUT' }],
  ],
}

test('no refusal of a dialect points to details or pages that its client does not see', async t => {
  for (const rootDialect of dialectNames) {
    const { server } = await served(t, { server: { rootDialect } })
    for (const [path, init] of [...asked[rootDialect], ['/nothing/here'] as const]) {
      const response = await fetch(new URL(path, server.url), init)
      const text = await response.text()
      assert.ok(response.status >= 400, `${path} ${text}`)
      assert.doesNotMatch(text, /details|\/docs|openapi|\/v1\/(jobs|tasks)/i, `${rootDialect} ${path}`)
    }
  }
})

test('where a dialect is at the root, Pawl’s own problems name its own pages where they are', async t => {
  const { server } = await served(t, { server: { rootDialect: 'jobnik' } })
  for (const path of ['/v1/nothing', '/v1/tasks/x?colour=red', '/v1/jobs?limit=0']) {
    const { type } = (await (await fetch(`${server.url}${path}`)).json()) as { type: string }
    assert.match(type, /^\/pawl\/docs\/api#[A-Z_]+$/, path)
    assert.equal((await fetch(new URL(type, server.url))).status, 200)
  }
  const page = await (await fetch(`${server.url}/docs/api`)).text()
  const [, link] = /href="([^"]*openapi.json)"/.exec(page)!
  assert.equal((await fetch(new URL(link!, `${server.url}/docs/api`))).status, 200)
})

test('marie: a job of a DAG cannot be deleted alone, and is told by what the DAG is known', async t => {
  const { server, engine } = await served(t, { server: { rootDialect: 'marie' } })
  const job = { id: 'a', name: 'ocr', data: {}, dag_id: 'pages' }
  await fetch(new URL('/api/v1/invoke', server.url), post(job))
  const [dag] = (await engine.jobs()).items
  const refused = await fetch(new URL('/api/jobs/a', server.url), { method: 'DELETE' })
  const { message } = (await refused.json()) as { message: string }
  assert.equal(refused.status, 409)
  assert.match(message, new RegExp(dag!.id))
  assert.doesNotMatch(message, /\/v1\//)
})

test('jsm: what was asked is called as it was asked', async t => {
  const { server } = await served(t)
  const jsm = jsmClient(() => server.url)
  const { id } = await jsm.enqueue({ type: 'mail' })
  await jsm.say(id, 'cancel', { mode: 'hard' })
  const message = async (asking: Promise<unknown>) => (await refusalOf(asking)).message
  const dead = await message(jsm.say(id, 'dead_letter', { reason_code: 'timeout' }))
  assert.equal(dead, 'A job that is cancelled does not take dead_letter.')
  assert.equal(await message(jsm.retry(id)), 'A job that is cancelled does not take retry.')
  assert.match(await message(jsm.deadLetters('?reason_code=boredom')), /^"reason_code" must/)
})

test('jsm: what is too large in a heartbeat is refused with how large it was', async t => {
  const { server } = await served(t)
  const jsm = jsmClient(() => server.url)
  const { id } = await jsm.enqueue({ type: 'mail' })
  await jsm.claim({ worker: 'w', types: ['mail'] })
  const checkpoint = 'x'.repeat(3_000_000)
  const { code, message } = await refusalOf(jsm.say(id, 'heartbeat', { worker: 'w', checkpoint }))
  assert.equal(code, 'PAYLOAD_TOO_LARGE')
  assert.match(message, /30000\d\d/)
  assert.doesNotMatch(message, /undefined/)
})

test('jsm: without a key, or with one that is not known, it is not said which of the two it was', async t => {
  const { server } = await served(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'root', role: 'admin' }),
  })
  for (const headers of [{}, { authorization: 'Bearer wrong' }] as Record<string, string>[]) {
    const { status, code } = await refusalOf(jsmClient(() => server.url, headers).job(nobody))
    assert.deepEqual([status, code], [401, 'UNAUTHORIZED'])
  }
})

test('pipeline: one that nobody named is refused with those there are, the default one among them', async t => {
  const stages = [{ name: 'a', task: 'a' }]
  const { request } = await served(t, { engine: { pipelines: { nightly: { name: 'nightly', stages } } } })
  const response = await request('/dialects/pipeline/v1/pipeline/scheduled-run-async', post({ pipeline: 'nightyl' }))
  const { detail } = (await response.json()) as { detail: [{ loc: string[]; msg: string; input: unknown }] }
  assert.deepEqual([response.status, detail[0].loc], [422, ['body', 'pipeline']])
  assert.equal(detail[0].msg, 'No pipeline is called "nightyl". Known: default, nightly.')
})

test('falconeri: a datum that is not there is called a datum', async t => {
  const { request } = await served(t)
  const response = await request(`/dialects/falconeri/datums/${nobody}/describe`)
  assert.deepEqual([response.status, await response.text()], [404, 'No datum has this id.'])
})
