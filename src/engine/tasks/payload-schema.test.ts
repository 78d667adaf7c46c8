import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { doublingSchema } from '../../../test/harness/doubling-schema.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { served } from '../../../test/harness/served.ts'
import type { Problem } from '../../kernel/problem.ts'
import { faultsIn, type PayloadSchema } from '../../spec/json-schema/evaluate.ts'
import { putTaskType } from '../../store/tasks/read-tasks.ts'
import { defineTask } from '../../worker/define-task.ts'
import { startWorker } from '../../worker/worker.ts'

const letter = defineTask({
  type: 'letter',
  retry: { attempts: 1 },
  payload: z.object({ to: z.string(), pages: z.array(z.object({ n: z.int().min(1) })).optional() }),
  handler: async () => {},
})

test('what a worker’s schema wants is known to whoever asks for its type, in process and over HTTP', async t => {
  const { client, engine } = await served(t)
  await client.register(letter)
  const { payloadSchema, retry } = await engine.taskType('letter')
  assert.deepEqual([payloadSchema?.required, retry], [['to'], { attempts: 1 }])
  assert.deepEqual(await client.taskType('letter'), await engine.taskType('letter'))
  assert.deepEqual(await client.taskTypes(), {
    items: [{ type: 'letter', ...(await engine.taskType('letter')) }],
    next: null,
  })
})

test('one who does not know the schema does not take it away; one who says that there is none, does', async t => {
  const { engine } = await fresh(t)
  await engine.register(letter)
  await engine.putTaskType('letter', { retry: { attempts: 2 } })
  assert.deepEqual((await engine.taskType('letter')).payloadSchema?.required, ['to'])
  await engine.putTaskType('letter', { payloadSchema: null })
  assert.deepEqual(await engine.taskType('letter'), {})
})

test('a dead letter is not redriven with a payload that its worker would refuse, nor is that tried', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.enqueue(letter, { to: 'ada' })
  const [claimed] = await engine.claims({ worker: 'w', queues: ['letter'] })
  await engine.fail(claimed!.id, claimed!.epoch, { error: { message: 'no' } })
  const redriving = (payload: unknown, dryRun = false) => engine.redrive({ ids: [id], payload, dryRun })
  const issues = ['to: Instance type "number" is invalid. Expected "string".']
  for (const dryRun of [true, false]) {
    await assert.rejects(redriving({ to: 7 }, dryRun), {
      code: 'PAYLOAD_REFUSED',
      details: { at: 'payload', type: 'letter', issues },
    })
  }
  await assert.rejects(redriving({ to: 'bob', pages: [{ n: 1 }, { n: 0 }] }), /pages\.1\.n/)
  assert.equal((await engine.task(id)).state, 'dead_lettered')
  assert.deepEqual((await redriving({ to: 'bob' })).redriven, [id])
})

test('what is no JSON Schema is refused, and the type stays as it was', async t => {
  const { engine } = await fresh(t)
  const bad = [
    { type: 'object', properties: { a: { pattern: '(' } } },
    { type: 'object', properties: { a: { $ref: '#/$defs/none' } } },
    { $ref: '#/nowhere' },
    'text',
    { $defs: { a: { $ref: 'https://elsewhere/b' } }, $ref: '#/$defs/a' },
  ]
  for (const payloadSchema of bad) {
    await assert.rejects(engine.putTaskType('letter', { payloadSchema } as never), { code: 'OPTION_INVALID' })
  }
  await assert.rejects(engine.taskType('letter'), { code: 'TASK_TYPE_UNKNOWN' })
})

test('a schema that cannot be told as JSON Schema still checks what is queued', async t => {
  const { engine } = await fresh(t)
  const odd = defineTask({ type: 'odd', payload: z.bigint(), handler: async () => {} })
  await assert.rejects(engine.enqueue(odd, 'x' as never), { code: 'PAYLOAD_REFUSED' })
  assert.deepEqual(await engine.taskType('odd'), {})
})

test('a worker that has no schema any more takes the old one away', async t => {
  const { engine } = await fresh(t)
  await engine.register(letter)
  const plain = defineTask({ type: 'letter', handler: async () => {} })
  await using _worker = startWorker(engine, [plain], { drainSeconds: 1 })
  await eventually('it is gone', async () => (await engine.taskType('letter')).payloadSchema === undefined)
})

