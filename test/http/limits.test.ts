/** A request beyond any limit gets a 4xx, and so does one that is not valid HTTP. */
import assert from 'node:assert/strict'
import { connect as connectSocket } from 'node:net'
import { test } from 'node:test'
import { type Served, served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
const json = { 'content-type': 'application/json' }
const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

async function codeOf(answer: Promise<Response>): Promise<[number, unknown]> {
  const response = await answer
  const { code } = (await response.json()) as { code?: unknown }
  return [response.status, code]
}

/** Sends text on a raw connection, and returns everything that is received until it closes. */
function say({ server }: Served, text: string): Promise<string> {
  const { hostname, port } = new URL(server.url)
  return new Promise((resolve, reject) => {
    const socket = connectSocket(Number(port), hostname)
    let received = ''
    socket.on('data', part => {
      received += part
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(received))
    socket.write(text)
  })
}

test('a body that is too large is refused, whether it says so or not', limits, async t => {
  const run = await served(t, { server: { maxBodyBytes: 10_000 } })
  const body = JSON.stringify({ type: 'a', payload: 'x'.repeat(20_000) })
  const post = { method: 'POST', headers: json }
  assert.deepEqual(await codeOf(run.request('/v1/tasks', { ...post, body })), [413, 'BODY_TOO_LARGE'])
  const chunks = new ReadableStream({
    start(to) {
      for (let at = 0; at < body.length; at += 1000) to.enqueue(Buffer.from(body.slice(at, at + 1000)))
      to.close()
    },
  })
  const stream = { ...post, body: chunks, duplex: 'half' } as RequestInit
  assert.deepEqual(await codeOf(run.request('/v1/tasks', stream)), [413, 'BODY_TOO_LARGE'])
  assert.deepEqual((await run.engine.tasks()).items, [])
})

test('a payload that is too large is refused though its body is not', limits, async t => {
  const run = await served(t, { engine: { maxPayloadBytes: 1000 } })
  const large = { type: 'a', payload: 'x'.repeat(2000) }
  const ask = { method: 'POST', json: large }
  assert.deepEqual(await codeOf(run.request('/v1/tasks', ask)), [413, 'PAYLOAD_TOO_LARGE'])
})

test('headers and addresses that are too long are refused', limits, async t => {
  const run = await served(t)
  const long = 'x'.repeat(20_000)
  for (const text of [
    `GET /v1/jobs HTTP/1.1\r\nhost: localhost\r\nx: ${long}\r\n\r\n`,
    `GET /v1/jobs?name=${long} HTTP/1.1\r\nhost: localhost\r\n\r\n`,
  ]) {
    assert.match(await say(run, text), /^HTTP\/1\.1 431 [\s\S]*"code":"HEADERS_TOO_LARGE"/)
  }
  assert.deepEqual(await codeOf(run.request(`/v1/jobs/${'x'.repeat(400)}`)), [400, 'REQUEST_INVALID'])
  assert.deepEqual(await codeOf(run.request('/v1/jobs/%ff')), [400, 'REQUEST_INVALID'])
})

test('what is not HTTP is refused', limits, async t => {
  const run = await served(t)
  assert.match(await say(run, 'HELLO\r\n\r\n'), /^HTTP\/1\.1 400 [\s\S]*"code":"REQUEST_INVALID"/)
})

test('a request that trickles in is ended', limits, async t => {
  const run = await served(t, { server: { requestSeconds: 1 } })
  const head =
    'POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n'
  assert.match(await say(run, `${head}{"type"`), /^HTTP\/1\.1 408 [\s\S]*"code":"REQUEST_SLOW"/)
  assert.match(await say(run, 'POST /v1/tasks HTTP/1.1\r\nhost: loc'), /^HTTP\/1\.1 408 /)
  assert.deepEqual((await run.engine.tasks()).items, [])
})

test('a method that an address does not know is refused with those it does', limits, async t => {
  const run = await served(t)
  for (const [method, path, allow] of [
    ['PUT', '/v1/jobs', 'POST, GET, HEAD'],
    ['POST', '/v1/jobs/1', 'GET, HEAD, PATCH, DELETE'],
    ['GET', '/v1/jobs/1/cancel', 'POST'],
    ['POST', '/openapi.json', 'GET, HEAD'],
    ['OPTIONS', '/v1/queues', 'GET, HEAD'],
    ['PUT', '/v1/me', 'GET, HEAD'],
    ['POST', '/metrics', 'GET, HEAD'],
  ] as const) {
    const response = await run.request(path, { method })
    assert.deepEqual([response.status, response.headers.get('allow')], [405, allow], `${method} ${path}`)
  }
})

test('HEAD says what GET would, without a body, also of the feed', limits, async t => {
  const run = await served(t)
  for (const path of ['/v1/jobs', '/v1/events', '/openapi.json', '/docs', '/healthz']) {
    const response = await run.request(path, { method: 'HEAD', headers: { accept: 'text/event-stream' } })
    assert.deepEqual([response.status, await response.text()], [200, ''], path)
  }
})

test('a body that is not UTF-8, not JSON, or packed in a way nobody asked for is refused', limits, async t => {
  const run = await served(t)
  const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json) =>
    codeOf(run.request('/v1/tasks', { method: 'POST', headers, body }))
  const utf16 = Buffer.from('{"type":"a"}', 'utf16le')
  assert.deepEqual(await post(new Uint8Array([0x22, 0xff, 0x22])), [400, 'BODY_INVALID'])
  assert.deepEqual(await post(new Uint8Array(utf16)), [400, 'BODY_INVALID'])
  assert.deepEqual(await post('{"type":'), [400, 'BODY_INVALID'])
  assert.deepEqual(await post('{"type":"a"}', { ...json, 'content-encoding': 'gzip' }), [415, 'BODY_TYPE'])
  assert.deepEqual(await post('{"type":"a"}', { 'content-type': 'application/json; charset=utf-16' }), [
    415,
    'BODY_TYPE',
  ])
  assert.deepEqual(await post('type: a', { 'content-type': 'application/yaml' }), [400, 'BODY_INVALID'])
  assert.deepEqual((await run.engine.tasks()).items, [])
})

test('JSON of 100,000 levels is refused wherever it is put', limits, async t => {
  const run = await served(t)
  const { id } = await run.engine.enqueue('a', 1)
  const job = await run.engine.submit({ name: 'gated', stages: [{ name: 'g', gate: true }] })
  const bad = deep(100_000)
  for (const [path, body] of [
    ['/v1/tasks', bad],
    ['/v1/tasks', `{"type":${bad}}`],
    ['/v1/tasks', `{"type":"a","payload":${bad}}`],
    ['/v1/tasks', `{"type":"a","metadata":{"a":${bad}}}`],
    ['/v1/tasks', `{"type":"a","retry":{"attempts":${bad}}}`],
    ['/v1/jobs', `{"name":"a","input":${bad},"stages":[]}`],
    ['/v1/jobs', `{"name":"a","metadata":{"a":${bad}},"stages":[]}`],
    ['/v1/jobs', `{"name":"a","stages":[{"name":"b","task":"c","payload":${bad}}]}`],
    ['/v1/jobs', `{"name":"a","stages":[{"name":"b","task":"c","payloads":${bad}}]}`],
    ['/v1/jobs', `{"name":"a","stages":${bad}}`],
    [`/v1/jobs/${job.id}/stages`, `[{"name":"b","task":"c","payload":${bad}}]`],
    [`/v1/jobs/${job.id}/cancel`, `{"reason":${bad}}`],
    [`/v1/stages/${job.stages[0]!.id}/approve`, `{"data":${bad}}`],
    [`/v1/stages/${job.stages[0]!.id}/tasks`, `[{"payload":${bad}}]`],
    ['/v1/dead-letters/redrive', `{"payload":${bad},"ids":["${id}"]}`],
    ['/v1/dead-letters/redrive', `{"ids":${bad}}`],
    ['/v1/workers/w/sync', `{"queues":${bad}}`],
    ['/v1/keys', `{"name":"a","role":"admin","queues":${bad}}`],
  ] as const) {
    for (const headers of [json, { ...json, 'idempotency-key': `${path}${body.length}` }]) {
      const response = await run.request(path, { method: 'POST', headers, body })
      assert.ok(response.status >= 400 && response.status < 500, `${path} ${body.slice(0, 60)}: ${response.status}`)
    }
  }
  const item = `{"id":"${id}","epoch":0,"outcome":"succeeded","output":${bad},"error":${bad}}`
  const report = await run.request('/v1/workers/w/sync', {
    method: 'POST',
    headers: json,
    body: `{"settled":[${item}]}`,
  })
  const { refused } = (await report.json()) as { refused: { code: string }[] }
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['OPTION_INVALID'],
  )
})

