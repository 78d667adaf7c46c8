/** The async pipeline: requests and refusals, lists, custom pipelines, keys and traces. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { parse } from 'yaml'
import { findRoot } from '../../scripts/job-schema-page.ts'
import { defaultPipeline } from '../../src/dialects/pipeline/dialect.ts'
import { served } from '../harness/served.ts'
import { pipelineClient } from './pipeline-client.ts'
import { rig } from './pipeline-rig.ts'

const bounded = { timeout: 600_000 }
const base = '/dialects/pipeline/v1/pipeline'
const root = findRoot(import.meta.dirname)

interface Refused {
  readonly detail: string | { readonly type: string; readonly loc: (string | number)[]; readonly msg: string }[]
}

test('refusals', bounded, async t => {
  const r = await rig(t)
  const post = (body: string, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
    r.request(`${base}/scheduled-run-async`, { method: 'POST', body, headers })
  const refusalOf = async (asked: Promise<Response>) => {
    const response = await asked
    return { status: response.status, detail: ((await response.json()) as Refused).detail }
  }
  /** The locations in a 422 error. */
  const places = async (asked: Promise<Response>) => {
    const { status, detail } = await refusalOf(asked)
    assert.ok(Array.isArray(detail), JSON.stringify(detail))
    return [status, ...detail.map(({ loc }) => loc.join('.'))]
  }

  await t.test('a job that nobody knows is 404 with its id, wherever it is asked for', async () => {
    const id = randomUUID()
    assert.deepEqual(await refusalOf(r.request(`${base}/jobs/${id}`)), { status: 404, detail: `Job ${id} not found` })
    const cancel = r.request(`${base}/jobs/${id}/cancel`, { method: 'POST' })
    assert.deepEqual(await refusalOf(cancel), { status: 404, detail: `Job ${id} not found` })
    assert.deepEqual(await refusalOf(r.request(`${base}/jobs/no-id`)), { status: 404, detail: 'Job no-id not found' })
  })

  await t.test('an address that is not there is 404', async () => {
    assert.deepEqual(await refusalOf(r.request(`${base}/nothing`)), { status: 404, detail: 'Not Found' })
  })

  await t.test('a limit or a status that makes no sense is 422 and named', async () => {
    for (const limit of ['x', '0', '-1', '1.5', '1001', '']) {
      assert.deepEqual(await places(r.request(`${base}/jobs?limit=${limit}`)), [422, 'query.limit'], limit)
    }
    assert.deepEqual(await places(r.request(`${base}/jobs?status=done`)), [422, 'query.status'])
    assert.deepEqual(await places(r.request(`${base}/jobs?status=x&limit=x`)), [422, 'query.limit', 'query.status'])
  })

  await t.test('a body that makes no sense is 422, each fault of it named, and nothing is started', async () => {
    assert.deepEqual(await places(post('{')), [422, 'body'])
    assert.deepEqual(await places(post('[1]')), [422, 'body'])
    assert.deepEqual(await places(post('"run"')), [422, 'body'])
    assert.deepEqual(await places(post('{}', { 'content-type': 'text/plain' })), [422, 'body'])
    const wrong = { enable_evaluation: 'perhaps', enable_auto_optimize: {}, max_items_per_source: 0, cutoff_hours: 73 }
    assert.deepEqual(await places(post(JSON.stringify({ ...wrong, classify_limit: 'many', teacher_model: 1 }))), [
      ...[422, 'body.max_items_per_source', 'body.classify_limit', 'body.cutoff_hours', 'body.teacher_model'],
      ...['body.enable_evaluation', 'body.enable_auto_optimize'],
    ])
    assert.deepEqual(await places(post('{"pipeline": "nightly"}')), [422, 'body.pipeline'])
    assert.deepEqual(await places(post('{"pipeline": 7}')), [422, 'body.pipeline'])
    assert.deepEqual(await places(post('{"note": "a\\u0000b"}')), [422, 'body'])
    assert.equal((await r.api.list()).body.total, 0)
  })
})

