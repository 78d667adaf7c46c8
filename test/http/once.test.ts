/** A request that is sent again under its Idempotency-Key gets the first answer again, and has no second effect. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import type { OperationEntry } from '../../src/protocol/operation.ts'
import { namedOperations, type OperationName, operations } from '../../src/protocol/operations.ts'
import { apiPage } from '../../src/server/api-page.ts'
import { openApi } from '../../src/server/open-api.ts'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { type Served, served } from '../harness/served.ts'
import { taskIn } from '../harness/task-in.ts'

const gate: JobSpec = { name: 'gated', stages: [{ name: 'gate', gate: true }] }
const failed: JobSpec = { name: 'failed', stages: [{ name: 'a', task: 'a', retry: { attempts: 1 } }] }
const open: JobSpec = { name: 'open', open: true, stages: [{ name: 'a', task: 'a', open: true }] }

/** The target of each request that changes something: the id for its path, and its body. */
const ready: Partial<Record<OperationName, (run: Served) => Promise<{ id?: string; json?: unknown }>>> = {
  submit: async () => ({ json: { name: 'j', stages: [{ name: 'a', task: 'a' }] } }),
  patchJob: async run => ({ id: (await run.engine.submit(open)).id, json: { priority: 5, metadata: { a: 1 } } }),
  patchStage: async run => ({ id: (await run.engine.submit(open)).stages[0]!.id, json: { metadata: { a: 1 } } }),
  patchTask: async run => ({ id: (await run.engine.enqueue('a', 1)).id, json: { metadata: { a: 1 } } }),
  deleteJob: async run => ({ id: await failedJob(run) }),
  startJob: async run => ({ id: (await run.engine.submit({ ...open, start: false })).id }),
  pauseJob: async run => ({ id: (await run.engine.submit(open)).id }),
  resumeJob: async run => ({ id: (await run.engine.pauseJob((await run.engine.submit(open)).id)).id }),
  cancelJob: async run => ({ id: (await run.engine.submit(open)).id, json: { mode: 'hard', reason: 'x' } }),
  retryJob: async run => ({ id: await failedJob(run), json: { clone: true } }),
  sealJob: async run => ({ id: (await run.engine.submit(open)).id }),
  addStages: async run => ({ id: (await run.engine.submit(open)).id, json: [{ name: 'b', task: 'b' }] }),
  approve: async run => ({ id: (await run.engine.submit(gate)).stages[0]!.id, json: { comment: 'fine' } }),
  reject: async run => ({ id: (await run.engine.submit(gate)).stages[0]!.id }),
  hold: async run => ({ id: (await run.engine.submit(open)).stages[0]!.id }),
  cancelStage: async run => ({ id: (await run.engine.submit(open)).stages[0]!.id }),
  retryStage: async run => ({ id: (await run.engine.job(await failedJob(run))).stages[0]!.id }),
  sealStage: async run => ({ id: (await run.engine.submit(open)).stages[0]!.id }),
  addTasks: async run => ({ id: (await run.engine.submit(open)).stages[0]!.id, json: [{ payload: 1 }] }),
  enqueueMany: async () => ({ json: [{ type: 'a', payload: 1 }, { type: 'b' }] }),
  cancel: async run => ({ id: (await run.engine.enqueue('a', 1)).id }),
  resume: async run => ({ id: (await taskIn(run, 'cancelled')).id }),
  retry: async run => ({ id: (await taskIn(run, 'failed')).id }),
  deleteTask: async run => ({ id: (await taskIn(run, 'succeeded')).id }),
  deadLetter: async run => ({ id: (await run.engine.enqueue('a', 1)).id, json: { reasonCode: 'policy_violation' } }),
  redrive: async run => ({ json: { ids: [(await taskIn(run, 'dead_lettered')).id] } }),
  revokeKey: async run => ({ id: (await run.engine.createKey({ name: 'k', role: 'viewer' })).id }),
  loseWorker: async run => {
    await run.engine.enqueue('a', 1)
    await run.engine.claims({ worker: 'w-1', queues: ['a'], start: true })
    return { id: 'w-1', json: { reason: 'x' } }
  },
  claims: async run => {
    await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'a' }])
    return { json: { worker: 'sh', queues: ['a'], claim: 2 } }
  },
}

