/** Bodies that are small on the wire and large in memory. None of them may keep the server from answering others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { healthyWhile } from '../harness/healthy-while.ts'
import { type Served, served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
const json = { 'content-type': 'application/json' }
const yaml = { 'content-type': 'application/yaml' }
/**
 * Processor time. Reading takes a fraction of it; the rest is for other work of the same turn, such as sending the
 * body.
 */
const longestTurn = 2000

async function attack(run: Served, path: string, headers: Record<string, string>, body: string) {
  const { answer, longestTurnMs } = await healthyWhile(run.server, async () => {
    const response = await run.request(path, { method: 'POST', headers, body })
    return { status: response.status, problem: (await response.json()) as { code: string; details: unknown } }
  })
  assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
  return [answer.status, answer.problem.code, JSON.stringify(answer.problem.details)] as const
}

test('megabytes of nested JSON are refused in little memory', limits, async t => {
  const run = await served(t)
  const half = 15_000_000
  const body = `{"type":"a","payload":${'['.repeat(half)}${']'.repeat(half)}}`
  const before = process.memoryUsage().heapUsed
  const [status, code, why] = await attack(run, '/v1/tasks', json, body)
  assert.deepEqual([status, code], [400, 'PAYLOAD_INVALID'])
  assert.match(why, /100 levels deep/)
  // As objects, they would take more than a gigabyte.
  assert.ok(process.memoryUsage().heapUsed - before < 300_000_000)
  assert.equal((await attack(run, '/v1/tasks', json, '['.repeat(half)))[1], 'BODY_INVALID')
})

test('a body of millions of objects is refused before it is parsed', limits, async t => {
  const run = await served(t)
  for (const item of ['{}', '[[[]]]', '{"a":[]}']) {
    const [status, code, why] = await attack(run, '/v1/tasks', json, `[${`${item},`.repeat(2_000_000)}0]`)
    assert.deepEqual([status, code], [413, 'BODY_TOO_LARGE'])
    assert.match(why, /more than 1,000,000 lists and objects/)
  }
})