test('a start may leave out its body, and what handlers are given then says the usual', bounded, async t => {
  const r = await rig(t)
  assert.equal((await r.api.start()).status, 202)
  await r.api.start({ max_items_per_source: '10', enable_evaluation: 'yes', note: [1] })
  const [second, first] = (await r.engine.jobs()).items.map(({ input }) => input as Record<string, unknown>)
  const usual = {
    max_items_per_source: 25,
    classify_limit: 200,
    neutralize_limit: 25,
    max_workers: 5,
    cutoff_hours: 24,
  }
  const off = { enable_evaluation: false, enable_auto_optimize: false, teacher_model: null, eval_sample_size: 10 }
  assert.deepEqual(first, { ...usual, ...off })
  assert.deepEqual(second, { ...usual, ...off, max_items_per_source: 10, enable_evaluation: true, note: [1] })
  const [claimed] = await r.engine.claims({ worker: 'w', queues: ['ingest'] })
  assert.deepEqual(claimed?.payload, { config: first })
})

test('the list is newest first, is counted whole, and is told apart by status', bounded, async t => {
  const r = await rig(t)
  const ids: string[] = []
  for (let n = 0; n < 12; n++) ids.push((await r.api.start()).body.job_id)
  await r.api.cancel(ids[0]!)
  const [claimed] = await r.engine.claims({ worker: 'w', queues: ['ingest'], start: true })
  const running = claimed === undefined ? undefined : (await r.engine.task(claimed.id)).jobId
  const listed = async (query: string) => {
    const { jobs, total, running_count } = (await r.api.list(query)).body
    return { ids: jobs.map(({ id }) => id), total, running_count }
  }
  assert.deepEqual(await listed(''), { ids: ids.slice(2).reverse(), total: 12, running_count: 1 })
  assert.deepEqual(await listed('?limit=1'), { ids: [ids[11]], total: 12, running_count: 1 })
  assert.deepEqual(await listed('?status=running'), { ids: [running], total: 1, running_count: 1 })
  assert.deepEqual(await listed('?status=cancelled&limit=5'), { ids: [ids[0]], total: 1, running_count: 1 })
  assert.equal((await listed('?status=pending&limit=2')).total, 10)
  assert.equal((await listed('?status=completed')).total, 0)
  const [{ jobs }, one] = [(await r.api.list('?limit=1')).body, await r.api.job(ids[11]!)]
  assert.deepEqual(jobs, [one])
})

test(
  'a pipeline of the settings is run by its name, and one that is called default in place of ours',
  bounded,
  async t => {
    const stages = (...names: string[]) => names.map(name => ({ name, task: name }))
    const pipelines = {
      default: { name: 'mine', stages: stages('fetch') },
      nightly: { name: 'nightly', stages: [...stages('print', 'send'), { name: 'sign', gate: true as const }] },
    }
    const r = await rig(t, { engine: { pipelines } })
    // The fields for a custom pipeline are not validated, except for the two switches.
    const { body } = await r.api.start({ cutoff_hours: 'any', enable_evaluation: 'on' })
    const job = await r.engine.job(body.job_id)
    assert.deepEqual(
      [job.name, job.input],
      ['mine', { cutoff_hours: 'any', enable_evaluation: true, enable_auto_optimize: false }],
    )
    const named = await r.api.start({ pipeline: 'nightly' })
    for (const queue of ['print', 'send']) {
      const [claimed] = await r.engine.claims({ worker: 'w', queues: [queue], start: true })
      await r.engine.succeed(claimed!.id, claimed!.epoch, { output: { metrics: { pages: 3 } } })
    }
    const { status, stage_progress, current_stage, pipeline_run_summary_id } = await r.api.job(named.body.job_id)
    assert.deepEqual([status, current_stage, pipeline_run_summary_id], ['running', 'send', null])
    assert.deepEqual(Object.keys(stage_progress), ['print', 'send'])
    assert.deepEqual(stage_progress.print?.metrics, { pages: 3 })
  },
)

test('a stage of many tasks is told by their counts and the errors of those that failed', bounded, async t => {
  const tolerant = { name: 'many', task: 'many', payloads: [1, 2, 3], tolerate: { count: 2 }, retry: { attempts: 1 } }
  const r = await rig(t, { engine: { pipelines: { default: { name: 'many', stages: [tolerant] } } } })
  const { body } = await r.api.start()
  const claimed = await r.engine.claims({ worker: 'w', queues: ['many'], claim: 3, start: true })
  await r.engine.fail(claimed[0]!.id, claimed[0]!.epoch, { error: { message: 'no ink' } })
  for (const { id, epoch } of claimed.slice(1)) await r.engine.succeed(id, epoch)
  const { status, stage_progress } = await r.api.job(body.job_id)
  const { duration_ms: _, ...many } = stage_progress.many!
  const metrics = { total: 3, good: 2, bad: 1, partial: 0, skipped: 0 }
  assert.deepEqual([status, many], ['partial', { status: 'partial', metrics, errors: ['no ink'] }])
})

