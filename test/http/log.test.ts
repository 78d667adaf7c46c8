import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeLog } from '../../src/cli/log.ts'
import type { LogLevel } from '../../src/protocol/tasks/logs.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

/** A log as the process writes it, and its lines. */
function logAt(level: LogLevel) {
  const lines: string[] = []
  return { lines, log: makeLog({ level, format: 'json', out: { write: line => lines.push(line) } }) }
}

test('at level debug each request is a line that says who asked for which route, and nothing that was said', async t => {
  const { lines, log } = logAt('debug')
  const run = await served(t, { server: { log } })
  const { secret } = await run.engine.createKey({ name: 'ci', role: 'producer' })
  const traceparent = `00-${'a'.repeat(32)}-${'1'.repeat(16)}-01`
  const headers = { authorization: `Bearer ${secret}`, traceparent, 'idempotency-key': 'hidden-key' }
  const { id } = await run.engine.enqueue('a', 1)
  await run.request('/v1/tasks', { method: 'POST', headers, json: { type: 'a', payload: 'hidden-payload' } })
  await run.request(`/v1/tasks/${id}?hidden-query=1`)
  await run.request('/nowhere/hidden-path')
  const logged = await eventually('three lines', () => lines.length === 3 && lines.map(line => JSON.parse(line)))
  const facts = logged.map(({ event, level, method, route, status, key }) => [event, level, method, route, status, key])
  assert.deepEqual(
    facts.sort(([, , , one], [, , , other]) => (one < other ? -1 : 1)),
    [
      ['http.request', 'debug', 'POST', '/v1/tasks', 201, 'ci'],
      ['http.request', 'debug', 'GET', '/v1/tasks/:id', 400, undefined],
      ['http.request', 'debug', 'GET', 'none', 404, undefined],
    ],
  )
  assert.equal(logged.find(({ key }) => key === 'ci').traceparent, traceparent)
  assert.equal(new Set(logged.map(({ requestId }) => requestId)).size, 3)
  for (const { ms } of logged) assert.equal(typeof ms, 'number')
  const text = lines.join('')
  for (const secretWord of [secret, 'hidden', id]) assert.ok(!text.includes(secretWord), secretWord)
})

test('above level debug no request is told', async t => {
  const { lines, log } = logAt('info')
  const run = await served(t, { server: { log } })
  assert.equal((await run.request('/healthz')).status, 200)
  assert.equal((await run.request('/v1/tasks/x')).status, 404)
  await run.server.close()
  assert.deepEqual(lines, [])
})
