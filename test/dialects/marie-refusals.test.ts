/** The forms in which a job can be submitted to Marie, and the envelope of each refusal. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MarieRig, marieRig } from '../harness/marie-rig.ts'

test('marie: a job is submitted as a WorkInfo, as a command with parameters, or as an invoke_action', async t => {
  const rig = await marieRig(t)
  const metadata = {
    project_id: 'p',
    ref_type: 'doc',
    ref_id: '1',
    soft_sla: '2050-01-01T00:00:00',
    policy: 'allow_all',
  }
  const action = { action_type: 'command', command: 'job', action: 'submit', name: 'extract', metadata }
  const sla = '2050-01-01T00:00:00.000Z'
  const bodies: [body: object, data: unknown, soft: string | null][] = [
    [{ name: 'extract', data: { page: 1 }, state: 'CREATED', policy: null, job_level: 0 }, { page: 1 }, null],
    [{ queue: 'extract', metadata }, { metadata }, sla],
    [{ queue_name: 'extract', data: { page: 1 }, metadata, soft_sla: null }, { page: 1 }, sla],
    [{ header: {}, parameters: { name: 'extract', data: { page: 1 }, soft_sla: sla } }, { page: 1 }, sla],
    [
      { header: {}, parameters: { command: 'extract', asset_key: 's3://b/d.pdf', pages: [1, 2], api_key: 'secret' } },
      { asset_key: 's3://b/d.pdf', pages: [1, 2] },
      null,
    ],
    [{ parameters: { command: 'extract', metadata, priority: 4 } }, { metadata }, sla],
    [{ parameters: { command: 'extract', name: 'a.pdf', priority: 4 } }, { name: 'a.pdf' }, null],
    [{ name: 'extract', asset_key: 's3://b/d.pdf', job_level: 1 }, { asset_key: 's3://b/d.pdf' }, null],
    [{ parameters: { ...action, api_key: 'secret' } }, action, sla],
    [{ parameters: { invoke_action: { ...action, api_key: 'secret' } } }, action, sla],
    [{ invoke_action: { ...action, api_key: null } }, action, sla],
  ]
  for (const [body, data, soft] of bodies) {
    const { http, status, result, parameters, message } = await rig.marie.invoke(body)
    assert.deepEqual([http, status], [200, 'OK'], message)
    assert.deepEqual([result.name, result.data, result.soft_sla], ['extract', data, soft], JSON.stringify(body))
    assert.deepEqual([parameters.job_id, parameters.status], [result.id, 'submitted'])
  }
  assert.equal((await rig.dispatch('extract')).length, bodies.length)
  const [row] = await rig.sql<{ n: number }>`select count(*)::int as n from pawl.task where task::text like '%secret%'`
  assert.equal(row!.n, 0, 'a key is not kept')
})

const bad: [what: string, body: unknown, expected: RegExp][] = [
  ['no JSON', '{"name": ', /^Invalid JSON payload/],
  ['no body', '', /^Invalid JSON payload/],
  ['a list', [], /^Invalid JSON payload/],
  ['null', 'null', /^Invalid JSON payload/],
  ['nothing', {}, /^name must be given/],
  ['a command that is no name', { parameters: { command: ['extract'] } }, /^name must have only letters/],
  ['parameters that are none', { parameters: 5 }, /^parameters must be an object/],
  ['a name of other characters', { name: 'a b', data: {} }, /^name must have only letters/],
  ['a name that is no text', { name: 5, data: {} }, /^name must/],
  ['data that is no object', { name: 'a', data: [1] }, /^data must be an object/],
  ['metadata that is none', { name: 'a', metadata: 5 }, /^metadata must be an object/],
  ['a state that is none to begin with', { name: 'a', data: {}, state: 'ACTIVE' }, /^state must be CREATED/],
  ['a priority that is no number', { name: 'a', data: {}, priority: 'high' }, /^priority must be a number/],
  ['a broken retry_limit', { name: 'a', data: {}, retry_limit: 1.5 }, /^retry_limit must be a whole number/],
  ['a negative retry_limit', { name: 'a', data: {}, retry_limit: -1 }, /^retry_limit must be from 0/],
  ['a retry_backoff that is no truth', { name: 'a', data: {}, retry_backoff: 'yes' }, /^retry_backoff must be one of/],
  ['a moment that is none', { name: 'a', data: {}, start_after: 'tomorrow' }, /^start_after must be an ISO 8601 time/],
  ['a moment as a number', { name: 'a', data: {}, keep_until: 1e9 }, /^keep_until must be an ISO 8601 time/],
  ['a negative TTL', { name: 'a', data: {}, expire_in_seconds: -1 }, /^expire_in_seconds must be/],
  ['an execution of no time', { name: 'a', data: {}, run_ttl_seconds: 0 }, /^run_ttl_seconds must be/],
  [
    'a hard SLA before the soft one',
    { name: 'a', data: {}, soft_sla: '2050-01-02T00:00:00', hard_sla: '2050-01-01T00:00:00' },
    /^soft_sla must be before hard_sla/,
  ],
  ['an id that is too long', { name: 'a', data: {}, id: 'x'.repeat(151) }, /^id must have at most 150/],
  [
    'an id that is too long for an address',
    { name: 'a', data: {}, id: 'あ'.repeat(50) },
    /^id must fit into an address/,
  ],
  ['the name of a state as an id', { name: 'a', data: {}, id: 'Active' }, /^id must not be the name of a state/],
  ['an id with a NUL', { name: 'a', data: {}, id: 'x\0' }, /^id must contain no NUL/],
  ['data with a NUL', { name: 'a', data: { x: '\0' } }, /NUL/],
  ['dependencies that are no list', { name: 'a', data: {}, dag_id: 'd', dependencies: 'b' }, /^dependencies must be/],
  ['a command that is not known', { invoke_action: { command: 'nodes', action: 'list' } }, /^invoke_action.command/],
  ['an action that is not known', { invoke_action: { command: 'job', action: 'logs' } }, /^invoke_action.action/],
  ['an invoke_action that is none', { parameters: { invoke_action: 'job' } }, /^invoke_action must be an object/],
]

test('marie: what makes no sense as a job is refused in the envelope, says what is wrong, and leaves nothing', async t => {
  const rig = await marieRig(t)
  for (const [what, body, expected] of bad) {
    await t.test(what, async () => {
      const { http, status, code, message } = await rig.marie.ask('POST', '/api/v1/invoke', body)
      assert.deepEqual([http, status, code], [400, 'error', 'BAD_REQUEST'], message)
      assert.match(message, expected)
    })
  }
  assert.deepEqual((await rig.marie.jobs()).result, [])
})

test('marie: each route tells in the envelope what it cannot do', async t => {
  const rig = await marieRig(t)
  const { marie } = rig
  const nobody = '0198c0de-0000-4000-8000-00000000000a'
  const refused = async (asked: ReturnType<typeof marie.job>, http: number, code: string, message: RegExp) => {
    const answer = await asked
    assert.deepEqual([answer.http, answer.status, answer.code], [http, 'error', code], answer.message)
    assert.match(answer.message, message)
  }
  for (const id of [nobody, 'job-uuid-12345', `${nobody}0`, '%00', '...', '/']) {
    await refused(marie.ask('GET', `/api/jobs/${encodeURIComponent(id)}`), 404, 'NOT_FOUND', /^Job not found$/)
    await refused(marie.ask('GET', `/api/jobs/${encodeURIComponent(id)}/stop`), 404, 'NOT_FOUND', /^Job not found$/)
    await refused(marie.ask('DELETE', `/api/jobs/${encodeURIComponent(id)}`), 404, 'NOT_FOUND', /^Job not found$/)
  }
  for (const state of ['SCHEDULED', 'LEASED', 'bogus']) {
    await refused(
      marie.ask('GET', `/api/jobs/${state}`),
      400,
      'INVALID_STATE',
      new RegExp(`^'${state}' is not a state`),
    )
    await refused(
      marie.ask('GET', `/api/jobs?state=${state}`),
      400,
      'INVALID_STATE',
      new RegExp(`^'${state}' is not a state`),
    )
  }
  for (const limit of ['0', '1001', 'all']) {
    await refused(marie.ask('GET', `/api/jobs?limit=${limit}`), 400, 'BAD_REQUEST', /^limit must be/)
  }
  await refused(marie.ask('GET', '/api/jobs/%zz'), 400, 'BAD_REQUEST', /not valid HTTP/)
  await refused(marie.ask('GET', `/api/jobs/${'x'.repeat(400)}`), 400, 'BAD_REQUEST', /max param length/)
  await refused(marie.ask('GET', '/api/nothing'), 404, 'NOT_FOUND', /No route matches this path/)
  await refused(marie.ask('PUT', '/api/jobs'), 405, 'METHOD_NOT_ALLOWED', /does not support this HTTP method/)
  await refused(
    marie.ask('POST', '/api/v1/invoke', `{"name":"a","data":{"x":"${'x'.repeat(1_100_000)}"}}`),
    413,
    'PAYLOAD_TOO_LARGE',
    /larger than the limit/,
  )
  const form = await rig.request('/dialects/marie/api/v1/invoke', { method: 'POST', body: 'name=a' })
  assert.deepEqual([form.status, ((await form.json()) as { status: string }).status], [415, 'error'])
})

test('marie: a job that is not terminal cannot be deleted, one of a DAG goes with it, and one that is gone is not found', async t => {
  const rig = await marieRig(t)
  const id = await rig.submit({ name: 'extract', data: {} })
  for (const state of ['CREATED', 'ACTIVE']) {
    if (state === 'ACTIVE') await rig.dispatch('extract')
    const { http, code, message } = await rig.marie.remove(id)
    assert.deepEqual([http, code, message], [409, 'INVALID_STATE', `Job is ${state} and cannot be deleted`])
  }
  const { epoch } = await rig.engine.task(id)
  await rig.client.succeed(id, epoch)
  assert.deepEqual((await rig.marie.remove(id)).result, 'Job deleted')
  assert.equal((await rig.marie.remove(id)).code, 'NOT_FOUND')
  const stage = await rig.submit({ name: 'extract', data: {}, dag_id: 'd' })
  await rig.work('extract')
  const { http, code, message } = await rig.marie.remove(stage)
  assert.deepEqual([http, code], [409, 'CONFLICT'])
  const [, dag] = /Pawl’s job (\S+)$/.exec(message)!
  assert.equal((await rig.request(`/v1/jobs/${dag}`, { method: 'DELETE' })).status, 204)
  assert.equal((await rig.marie.job(stage)).code, 'NOT_FOUND')
})

test('marie: a deleted job is not submitted again under its id', async t => {
  const rig = await marieRig(t)
  const body = { id: 'once', name: 'extract', data: {} }
  await rig.submit(body)
  await rig.work('extract')
  await rig.marie.remove('once')
  for (const hours of [0, 25]) {
    await rig.advance(hours * 3600)
    const { http, code } = await rig.marie.invoke(body)
    assert.deepEqual([http, code], [409, 'DUPLICATE'])
  }
})

async function as(rig: MarieRig, secret: string | undefined, method: string, path: string, json?: unknown) {
  const headers: Record<string, string> = secret === undefined ? {} : { authorization: `Bearer ${secret}` }
  const response = await rig.request(`/dialects/marie${path}`, { method, headers, ...(json !== undefined && { json }) })
  const { status, code = null } = (await response.json()) as { status: string; code?: string }
  return [response.status, status, code]
}

test('marie: who may do what is decided by the key, and told in the envelope', async t => {
  const rig = await marieRig(t, {
    server: { keysOnly: true },
    before: e => e.createKey({ name: 'first', role: 'admin' }),
  })
  const [producer, viewer, bounded] = await Promise.all([
    rig.engine.createKey({ name: 'p', role: 'producer' }),
    rig.engine.createKey({ name: 'v', role: 'viewer' }),
    rig.engine.createKey({ name: 'b', role: 'producer', queues: ['ocr'] }),
  ])
  const job = { name: 'extract', data: {} }
  const unauthorized = [401, 'error', 'UNAUTHORIZED']
  const forbidden = [403, 'error', 'FORBIDDEN']
  const ok = [200, 'OK', null]
  assert.deepEqual(await as(rig, undefined, 'GET', '/api/jobs'), unauthorized)
  assert.deepEqual(await as(rig, 'your-token', 'POST', '/api/v1/invoke', job), unauthorized)
  assert.deepEqual(await as(rig, viewer.secret, 'GET', '/api/jobs'), ok)
  assert.deepEqual(await as(rig, viewer.secret, 'POST', '/api/v1/invoke', job), forbidden)
  assert.deepEqual(await as(rig, producer.secret, 'POST', '/api/v1/invoke', job), ok)
  assert.deepEqual(await as(rig, producer.secret, 'GET', '/api/jobs/any/stop'), forbidden)
  assert.deepEqual(await as(rig, bounded.secret, 'POST', '/api/v1/invoke', job), forbidden)
  assert.deepEqual(await as(rig, bounded.secret, 'POST', '/api/v1/invoke', { ...job, queue: 'ocr' }), ok)
  assert.deepEqual(await as(rig, bounded.secret, 'POST', '/api/v1/invoke', { ...job, dag_id: 'd' }), forbidden)
})

test('marie: a page of another site cannot stop a job by having its address fetched', async t => {
  const rig = await marieRig(t)
  const id = await rig.submit({ name: 'extract', data: {} })
  const path = `/dialects/marie/api/jobs/${id}/stop`
  for (const site of ['cross-site', 'same-site']) {
    const response = await rig.request(path, { headers: { 'sec-fetch-site': site } })
    assert.equal(response.status, 403)
  }
  assert.equal(await rig.marie.stateOf(id), 'CREATED')
  assert.equal((await rig.request(path, { headers: { 'sec-fetch-site': 'none' } })).status, 200)
})