test('odd JSON is kept as it came or refused, and never harms', limits, async t => {
  const run = await served(t)
  const post = (body: string) => run.request('/v1/tasks', { method: 'POST', headers: json, body })
  const kept = async (payload: string) => {
    const response = await post(`{"type":"a","payload":${payload}}`)
    assert.equal(response.status, 201, payload)
    const { id } = (await response.json()) as { id: string }
    return JSON.stringify((await run.client.task(id)).payload)
  }
  const proto = '{"__proto__":{"polluted":true},"constructor":{"prototype":1}}'
  assert.equal(await kept(proto), proto)
  assert.equal(({} as { polluted?: true }).polluted, undefined)
  assert.equal(await kept('{"a":1,"a":2}'), '{"a":2}')
  assert.equal(await kept('"\u2028\u{1F600}"'), '"\u2028\u{1F600}"')
  for (const bad of ['"\\u0000"', '"\\ud800"', '{"\\u0000":1}']) {
    assert.deepEqual(await codeOf(post(`{"type":"a","payload":${bad}}`)), [400, 'PAYLOAD_INVALID'], bad)
  }
  for (const bad of ['"\\u0000"', '"\\ud800"', '1e400', '{}', 'null', '""', '[]']) {
    assert.deepEqual(await codeOf(post(`{"type":${bad}}`)), [400, 'OPTION_INVALID'], bad)
  }
  assert.deepEqual(await codeOf(post('{"type":"a","__proto__":{"queue":"b"}}')), [400, 'OPTION_UNKNOWN'])
  assert.deepEqual(await codeOf(post('{"type":"a","priority":1e400}')), [400, 'OPTION_INVALID'])
  assert.deepEqual(await codeOf(run.request('/v1/task-types/%00')), [400, 'OPTION_INVALID'])
})
