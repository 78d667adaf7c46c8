import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as z from 'zod'
import { eventually } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { served } from '../../test/harness/served.ts'
import { defineTask } from '../worker/define-task.ts'
import { startWorker } from '../worker/worker.ts'

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
  assert.deepEqual(await client.taskTypes(), [{ type: 'letter', ...(await engine.taskType('letter')) }])
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

test('a pattern that would take years holds nobody up: the payload is refused within a moment', async t => {
  const { engine } = await fresh(t)
  await engine.putTaskType('letter', { payloadSchema: { type: 'string', pattern: '^(a+)+$' } })
  const { id } = await engine.enqueue('letter', 'x')
  await engine.deadLetter(id, { reasonCode: 'parse_error' })
  await assert.rejects(engine.redrive({ ids: [id], payload: `${'a'.repeat(60)}!` }), {
    code: 'PAYLOAD_REFUSED',
    details: { at: 'payload', type: 'letter', issues: ['a pattern in the schema of this type takes too long'] },
  })
  assert.equal((await engine.redrive({ ids: [id], payload: 'aaa' })).redriven.length, 1)
})