test('of the items in one request, only those that are nested too deep are refused', limits, async t => {
  const run = await served(t)
  for (const payload of [1, 2]) await run.engine.enqueue('a', payload)
  const items = await run.engine.claims({ worker: 'w', queues: ['a'], claim: 2 })
  const deep = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`
  const settled = items.map(
    ({ id, epoch }, at) =>
      `{"id":"${id}","epoch":${epoch},"outcome":"succeeded","output":${at === 0 ? deep : '"fine"'}}`,
  )
  const response = await run.request('/v1/workers/w/sync', {
    method: 'POST',
    headers: json,
    body: `{"settled":[${settled.join()}]}`,
  })
  const { refused } = (await response.json()) as { refused: { id: string; code: string }[] }
  assert.deepEqual(
    refused.map(({ id, code }) => [id, code]),
    [[items[0]!.id, 'PAYLOAD_INVALID']],
  )
  assert.equal((await run.engine.task(items[1]!.id)).state, 'succeeded')
})

test('YAML has a limit of its own, and is refused before it becomes a document', limits, async t => {
  const run = await served(t, { server: { maxYamlBytes: 1_000_000 } })
  const large = 900_000
  for (const [start, repeated, why] of [
    ['', '[', /200 levels deep/],
    ['', '{ a: ', /200 levels deep/],
    ['', '- ', /200 levels deep/],
    ['', ']', /closes a bracket that was not opened/],
    ['a: [', '[], ', /more than 300,000 words/],
    ['', '- &a b\n', /more than 300,000 words/],
    ['a: [', '{a: b}, ', /more than 300,000 words/],
    ['', '"', /more than 300,000 words/],
    ['', '\n', /more than 300,000 words/],
  ] as const) {
    const text = start + repeated.repeat(large / repeated.length)
    const [status, code, details] = await attack(run, '/v1/jobs', yaml, text)
    assert.deepEqual([status, code], [422, 'SPEC_INVALID'], repeated)
    assert.match(details, why, repeated)
  }
  assert.equal((await attack(run, '/v1/jobs', yaml, 'a'.repeat(1_000_001)))[1], 'BODY_TOO_LARGE')
  // A JSON string with the text is parsed in the same way.
  const text = JSON.stringify(`{"name":${'['.repeat(10_000_000)}`)
  assert.equal((await attack(run, '/v1/jobs', json, text))[1], 'SPEC_INVALID')
})

test('a large spec in YAML is read while others are answered', limits, async t => {
  const run = await served(t)
  const input = '  - {n: 1, text: "some text"}\n'.repeat(15_000)
  const spec = `name: large\nstages: [{name: a, gate: true}]\ninput:\n${input}`
  const { answer, longestTurnMs } = await healthyWhile(run.server, () =>
    run.request('/v1/jobs', { method: 'POST', headers: yaml, body: spec }),
  )
  const { stages } = (await answer.json()) as { stages: unknown[] }
  assert.deepEqual([answer.status, stages.length], [201, 1])
  t.diagnostic(`longest turn: ${longestTurnMs} ms`)
  assert.ok(longestTurnMs < 500, `a turn took ${longestTurnMs} ms`)
  const wrong = await run.request('/v1/jobs', { method: 'POST', headers: yaml, body: `${spec}\n]` })
  const { code, details } = (await wrong.json()) as { code: string; details: { issues: { at: string }[] } }
  assert.deepEqual([code, details.issues[0]?.at], ['SPEC_INVALID', 'line 15005, column 1'])
  const text = await run.request('/v1/jobs', { method: 'POST', headers: yaml, body: 'x'.repeat(100_000) })
  assert.equal(text.status, 422)
})

test('the limits hold for the routes of dialects', limits, async t => {
  const run = await served(t, { server: { maxBodyBytes: 10_000_000, maxYamlBytes: 1000 } })
  const post = async (headers: Record<string, string>, body: string) =>
    (await run.request('/dialects/jobnik/v1/jobs', { method: 'POST', headers, body })).status
  assert.equal(await post(json, `{"name":"deep","data":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`), 400)
  assert.equal(await post(json, `[${'{},'.repeat(2_000_001)}0]`), 413)
  assert.equal(await post(json, `"${'x'.repeat(10_000_000)}"`), 413)
  assert.equal(await post(yaml, 'x'.repeat(2000)), 413)
  assert.equal(await post({ 'content-type': 'multipart/form-data; boundary=x' }, '--x--'), 415)
})

test('a request about one thing has a smaller limit than one about many', limits, async t => {
  const run = await served(t)
  const { id } = await run.engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const reason = 'x'.repeat(9 * 2 ** 20)
  const answer = await run.request(`/v1/jobs/${id}/pause`, { method: 'POST', json: { reason } })
  assert.deepEqual([answer.status, ((await answer.json()) as { code: string }).code], [413, 'BODY_TOO_LARGE'])
  const many = Array.from({ length: 10 }, () => ({ type: 'a', payload: 'x'.repeat(1_000_000) }))
  assert.equal((await run.request('/v1/tasks', { method: 'POST', json: many })).status, 201)
})

test('a small body that is nested very deep is refused with a problem', limits, async t => {
  const run = await served(t)
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
  const body = `{"name":"j","stages":[{"name":"a","task":"x","inputs":${deep}}]}`
  const [status, code] = await attack(run, '/v1/jobs', json, body)
  assert.deepEqual([status, code], [422, 'SPEC_INVALID'])
})

/** Bodies that stay just below the limits. */
const legal = {
  'objects whose names are all different': () => {
    const members = (object: number) => Array.from({ length: 9 }, (_, n) => `"k${object * 9 + n}":1`)
    return `[${Array.from({ length: 10_000 }, (_, object) => `{"type":"a","payload":{${members(object)}}}`).join()}]`
  },
  'an object of many different names': () => {
    const names = Array.from({ length: 90_000 }, (_, index) => `"${index.toString(36)}":1`)
    return `{"type":"a","payload":{${names.join()}}}`
  },
  'objects with the same names': () => {
    const payload = JSON.stringify(Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`name-${n}`, n])))
    return `[${`{"type":"a","payload":${payload}},`.repeat(9_999)}{"type":"a"}]`
  },
  'many different texts': () => {
    const texts = (task: number) => Array.from({ length: 35 }, (_, n) => (task * 35 + n).toString(36))
    return JSON.stringify(Array.from({ length: 10_000 }, (_, task) => ({ type: 'a', payload: texts(task) })))
  },
}

for (const [name, body] of Object.entries(legal)) {
  test(`the largest body that is accepted does not keep others waiting: ${name}`, limits, async t => {
    const run = await served(t)
    const text = body()
    const { answer, longestTurnMs, slowestCheckMs } = await healthyWhile(run.server, () =>
      run.request('/v1/tasks', { method: 'POST', headers: json, body: text }),
    )
    assert.equal(answer.status, 201)
    t.diagnostic(`longest turn: ${longestTurnMs} ms; slowest /healthz: ${slowestCheckMs} ms`)
    assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
  })
}

test('a body of hundreds of thousands of different names is refused before it is parsed', limits, async t => {
  const run = await served(t)
  const names = Array.from({ length: 150_000 }, (_, index) => `"${index.toString(36)}":1`)
  const [status, code, details] = await attack(run, '/v1/tasks', json, `{"type":"a","payload":{${names.join()}}}`)
  assert.deepEqual([status, code], [413, 'BODY_TOO_LARGE'])
  assert.match(details, /100,000 different sequences/)
})