test('a pattern that takes years elsewhere is matched in linear time', async t => {
  const { engine } = await fresh(t)
  const { id } = await engine.enqueue('letter', 'x')
  await engine.putTaskType('letter', { payloadSchema: { type: 'string', pattern: '^(a+)+$' } })
  await engine.deadLetter(id, { reasonCode: 'parse_error' })
  await assert.rejects(engine.redrive({ ids: [id], payload: `${'a'.repeat(60)}!` }), {
    code: 'PAYLOAD_REFUSED',
    details: { at: 'payload', type: 'letter', issues: ['String does not match pattern.'] },
  })
  assert.equal((await engine.redrive({ ids: [id], payload: 'aaa' })).redriven.length, 1)
})

test('a schema that stands for endless work is refused when it is registered, with the reason', async t => {
  const { engine } = await fresh(t)
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`p${at}`, { $ref: '#/$defs/a' }]))
  const nested = JSON.parse(`${'{"not":'.repeat(101)}{}${'}'.repeat(101)}`)
  const refused: [schema: object, why: RegExp, code?: string][] = [
    [doublingSchema(40), /more than 10,000 schemas apply to one value/],
    [{ $ref: '#' }, /refers to itself/],
    [{ $defs: { a: { $ref: '#/$defs/a' } } }, /refers to itself/],
    [{ $defs: { a: { anyOf: [{ not: { $ref: '#/$defs/a' } }] } } }, /\$defs\.a.* refers to itself/],
    [{ if: true, else: { dependentSchemas: { a: { $ref: '#' } } } }, /refers to itself/],
    [{ $defs: { a: {} }, properties: many }, /1001 references/],
    [{ pattern: '^(?=a)b' }, /not supported by RE2.*without lookaround/],
    [{ patternProperties: { '(a)\\1': true } }, /not supported by RE2.*without lookaround/],
    [{ properties: { a: { required: true } } }, /properties\.a: required must be a list of names/],
    [{ type: 'any' }, /type must be one of/],
    [{ allOf: {} }, /allOf must be a list of schemas/],
    [{ properties: [] }, /properties must be an object of schemas/],
    [{ items: 1 }, /items must be a schema/],
    [nested, /100 levels/, 'PAYLOAD_INVALID'],
    [{ description: 'x'.repeat(100_001) }, /larger than the limit/, 'PAYLOAD_TOO_LARGE'],
  ]
  for (const [payloadSchema, why, code = 'OPTION_INVALID'] of refused) {
    await assert.rejects(engine.putTaskType('letter', { payloadSchema } as never), (problem: Problem) => {
      assert.equal(problem.code, code)
      assert.match(problem.message + JSON.stringify(problem.details), why)
      return true
    })
  }
  await assert.rejects(engine.taskType('letter'), { code: 'TASK_TYPE_UNKNOWN' })
})

test('a schema may refer to itself for parts of the payload', async t => {
  const { engine } = await fresh(t)
  const tree = { type: 'object', properties: { children: { type: 'array', items: { $ref: '#' } } } }
  await engine.putTaskType('tree', { payloadSchema: tree })
  const { id } = await engine.enqueue('tree', {})
  await engine.deadLetter(id, { reasonCode: 'parse_error' })
  await assert.rejects(
    engine.redrive({ ids: [id], payload: { children: [{ children: [1] }] } }),
    /children\.0\.children\.0/,
  )
  assert.equal((await engine.redrive({ ids: [id], payload: { children: [{ children: [] }] } })).redriven.length, 1)
})

