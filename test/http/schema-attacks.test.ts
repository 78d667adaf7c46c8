/** The JSON Schemas of task types are untrusted. None of them may keep the server from answering others. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { doublingSchema } from '../harness/doubling-schema.ts'
import { healthyWhile } from '../harness/healthy-while.ts'
import { served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
/** Processor time. The work takes well under 100 milliseconds; the rest is for other work of the same turn. */
const longestTurn = 1000

test('a small schema that stands for endless work is refused, and others are answered meanwhile', limits, async t => {
  const run = await served(t)
  for (const payloadSchema of [doublingSchema(40), { $defs: { a: { $ref: '#/$defs/a' } }, $ref: '#/$defs/a' }]) {
    const { answer, longestTurnMs } = await healthyWhile(run.server, () =>
      run.request('/v1/task-types/x', { method: 'PUT', json: { payloadSchema } }),
    )
    const { code } = (await answer.json()) as { code: string }
    assert.deepEqual([answer.status, code], [400, 'OPTION_INVALID'])
    assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
  }
})

test('a payload that takes too long to check is refused, and others are answered meanwhile', limits, async t => {
  const run = await served(t)
  const { id } = await run.engine.enqueue('x', 1)
  await run.engine.deadLetter(id, { reasonCode: 'parse_error' })
  const inner = { properties: { a: { $ref: '#' } } }
  await run.engine.putTaskType('x', { payloadSchema: { anyOf: [{ ...inner, required: ['b'] }, inner] } })
  const payload = JSON.parse(`${'{"a":'.repeat(90)}{}${'}'.repeat(90)}`)
  const { answer, longestTurnMs } = await healthyWhile(run.server, () =>
    run.request('/v1/dead-letters/redrive', { method: 'POST', json: { ids: [id], payload } }),
  )
  const { code, details } = (await answer.json()) as { code: string; details: { issues: string[] } }
  assert.deepEqual([answer.status, code], [400, 'PAYLOAD_REFUSED'])
  assert.match(details.issues.join(), /more than 1,000,000 steps/)
  assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
})

test('patterns that look small and are compiled to huge programs are refused', limits, async t => {
  const run = await served(t)
  const pattern = `(${'a'.repeat(900)}[[:word:](\\][a]){1000}[[:word:])\\][a]`
  for (const one of [pattern, `(${'a'.repeat(100)}){1000}`, '(\\Q(\\Ea){1000}']) {
    const { answer, longestTurnMs } = await healthyWhile(run.server, () =>
      run.request('/v1/task-types/x', { method: 'PUT', json: { payloadSchema: { pattern: one } } }),
    )
    assert.equal(answer.status, 400, one)
    assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
  }
})

test('what a schema costs for each of many values is counted', limits, async t => {
  const run = await served(t)
  const payload = Array.from({ length: 10_000 }, () => ({}))
  const many = Object.fromEntries(Array.from({ length: 2000 }, (_, index) => [`^${index}$`, true]))
  const schemas = [
    { items: { anyOf: [{ const: Array.from({ length: 40_000 }, () => 1) }] } },
    { items: { patternProperties: many, additionalProperties: true } },
  ]
  for (const [index, payloadSchema] of schemas.entries()) {
    const { id } = await run.engine.enqueue(`x${index}`, 1)
    await run.engine.deadLetter(id, { reasonCode: 'parse_error' })
    await run.engine.putTaskType(`x${index}`, { payloadSchema })
    const { answer, longestTurnMs } = await healthyWhile(run.server, () =>
      run.request('/v1/dead-letters/redrive', { method: 'POST', json: { ids: [id], payload } }),
    )
    assert.equal(answer.status, 400)
    assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
  }
})