/** A worker's report of a task that it holds in the first epoch. */
const reports: Partial<Record<OperationName, (id: string) => object>> = {
  sync: id => ({ settled: [{ id, epoch: 1, outcome: 'succeeded' }] }),
  start: () => ({ epoch: 1 }),
  heartbeat: () => ({ epoch: 1 }),
  succeed: () => ({ epoch: 1 }),
  fail: () => ({ epoch: 1, error: { message: 'x' } }),
  skip: () => ({ epoch: 1 }),
  release: () => ({ epoch: 1 }),
  cancelled: () => ({ epoch: 1 }),
  reportArtifacts: () => ({ epoch: 1, artifacts: [{ name: 'x', uri: 's3://bucket/x', state: 'registered' }] }),
}

/** Read from the OpenAPI document. */
const document = openApi().paths as Record<string, Record<string, { parameters: { name: string }[] }>>
const offersKey = ({ path, method }: OperationEntry) =>
  document[path]![method.toLowerCase()]!.parameters.some(({ name }) => name === 'Idempotency-Key')
const repeatable = namedOperations.filter(([, route]) => offersKey(route))

/** Removes the remaining time of leases, which is shorter in a repeated answer. */
function lasting(answer: unknown): unknown {
  if (!Array.isArray(answer)) return answer
  return answer.map(({ leaseSeconds: _, leaseUntil: _until, ...rest }) => rest)
}

test('every POST offers an Idempotency-Key, but for those that need none and the one that would keep a secret', () => {
  const without = namedOperations
    .filter(([, route]) => route.method === 'POST' && !offersKey(route))
    .map(([operation]) => operation)
  assert.deepEqual(without.sort(), [...Object.keys(reports), 'createKey'].sort())
  const page = apiPage()
  for (const [operation, route] of namedOperations) {
    const row = page.slice(page.indexOf(`<tr id="${operation}">`)).split('</tr>')[0]!
    assert.equal(row.includes('Idempotency-Key'), offersKey(route), `the page and the document differ on ${operation}`)
  }
})

for (const operation of Object.keys(reports) as OperationName[]) {
  test(`${operation} sent twice has no second effect, whatever key comes with it`, async t => {
    const run = await served(t)
    const { id } = await taskIn(run, 'running')
    if (operation === 'cancelled') await run.engine.cancel(id)
    const path = operations[operation].path.replace('{id}', id).replace('{worker}', 'w')
    const ask = { method: 'POST', json: reports[operation]!(id), headers: { 'idempotency-key': 'k' } }
    const first = await run.request(path, ask)
    assert.equal(first.status, 200, await first.text())
    const before = await eventsWritten(run)
    const again = await run.request(path, ask)
    assert.equal(again.status, 200, await again.text())
    assert.equal(await eventsWritten(run), before)
  })
}

for (const [operation, route] of repeatable) {
  test(`${operation} sent twice under one key is done once, and answered alike`, async t => {
    const run = await served(t)
    const { id = '', json } = await ready[operation]!(run)
    const ask = { method: route.method, json, headers: { 'idempotency-key': 'the key' } }
    const path = route.path.replace('{id}', id)
    const first = await run.request(path, ask)
    const firstText = await first.text()
    assert.equal(first.status, route.status, firstText)
    const before = await eventsWritten(run)
    const again = await run.request(path, ask)
    assert.equal(again.status, route.status)
    assert.deepEqual(lasting(JSON.parse((await again.text()) || 'null')), lasting(JSON.parse(firstText || 'null')))
    assert.equal(await eventsWritten(run), before)
    const other = await run.request('/v1/tasks', { ...ask, method: 'POST', json: { type: 'another' } })
    assert.equal(other.status, 422)
  })
}

test('a key that was used for a request that was refused is free', async t => {
  const run = await served(t)
  const headers = { 'idempotency-key': 'k' }
  const wrong = { method: 'POST', headers, json: { type: 'a', priority: 'high' } }
  assert.equal((await run.request('/v1/tasks', wrong)).status, 400)
  const unknown = { method: 'POST', headers, json: {} }
  assert.equal((await run.request('/v1/tasks/0190a000-0000-7000-8000-000000000000/cancel', unknown)).status, 404)
  assert.equal((await run.request('/v1/tasks', { ...wrong, json: { type: 'a' } })).status, 201)
})

test('a key used for a job is not taken for the same word on a task', async t => {
  const run = await served(t)
  const { id } = await run.engine.submit(open)
  const ask = { method: 'POST', headers: { 'idempotency-key': 'k' }, json: {} }
  assert.equal((await run.request(`/v1/jobs/${id}/cancel`, ask)).status, 200)
  assert.equal((await run.request(`/v1/tasks/${id}/cancel`, ask)).status, 422)
})