test('keys are shown in X-API-Key; a server that wants none takes whatever is in it', bounded, async t => {
  const run = await served(t, {
    server: { keysOnly: true },
    before: engine => engine.createKey({ name: 'first', role: 'admin' }),
  })
  const key = async (role: 'producer' | 'viewer' | 'operator', queues?: string[]) =>
    (await run.engine.createKey({ name: role, role, ...(queues && { queues }) })).secret
  const as = (secret: string) => pipelineClient(run.server.url, { headers: { 'x-api-key': secret } })
  const stranger = await as('guess').start()
  assert.deepEqual([stranger.status, stranger.body], [401, { detail: 'Invalid or missing API key' }])
  assert.equal((await pipelineClient(run.server.url).start()).status, 401)
  const producer = as(await key('producer'))
  const { status, body } = await producer.start()
  assert.equal(status, 202)
  assert.equal((await producer.status(body.status_url)).status, 200)
  assert.equal((await producer.cancel(body.job_id)).status, 403)
  assert.equal((await as(await key('viewer')).start()).status, 403)
  assert.equal((await as(await key('producer', ['ingest'])).start()).status, 403)
  assert.equal((await as(await key('operator')).cancel(body.job_id)).body.cancelled, true)
  assert.equal((await run.engine.jobEvents(body.job_id)).items[0]?.actor, 'producer')

  const free = await served(t)
  const any = pipelineClient(free.server.url, { headers: { 'x-api-key': 'staging' } })
  assert.equal((await any.start()).status, 202)
})

test(
  'a run is in the trace of its request, or in one of its own; asked again under a key it is the same run',
  bounded,
  async t => {
    const r = await rig(t)
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
    const traced = await pipelineClient(r.server.url, { headers: { traceparent } }).start()
    assert.equal(traced.body.trace_id, '4bf92f3577b34da6a3ce929d0e0e4736')
    assert.equal((await r.engine.job(traced.body.job_id)).traceparent, traceparent)
    const [one, other] = [(await r.api.start()).body, (await r.api.start()).body]
    assert.match(one.trace_id, /^[0-9a-f]{32}$/)
    assert.notEqual(one.trace_id, other.trace_id)
    const keyed = pipelineClient(r.server.url, { headers: { 'idempotency-key': 'once' } })
    assert.deepEqual((await keyed.start()).body, (await keyed.start()).body)
    assert.equal((await r.api.list()).body.total, 4)
    // A job from another client without a trace has its own id as trace id.
    const { id } = await r.engine.submit({ name: 'other', stages: [{ name: 'a', task: 'a' }] })
    assert.equal((await r.api.job(id)).trace_id, id.replaceAll('-', ''))
  },
)

test('served at the root, the addresses it answers with are fetched there', bounded, async t => {
  const { server } = await served(t, { server: { dialects: ['pipeline'], rootDialect: 'pipeline' } })
  const api = pipelineClient(server.url.replace(/\/pawl$/, ''), { root: '' })
  const { body } = await api.start()
  assert.equal(body.status_url, `/v1/pipeline/jobs/${body.job_id}`)
  assert.equal((await api.status(body.status_url)).body.status, 'pending')
})

test(
  'a client that puts the root before the addresses of an answer, which begin with it, is answered too',
  bounded,
  async t => {
    const r = await rig(t)
    const { body } = await r.api.start()
    const joined = `/dialects/pipeline${body.status_url}`
    const { status, body: job } = await r.api.status(joined)
    assert.deepEqual([status, job.id], [200, body.job_id])
    assert.equal((await r.request(`${joined}/cancel`, { method: 'POST' })).status, 200)
    const stream = await r.request(`/dialects/pipeline${body.stream_url}`)
    assert.deepEqual([stream.status, stream.headers.get('content-type')], [200, 'text/event-stream'])
    assert.match(await stream.text(), /event: job_complete/)
  },
)

test('the pipeline of the example is the one that runs where a request names none', () => {
  const written = parse(readFileSync(join(root, 'examples/async-pipeline/pipeline.yaml'), 'utf8'))
  const inOneLine = (text: string) => text.replaceAll(/\s+/g, ' ')
  assert.deepEqual(
    JSON.parse(JSON.stringify(written), (_, value) => (typeof value === 'string' ? inOneLine(value) : value)),
    defaultPipeline,
  )
})
