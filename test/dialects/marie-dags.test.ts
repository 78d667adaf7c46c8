/** DAGs in Marie's words: jobs with the same dag_id, submitted one by one by independent clients. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inVocabulary } from '../../src/cli/vocabulary.ts'
import { type MarieRig, marieRig } from '../harness/marie-rig.ts'

const uuid = '0198c0de-0000-4000-8000-00000000000a'

async function dagIs({ engine }: MarieRig, name = uuid): Promise<string> {
  const { items } = await engine.jobs({ correlationId: name })
  assert.equal(items.length, 1)
  return (await inVocabulary(engine, 'marie').job(items[0]!.id)).state
}

const statesIn = async ({ marie }: MarieRig, dag = uuid) =>
  Object.fromEntries((await marie.jobs(`?dag_id=${dag}`)).result.map(({ id, state }) => [id, state]))

test('marie: two first jobs of a DAG at the same moment make one DAG, which is the job of that id', async t => {
  const rig = await marieRig(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const answers = await Promise.all(names.map(name => rig.marie.invoke({ id: name, name, data: {}, dag_id: uuid })))
  for (const [index, { status, result, message }] of answers.entries()) {
    assert.deepEqual([status, result?.id, result?.dag_id], ['OK', names[index], uuid], message)
  }
  assert.equal((await rig.engine.jobs()).items.length, 1)
  assert.equal((await rig.engine.job(uuid)).stages.length, names.length)
  assert.equal(await dagIs(rig), 'CREATED')
  for (const name of names) assert.equal(await rig.work(name), 1)
  assert.equal(await dagIs(rig), 'COMPLETED')
})

test('marie: a job waits for its dependencies, a branch that is not taken is SKIPPED, and the DAG is COMPLETED', async t => {
  const rig = await marieRig(t)
  const add = (id: string, ...dependencies: string[]) =>
    rig.submit({
      id,
      name: id,
      data: { asset_key: 's3://bucket/document.pdf' },
      dag_id: 'doc-processing-12345',
      dependencies,
    })
  await add('classify')
  await add('invoice', 'classify')
  await add('letter', 'classify')
  await add('stamp', 'letter')
  await add('store', 'invoice', 'stamp')
  for (const early of ['invoice', 'letter', 'stamp', 'store']) assert.equal(await rig.work(early), 0)
  assert.equal(await rig.work('classify'), 1)
  const dag = 'doc-processing-12345'
  assert.equal(await dagIs(rig, dag), 'ACTIVE')
  assert.equal(await rig.work('letter', 'skipped'), 1)
  assert.deepEqual([await rig.work('stamp'), await rig.work('store')], [0, 0])
  assert.deepEqual([await rig.work('invoice'), await rig.work('store')], [1, 1])
  const [done, passed] = ['COMPLETED', 'SKIPPED']
  const ended = { classify: done, invoice: done, letter: passed, stamp: passed, store: done }
  assert.deepEqual(await statesIn(rig, dag), ended)
  assert.equal(await dagIs(rig, dag), 'COMPLETED')
  const skipped = (await rig.marie.jobs('/SKIPPED')).result.map(({ id }) => id)
  assert.deepEqual(skipped.sort(), ['letter', 'stamp'])
})

test('marie: executors may be quicker than whoever submits: a job that comes after all others are done still runs', async t => {
  const rig = await marieRig(t)
  const first = await rig.submit({ name: 'ocr', data: {}, dag_id: uuid })
  assert.equal(await rig.work('ocr'), 1)
  assert.equal(await dagIs(rig), 'COMPLETED')
  const second = await rig.submit({ name: 'extract', data: {}, dag_id: uuid, dependencies: [first] })
  assert.equal(await dagIs(rig), 'CREATED')
  assert.equal(await rig.work('extract'), 1)
  assert.deepEqual(await statesIn(rig), { [first]: 'COMPLETED', [second]: 'COMPLETED' })
  assert.equal(await dagIs(rig), 'COMPLETED')
})

test('marie: when a job of a DAG fails, the DAG has FAILED, what had not begun is CANCELLED, and no job can be added', async t => {
  const rig = await marieRig(t)
  const first = await rig.submit({ name: 'ocr', data: {}, dag_id: uuid, retry_limit: 0 })
  const second = await rig.submit({ name: 'extract', data: {}, dag_id: uuid, dependencies: [first] })
  await rig.work('ocr', 'failed')
  assert.deepEqual(await statesIn(rig), { [first]: 'FAILED', [second]: 'CANCELLED' })
  assert.equal(await dagIs(rig), 'FAILED')
  const { http, code, message } = await rig.marie.invoke({ name: 'store', data: {}, dag_id: uuid })
  assert.deepEqual([http, code], [409, 'INVALID_STATE'])
  assert.equal(message, 'DAG is FAILED and cannot be given another job')
  assert.equal((await rig.marie.jobs()).result.length, 2)
})

test('marie: a job of a DAG can be stopped, and resumed: its DAG goes on with it', async t => {
  const rig = await marieRig(t)
  const first = await rig.submit({ name: 'ocr', data: {}, dag_id: uuid })
  const second = await rig.submit({ name: 'extract', data: {}, dag_id: uuid, dependencies: [first] })
  await rig.work('ocr')
  assert.equal((await rig.marie.stop(second)).result, 'Job stopped')
  assert.deepEqual(await statesIn(rig), { [first]: 'COMPLETED', [second]: 'CANCELLED' })
  assert.equal((await rig.marie.stop(second)).code, 'INVALID_STATE')
  assert.equal((await rig.request(`/v1/tasks/${second}/resume`, { method: 'POST', json: {} })).status, 200)
  assert.equal(await rig.marie.stateOf(second), 'CREATED')
  assert.equal(await rig.work('extract'), 1)
  assert.equal(await dagIs(rig), 'COMPLETED')
})

test('marie: each job of a DAG has its own retries, queue and data; a job of any id is found by it', async t => {
  const rig = await marieRig(t)
  const id = 'Ünïcode / job #1'
  const job = { id, name: 'ocr', queue: 'gpu', data: { page: 1 }, dag_id: 'pages', retry_limit: 1, retry_delay: 0 }
  assert.equal(await rig.submit({ ...job, retry_backoff: false, priority: 7 }), id)
  const { result } = await rig.marie.job(id)
  const { name, data, dag_id, retry_limit, retry_delay, retry_backoff, priority } = result
  assert.deepEqual([name, data, dag_id, priority], ['ocr', { page: 1 }, 'pages', 7])
  assert.deepEqual([retry_limit, retry_delay, retry_backoff], [1, 0, false])
  assert.equal(await rig.work('ocr'), 0)
  for (const state of ['RETRY', 'FAILED']) {
    assert.equal(await rig.work('gpu', 'failed'), 1)
    assert.equal(await rig.marie.stateOf(id), state)
  }
  assert.deepEqual(
    (await rig.marie.jobs('?queue=gpu')).result.map(each => each.id),
    [id],
  )
})

test('marie: a job that is sent again with its id or its key is the same job, alone or in a DAG', async t => {
  const rig = await marieRig(t)
  const soft_sla = new Date(Date.now() + 3_600_000).toISOString()
  for (const more of [{}, { dag_id: uuid }]) {
    const body = { id: `job-${Object.keys(more)}`, name: 'ocr', data: { page: 1 }, soft_sla, ...more }
    const first = await rig.marie.invoke(body)
    await rig.advance(10)
    assert.deepEqual((await rig.marie.invoke(body)).result, first.result)
    const other = await rig.marie.invoke({ ...body, data: { page: 2 } })
    assert.deepEqual([other.http, other.code], [409, 'DUPLICATE'])

    const { id: _, ...nameless } = body
    const send = async () => {
      const headers = { 'idempotency-key': `key ${Object.keys(more)}` }
      const response = await rig.request('/dialects/marie/api/v1/invoke', { method: 'POST', json: nameless, headers })
      return ((await response.json()) as typeof first).result.id
    }
    const [once, twice] = [await send(), await send()]
    assert.equal(once, twice)
    assert.notEqual(once, body.id)
  }
  assert.equal((await rig.marie.jobs()).result.length, 4)
  assert.equal(await rig.work('ocr'), 4)
})

test('marie: what cannot be part of a DAG is refused, and nothing of it is kept', async t => {
  const rig = await marieRig(t)
  const job = { id: 'a', name: 'ocr', data: {} }
  const refused = async (body: object, http: number, code: string, message: RegExp) => {
    const answer = await rig.marie.invoke(body)
    assert.deepEqual([answer.http, answer.status, answer.code], [http, 'error', code], answer.message)
    assert.match(answer.message, message)
  }
  await refused({ ...job, dependencies: ['b'] }, 400, 'BAD_REQUEST', /dependencies must be sent with a dag_id/)
  await refused({ ...job, dag_id: uuid, dependencies: ['b'] }, 400, 'BAD_REQUEST', /this DAG has no job 'b'/)
  await refused({ ...job, dag_id: uuid, dependencies: ['a'] }, 400, 'BAD_REQUEST', /'a' cannot need itself/)
  assert.deepEqual([(await rig.engine.jobs()).items, (await rig.engine.tasks()).items], [[], []])
  await rig.submit({ ...job, dag_id: uuid })
  await refused({ ...job, dag_id: uuid, name: 'other' }, 409, 'DUPLICATE', /another job/)
  await refused({ ...job, dag_id: 'elsewhere' }, 409, 'DUPLICATE', /another job/)
  await rig.advance(25 * 3600)
  await refused({ ...job, dag_id: uuid }, 409, 'DUPLICATE', /in the DAG/)
  await refused({ ...job, dag_id: 'elsewhere' }, 409, 'DUPLICATE', /id is in use/)
  await refused(job, 409, 'DUPLICATE', /id is in use/)
  assert.deepEqual([(await rig.engine.jobs()).items.length, (await rig.engine.tasks()).items.length], [1, 1])
})

test('marie: a list is narrowed down by a state, in either case of letters and beside a queue', async t => {
  const rig = await marieRig(t)
  const active = await rig.submit({ name: 'extract', data: {}, queue: 'gpu' })
  await rig.dispatch('gpu')
  const waiting = await rig.submit({ name: 'extract', data: {}, queue: 'gpu' })
  const other = await rig.submit({ name: 'extract', data: {}, queue: 'cpu' })
  const ids = async (query: string) => (await rig.marie.jobs(query)).result.map(({ id }) => id)
  assert.deepEqual(await ids('?state=ACTIVE'), [active])
  assert.deepEqual(await ids('?state=active&queue=cpu'), [])
  assert.deepEqual(await ids('?state=CREATED'), [other, waiting])
  assert.deepEqual(await ids('?state=CREATED&queue=gpu'), [waiting])
  assert.deepEqual(await ids('?state=COMPLETED'), [])
  assert.equal((await ids('?state=')).length, 3)
})
