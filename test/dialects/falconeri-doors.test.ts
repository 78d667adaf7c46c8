/** Falconeri's authentication and its error messages. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Role } from '../../src/kernel/role.ts'
import { falconeriRig, type Job, speaking } from '../harness/falconeri.ts'

const basic = (user: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`,
})
const plain = 'text/plain; charset=utf-8'
const nobody = '00000000-0000-7000-8000-000000000000'

/** A server that requires keys. */
function behindKeys(t: Parameters<typeof falconeriRig>[0]) {
  return falconeriRig(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'root', role: 'admin' }),
  })
}

test('the password is a key of a producer and worker, and opens every route as the original’s does', async t => {
  const f = await behindKeys(t)
  await f.inbox.write({ a: 'A' })
  const { secret } = await f.engine.createKey({ name: 'pods', roles: ['producer', 'worker'] })
  const may = basic('falconeri', secret)
  const well = async (method: string, path: string, json?: unknown) => {
    const { status, text } = await f.ask(method, path, json, may)
    assert.ok(status === 200 || status === 204, `${method} ${path}: ${status} ${text}`)
    return text === '' ? undefined : JSON.parse(text)
  }
  const { job } = (await well('POST', '/jobs', { job: f.spec() })) as { job: Job }
  for (const path of [`/jobs?job_name=${job.job_name}`, '/jobs/list', `/jobs/${job.id}`, `/jobs/${job.id}/describe`]) {
    await well('GET', path)
  }
  const pod = { pod_name: 'pod' }
  const { datum } = await well('POST', `/jobs/${job.id}/reserve_next_datum`, { ...pod, node_name: '' })
  await well('GET', `/datums/${datum.id}/describe`)
  await well('POST', `/datums/${datum.id}/output_files`, { ...pod, output_files: [] })
  await well('PATCH', `/datums/${datum.id}/output_files`, { ...pod, output_files: [] })
  const error = { status: 'error', output: '', error_message: 'no', backtrace: '' }
  await well('PATCH', `/datums/${datum.id}`, { ...pod, datum: error })
  const again = await well('POST', `/jobs/${job.id}/retry`)
  assert.equal(again.job.status, 'running')
})

test('without a key, with a wrong one or another user’s name, nothing is told but the version', async t => {
  const f = await behindKeys(t)
  const { secret } = await f.engine.createKey({ name: 'pods', role: 'worker' })
  const strangers = [
    {},
    basic('falconeri', 'guess'),
    basic('falconeri', ''),
    basic('postgres', secret),
    { authorization: `Bearer ${secret}` },
    { authorization: 'Basic' },
    { authorization: `Basic ${secret}` },
  ]
  const root = `${f.server.url}/dialects/falconeri`
  for (const headers of strangers as Record<string, string>[]) {
    for (const [method, path] of [
      ['GET', '/jobs/list'],
      ['POST', '/jobs'],
      ['PATCH', `/datums/${nobody}`],
    ]) {
      const response = await fetch(root + path!, { method: method!, headers })
      assert.equal(response.status, 401, `${method} ${path} ${JSON.stringify(headers)}`)
      assert.match(response.headers.get('www-authenticate')!, /^Basic realm=/)
      assert.equal(response.headers.get('content-type'), plain)
    }
    const version = await f.ask('GET', '/version', undefined, headers)
    assert.deepEqual([version.status, version.type], [200, plain])
  }
})

test('a key does here what its role may, and for some queues only if it is for commands', async t => {
  const f = await behindKeys(t)
  await f.inbox.write({ a: 'A' })
  const submit = async (role: Role, queues?: string[]) => {
    const roles = role === 'worker' ? [role, 'producer' as const] : [role]
    const { secret } = await f.engine.createKey({ name: role, roles, ...(queues && { queues }) })
    return (await f.ask('POST', '/jobs', { job: f.spec() }, basic('falconeri', secret))).status
  }
  assert.deepEqual([await submit('viewer'), await submit('producer'), await submit('operator')], [403, 200, 200])
  assert.deepEqual([await submit('worker', ['mail']), await submit('worker', ['mail', 'command'])], [403, 200])
  const { secret } = await f.engine.createKey({ name: 'mail', roles: ['producer', 'worker'], queues: ['mail'] })
  const mail = basic('falconeri', secret)
  const { jobs } = JSON.parse((await f.ask('GET', '/jobs/list', undefined, mail)).text) as { jobs: Job[] }
  const id = jobs[0]!.id
  const pod = { node_name: 'n', pod_name: 'p' }
  assert.equal((await f.ask('POST', `/jobs/${id}/reserve_next_datum`, pod, mail)).status, 403)
  const [task] = (await f.engine.jobTasks(id)).items
  assert.equal(task!.state, 'queued')
  const files = { pod_name: 'p', output_files: [] }
  for (const [method, path, body] of [
    ['PATCH', `/datums/${task!.id}`, { pod_name: 'p', datum: { status: 'done' } }],
    ['POST', `/datums/${task!.id}/output_files`, files],
    ['PATCH', `/datums/${task!.id}/output_files`, files],
  ] as const) {
    assert.equal((await f.ask(method, path, body, mail)).status, 403, `${method} ${path}`)
  }
})