test('names and keys in any script go over HTTP', async t => {
  const run = await served(t)
  const call = { actor: '李 50%', idempotencyKey: 'ключ %41' }
  const { id } = await run.client.enqueue('a', 1, call)
  assert.equal((await run.client.taskEvents(id)).items[0]!.actor, call.actor)
  assert.equal((await run.engine.enqueueMany([{ type: 'a', payload: 1 }], call))[0]!.id, id)
})

test('an answer is kept for a day', async t => {
  const run = await served(t)
  const ask = { method: 'POST', headers: { 'idempotency-key': 'k' }, json: { type: 'a' } }
  const idOf = async () => ((await (await run.request('/v1/tasks', ask)).json()) as { id: string }).id
  const first = await idOf()
  await run.advance(86_400 - 60)
  assert.equal(await idOf(), first)
  await run.advance(120)
  assert.notEqual(await idOf(), first)
})

test('two holders of keys may use the same word', async t => {
  const run = await served(t)
  const secrets = await Promise.all(
    ['ada', 'bea'].map(async name => (await run.engine.createKey({ name, role: 'producer' })).secret),
  )
  for (const key of secrets) {
    const client = connect({ server: run.server.url, key, patienceSeconds: 0 })
    await client.enqueue('a', key, { idempotencyKey: 'k' })
    await client.enqueue('a', key, { idempotencyKey: 'k' })
  }
  assert.equal((await run.engine.tasks()).items.length, 2)
})

test('a large job sent twice under one key at once is there once', async t => {
  const run = await served(t)
  const spec = {
    name: 'large',
    stages: [{ name: 'a', task: 'a', payloads: Array.from({ length: 12_000 }, (_, n) => n) }],
  }
  const sent = [1, 2].map(() => run.client.submit(spec, { idempotencyKey: 'k' }))
  const [one, two] = await Promise.all(sent)
  assert.equal(one!.id, two!.id)
  assert.equal((await run.engine.jobs()).items.length, 1)
  assert.equal((await run.engine.job(one!.id)).progress.total, 12_000)
})

test('the secret of a key is not kept for those who ask again', async t => {
  const run = await served(t)
  const ask = { method: 'POST', headers: { 'idempotency-key': 'k' }, json: { name: 'a', role: 'viewer' } }
  assert.equal((await run.request('/v1/keys', ask)).status, 400)
  assert.deepEqual(await run.engine.keys(), [])
})

test('the trace of a request is kept with what it made, unless that has its own', async t => {
  const run = await served(t)
  const [theirs, own] = ['a', 'b'].map(digit => `00-${digit.repeat(32)}-${'1'.repeat(16)}-01`) as [string, string]
  const post = async (path: string, traceparent: string, body: string, type = 'application/json') => {
    const response = await run.request(path, { method: 'POST', headers: { traceparent, 'content-type': type }, body })
    return (await response.json()) as { id: string; traceparent?: string }
  }
  const spec = 'name: a\nstages: [{ name: a, task: a }]'
  assert.equal((await post('/v1/jobs', theirs, spec, 'application/yaml')).traceparent, theirs)
  assert.equal((await post('/v1/jobs', theirs, `${spec}\ntraceparent: ${own}`, 'application/yaml')).traceparent, own)
  assert.equal((await post('/v1/jobs', theirs, '{"name":"a","stages":[]}')).traceparent, theirs)
  const traceOf = async ({ id }: { id: string }) => (await run.engine.task(id)).traceparent
  assert.equal(await traceOf(await post('/v1/tasks', theirs, '{"type":"a"}')), theirs)
  assert.equal(await traceOf(await post('/v1/tasks', theirs, `{"type":"a","traceparent":"${own}"}`)), own)
  assert.equal(await traceOf(await post('/v1/tasks', '00-broken', '{"type":"a"}')), null)
  assert.equal(await traceOf(await run.client.enqueue('a', 1, { traceparent: own })), own)
  assert.equal((await run.client.submit({ name: 'a', stages: [] }, { traceparent: own })).traceparent, own)
})

/** Counted in the rows: the feed may still be waiting for somebody else's transaction. */
async function eventsWritten({ sql }: Served): Promise<number> {
  const [row] = await sql<{ n: number }>`
    select sum(seq)::int as n
      from (select seq from pawl.job union all select seq from pawl.stage union all select seq from pawl.task) as x`
  return row!.n
}

async function failedJob(run: Served): Promise<string> {
  const { id } = await run.engine.submit(failed)
  const { claimed } = await run.sync({ queues: ['a'], claim: 1 })
  await run.sync({
    settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'failed' as const, error: { message: 'x' } })),
  })
  return id
}
