/** Behaviour that all dialects share: their addresses, and their translation of Pawl's own answers. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inVocabulary } from '../../src/cli/vocabulary.ts'
import { connect } from '../../src/client/client.ts'
import { type DialectName, dialectNames } from '../../src/protocol/dialects.ts'
import { startServer } from '../../src/server/server.ts'
import { served } from '../harness/served.ts'

/** The fields of an answer that these tests read. */
interface Answered {
  readonly code: string
  readonly state: string | null
  readonly stages: readonly [Answered]
  readonly items: readonly [Answered & { readonly type: string; readonly from: string | null; readonly to: string }]
}

const get = async (url: string) => {
  const response = await fetch(url)
  const body = (await response.json().catch(() => undefined)) as Answered
  return { status: response.status, body }
}

test('a server that is not told to serve a dialect serves none, and says how to get one', async t => {
  const { engine } = await served(t)
  const server = await startServer(engine, { port: 0 })
  t.after(() => server.close())
  for (const name of dialectNames) {
    const { status, body } = await get(`${server.url}/dialects/${name}/v1/jobs`)
    assert.deepEqual([status, body.code], [404, 'ROUTE_NOT_FOUND'])
    assert.match(JSON.stringify(body), new RegExp(`--dialect ${name}`))
  }
})

test('an address that a dialect does not know is refused in its own words, not in ours', async t => {
  const { server } = await served(t)
  for (const name of dialectNames) {
    const response = await fetch(`${server.url}/dialects/${name}/nothing/here`)
    assert.equal(response.status, 404)
    assert.notEqual(response.headers.get('content-type'), 'application/problem+json', name)
  }
})

/** A method that a path does not support, the methods that it supports, and the expected error. */
const wrong: Readonly<Record<DialectName, readonly [method: string, path: string, allow: string, body: RegExp]>> = {
  marie: ['PUT', '/api/jobs/1', 'GET, HEAD, DELETE', /^{"status":"error",.*"code":"METHOD_NOT_ALLOWED"}$/],
  jobnik: ['PATCH', '/v1/jobs', 'GET, HEAD, POST', /^{"message":".*","code":"METHOD_REFUSED"}$/],
  falconeri: ['DELETE', '/jobs', 'POST, GET, HEAD', /^This path does not support this HTTP method/],
  pipeline: ['GET', '/v1/pipeline/scheduled-run-async', 'POST', /^{"detail":"Method Not Allowed"}$/],
  jsm: ['GET', '/jobs/1/start/', 'POST', /^{"error_class":"PermanentError","code":"METHOD_REFUSED",/],
}

test('a method that an address of a dialect does not know is refused in its words, with those it does', async t => {
  const { server } = await served(t)
  for (const name of dialectNames) {
    const [method, path, allow, body] = wrong[name]
    for (const asked of [method, 'OPTIONS']) {
      const response = await fetch(`${server.url}/dialects/${name}${path}`, { method: asked })
      assert.deepEqual([response.status, response.headers.get('allow')], [405, allow], `${name} ${asked}`)
      assert.match(await response.text(), body)
    }
  }
  const head = await fetch(`${server.url}/dialects/jobnik/v1/jobs`, { method: 'HEAD' })
  assert.deepEqual([head.status, await head.text()], [200, ''])
})

test('it is so too where a dialect is served at the root', async t => {
  const { server } = await served(t, { server: { rootDialect: 'jobnik' } })
  const response = await fetch(new URL('/v1/jobs', server.url), { method: 'PUT' })
  assert.deepEqual([response.status, response.headers.get('allow')], [405, 'GET, HEAD, POST'])
  const own = await fetch(`${server.url}/v1/jobs`, { method: 'PUT' })
  assert.deepEqual([own.status, own.headers.get('allow')], [405, 'POST, GET, HEAD'])
})

test('a dialect that is switched off is not there', async t => {
  const { server } = await served(t, { server: { dialects: ['jsm'] } })
  const { status, body } = await get(`${server.url}/dialects/jobnik/v1/jobs`)
  assert.deepEqual([status, body.code], [404, 'ROUTE_NOT_FOUND'])
})

test('with a dialect at the root, Pawl’s own routes, client and health are found under /pawl, and its health at / too', async t => {
  const { server, engine } = await served(t, { server: { dialects: ['jobnik'], rootDialect: 'jobnik' } })
  assert.match(server.url, /\/pawl$/)
  const { id } = await engine.enqueue('mail', { to: 'Ada' })
  await using client = connect({ server: server.url })
  assert.equal((await client.task(id)).state, 'queued')
  for (const url of [server.url, server.url.replace(/\/pawl$/, '')]) {
    assert.deepEqual(await get(`${url}/readyz`), { status: 200, body: { ok: true } })
  }
  const { status, body } = await get(`${server.url}/v1/nothing`)
  assert.deepEqual([status, body.code], [404, 'ROUTE_NOT_FOUND'])
})

test('every vocabulary has words for jobs, stages, tasks and events, or null', async t => {
  const { engine } = await served(t)
  const { id, stages } = await engine.submit({ name: 'invoices', stages: [{ name: 'extract', task: 'extract' }] })
  const [task] = (await engine.jobTasks(id)).items
  const states = async (vocabulary: DialectName) => {
    const api = inVocabulary(engine, vocabulary)
    const job = await api.job(id)
    const [one] = (await api.jobTasks(id)).items
    const stage = await api.stage(stages[0]!.id)
    return [job.state, job.stages[0]!.state, stage.state, one!.state]
  }
  assert.deepEqual(await states('jobnik'), ['PENDING', 'PENDING', 'PENDING', 'PENDING'])
  assert.deepEqual(await states('marie'), ['CREATED', null, null, 'CREATED'])
  assert.deepEqual(await states('falconeri'), ['running', null, null, 'ready'])
  assert.deepEqual(await states('pipeline'), ['pending', null, null, null])
  assert.deepEqual(await states('jsm'), [null, null, null, 'queued'])
  const [event] = (await inVocabulary(engine, 'jsm').taskEvents(task!.id)).items
  assert.deepEqual([event!.type, event!.from, event!.to], ['job_queued', null, 'queued'])
})

test('our own routes speak our own words only, as their schemas say', async t => {
  const { server } = await served(t)
  const refused = await get(`${server.url}/v1/jobs?vocabulary=jobnik`)
  assert.deepEqual([refused.status, refused.body.code], [400, 'OPTION_UNKNOWN'])
})

test('the stages behind a failed one are, in Jobnik’s words, what they were before', async t => {
  const { engine } = await served(t)
  const { id } = await engine.submit({
    name: 'invoices',
    stages: [
      { name: 'extract', task: 'extract' },
      { name: 'classify', task: 'classify' },
      { name: 'publish', task: 'publish', gate: true },
    ],
  })
  const [claimed] = await engine.claims({ worker: 'w', queues: ['extract'], start: true })
  await engine.fail(claimed!.id, claimed!.epoch, { error: { message: 'no', permanent: true } })
  const job = await inVocabulary(engine, 'jobnik').job(id)
  assert.deepEqual([job.state, ...job.stages.map(({ state }) => state)], ['FAILED', 'FAILED', 'CREATED', 'WAITING'])
})

test('a claim that starts what it claims is answered with running tasks', async t => {
  const { engine } = await served(t)
  const { id } = await engine.enqueue('mail', {})
  const [claimed] = await engine.claims({ worker: 'w', queues: ['mail'], start: true })
  assert.deepEqual([claimed!.id, (await engine.task(id)).state], [id, 'running'])
})