test('what is not there, and what nobody can mean, is told in plain words', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const [task] = (await f.engine.jobTasks(id)).items
  const datum = `/datums/${task!.id}`
  const pod = { pod_name: 'pod' }
  const rows: [number, string, string, unknown?][] = [
    [404, 'GET', `/jobs/${nobody}`],
    [404, 'GET', '/jobs/x'],
    [404, 'GET', `/jobs/${nobody}/describe`],
    [404, 'GET', '/jobs?job_name=nobody'],
    [400, 'GET', '/jobs'],
    [404, 'POST', `/jobs/${nobody}/retry`],
    [404, 'POST', `/jobs/${nobody}/reserve_next_datum`, { node_name: 'n', ...pod }],
    [404, 'GET', `/datums/${nobody}/describe`],
    [404, 'PATCH', `/datums/${nobody}`, { ...pod, datum: { status: 'done' } }],
    [404, 'POST', `/datums/${nobody}/output_files`, { ...pod, output_files: [] }],
    [404, 'GET', '/nothing'],
    [400, 'POST', '/jobs', []],
    [400, 'POST', '/jobs', {}],
    [400, 'POST', '/jobs', { job: 'x' }],
    [400, 'POST', `/jobs/${id}/reserve_next_datum`],
    [400, 'POST', `/jobs/${id}/reserve_next_datum`, pod],
    [400, 'POST', `/jobs/${id}/reserve_next_datum`, { node_name: 'n' }],
    [400, 'POST', `/jobs/${id}/reserve_next_datum`, { node_name: 'n', pod_name: '' }],
    [400, 'POST', `/jobs/${id}/reserve_next_datum`, { node_name: 'n', pod_name: 'a/b' }],
    [400, 'POST', `/jobs/${id}/reserve_next_datum`, { node_name: 'n', pod_name: 'a\0' }],
    [400, 'POST', `/jobs/${id}/reserve_next_datum`, { node_name: 'n', pod_name: 'a'.repeat(500) }],
    [400, 'PATCH', datum, { datum: { status: 'done' } }],
    [400, 'PATCH', datum, pod],
    [400, 'PATCH', datum, { ...pod, datum: { status: 'ready' } }],
    [400, 'PATCH', datum, { ...pod, datum: { status: 'canceled' } }],
    [400, 'PATCH', datum, { ...pod, datum: { status: 'done', output: 7 } }],
    [400, 'PATCH', datum, { ...pod, datum: { status: 'done', error_message: 'x' } }],
    [400, 'PATCH', datum, { ...pod, datum: { status: 'done', backtrace: 'x' } }],
    [400, 'PATCH', datum, { ...pod, datum: { status: 'error', output: '' } }],
    [403, 'PATCH', datum, { ...pod, datum: { status: 'done' } }],
    [400, 'POST', `${datum}/output_files`, pod],
    [400, 'POST', `${datum}/output_files`, { ...pod, output_files: ['x'] }],
    [400, 'POST', `${datum}/output_files`, { ...pod, output_files: [{ uri: 7 }] }],
    [403, 'POST', `${datum}/output_files`, { ...pod, output_files: [] }],
    [400, 'PATCH', `${datum}/output_files`, { ...pod, output_files: [{ id: nobody, status: 'running' }] }],
    [400, 'PATCH', `${datum}/output_files`, { ...pod, output_files: [{ status: 'done' }] }],
    [403, 'PATCH', `${datum}/output_files`, { ...pod, output_files: [{ id: nobody, status: 'done' }] }],
  ]
  for (const [status, method, path, body] of rows) {
    const answer = await f.ask(method, path, body)
    const what = `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`
    assert.deepEqual([answer.status, answer.type, answer.text.length > 10], [status, plain, true], what)
  }
  const { state, seq } = await f.engine.task(task!.id)
  assert.deepEqual([state, seq], ['queued', 1])
})

test('what a pipeline spec does not know is refused by its place, and nothing runs; beside the spec it is passed over', async t => {
  const f = await falconeriRig(t)
  const refused = async (more: Record<string, unknown>, ...expected: RegExp[]) => {
    const { status, type, text } = await f.ask('POST', '/jobs', { job: f.spec(more) })
    assert.deepEqual([status, type], [422, plain], text)
    for (const word of expected) assert.match(text, word)
  }
  await refused({ pipelin: {} }, /^pipelin: unknown field; did you mean 'pipeline'\?$/m)
  await refused({ transform: { cmd: ['x'], image: 'y', imge: 'z' } }, /^transform\.imge: /m)
  await refused({ input: { atom: { URI: 'gs://b/', repo: 'r', glob: '/**' } } }, /^input\.atom\.URI: /m, /\.glob: /)
  await refused({ input: { join: [] } }, /^input\.join: /m)
  await refused({ egress: { URI: f.outbox.uri, more: 1 } }, /^egress\.more: /m)
  await refused({ egress: { URI: 'file://./here' } }, /absolute/)
  await refused({ datum_tries: 0, job_timeout: 'soon' }, /datum_tries/, /job_timeout/)
  assert.deepEqual(await f.get('/jobs/list'), { jobs: [] })
  const answer = await f.ask('POST', '/jobs', { job: f.spec(), note: 'mine' })
  assert.equal(answer.status, 200, answer.text)
})

test('a request under an idempotency key makes one job, however often it is sent', async t => {
  const f = await falconeriRig(t)
  const send = async () =>
    JSON.parse((await f.ask('POST', '/jobs', { job: f.spec() }, { 'idempotency-key': 'k' })).text)
  assert.deepEqual(await send(), await send())
  assert.equal((await f.engine.jobs()).items.length, 1)
})

test('at the root it is found where its clients look, who know no prefix', async t => {
  const f = await falconeriRig(t, { server: { rootDialect: 'falconeri' } })
  await f.inbox.write({ a: 'A' })
  const atRoot = speaking(new URL(f.server.url).origin, f.inbox, f.outbox)
  assert.match((await atRoot.ask('GET', '/version')).text, /^\d/)
  const { id } = await atRoot.run()
  const pod = atRoot.pod('pod')
  assert.equal((await pod.done((await pod.take(id)).datum.id)).status, 200)
  assert.equal((await atRoot.job(id)).status, 'done')
})