test('a schema that an older version accepted refuses payloads with the reason, and stops nothing', async t => {
  const { engine, sql } = await fresh(t)
  const { id } = await engine.enqueue('letter', 'x')
  await engine.deadLetter(id, { reasonCode: 'parse_error' })
  for (const [schema, why] of [
    [doublingSchema(40), /schema of this type cannot be used \(more than 10,000 schemas/],
    [{ allOf: [{ $ref: '#' }] }, /refers to itself/],
    [{ pattern: '(?=a)' }, /not supported by RE2/],
    [{ required: 1 }, /required must be a list of names/],
    [{ $ref: 'https://elsewhere/b' }, /does not exist in the schema/],
  ] as const) {
    await putTaskType(sql, 'letter', {}, JSON.stringify(schema))
    await assert.rejects(engine.redrive({ ids: [id], payload: 'a' }), { code: 'PAYLOAD_REFUSED', message: why })
  }
  await engine.putTaskType('letter', { payloadSchema: { type: 'string' } })
  assert.equal((await engine.redrive({ ids: [id], payload: 'a' })).redriven.length, 1)
})

test('a payload is checked in a bounded number of steps, whatever the schema and the payload', () => {
  const doubles = { properties: { a: { $ref: '#' } } }
  const nested = JSON.parse(`${'{"a":'.repeat(99)}{}${'}'.repeat(99)}`)
  const texts = Array.from({ length: 5000 }, (_, at) => `text ${at}`)
  const object = Object.fromEntries(texts.map(text => [text, 1]))
  const chain = Object.fromEntries(texts.slice(0, 150).map((_, at) => [`d${at}`, { $ref: `#/$defs/d${at + 1}` }]))
  for (const [schema, payload] of [
    [{ allOf: [doubles, doubles] }, nested],
    [{ oneOf: [doubles, { ...doubles, required: ['b'] }] }, nested],
    [{ contains: { contains: { const: 1 } } }, texts.map(() => texts)],
    [{ items: { enum: texts } }, texts.map(text => `${text}!`)],
    [{ items: { const: texts } }, texts.slice(0, 1000).map(() => [...texts])],
    [{ items: { uniqueItems: true } }, texts.map(() => texts)],
    [{ items: { required: texts } }, texts.map(() => ({}))],
    [{ patternProperties: Object.fromEntries(texts.map(text => [`(${text}+)+`, true])) }, object],
    [{ items: { pattern: '(a*)*b' } }, texts.map(() => 'a'.repeat(1000))],
    [{ items: { format: 'email' } }, texts.map(() => 'a.'.repeat(1000))],
    [{ anyOf: texts.map(() => ({ additionalProperties: true })), unevaluatedProperties: false }, object],
    [{ $defs: { ...chain, d150: { properties: { a: { $ref: '#' } } } }, $ref: '#/$defs/d0' }, nested],
  ]) {
    const [fault = ''] = faultsIn(schema as PayloadSchema, payload)
    assert.match(
      fault,
      /cannot be checked .*(more than 1,000,000 steps|more than 1,000 schemas)/,
      JSON.stringify(schema).slice(0, 200),
    )
  }
  assert.deepEqual(faultsIn({ uniqueItems: true, items: { minLength: 1 } }, texts), [])
  assert.equal(faultsIn({ items: { type: 'number' } }, texts).length, 100)
})

test('a type whose schema has patterns that the server cannot run is registered without these patterns', async t => {
  const { engine } = await fresh(t)
  const host = defineTask({ type: 'ping', payload: z.object({ host: z.hostname() }), handler: async () => {} })
  await engine.register(host)
  const { payloadSchema } = await engine.taskType('ping')
  assert.deepEqual(payloadSchema!.properties, { host: { type: 'string', format: 'hostname' } })
  await assert.rejects(engine.enqueue(host, { host: '-' }), { code: 'PAYLOAD_REFUSED' })
})

test('the server accepts every payload that a schema with removed patterns accepts', async t => {
  const { engine } = await fresh(t)
  const email = z.object({ to: z.email(), kind: z.enum(['a', 'b']).default('a') })
  const payload = z.discriminatedUnion('by', [
    z.object({ by: z.literal('mail'), mail: email }),
    z.object({ by: z.literal('hook'), url: z.url(), mood: z.emoji().optional() }),
  ])
  const task = defineTask({ type: 'tell', payload, handler: async () => {} })
  const good = [
    { by: 'mail', mail: { to: 'ada@example.com' } },
    { by: 'hook', url: 'https://example.com', mood: '🙂' },
  ] as const
  for (const each of good) await engine.enqueue(task, each)
  const { payloadSchema } = await engine.taskType('tell')
  assert.doesNotMatch(JSON.stringify(payloadSchema), /"oneOf"|Emoji|\(\?!/)
  for (const each of good) await engine.enqueue('tell', each)
  for (const bad of [{ by: 'mail', mail: { to: 'ada' } }, { by: 'hook', url: 7 }, { by: 'fax' }]) {
    assert.ok(faultsIn(payloadSchema!, bad).length > 0, JSON.stringify(bad))
  }
})
