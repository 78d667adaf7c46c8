import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import * as z from 'zod'
import { needsServer } from '../../../test/harness/databases.ts'
import { ended, eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { say, stageOf, statesOf, workOff } from '../../../test/harness/jobs.ts'
import { served } from '../../../test/harness/served.ts'
import type { Problem } from '../../kernel/problem.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { defineTask } from '../../worker/define-task.ts'
import { startWorker } from '../../worker/worker.ts'
import { type Engine, openEngine } from '../engine.ts'
import { writeTaskType } from './task-types.ts'

const payloadSchema = {
  type: 'object',
  properties: { width: { type: 'integer', minimum: 1 } },
  required: ['width'],
}
const good = { width: 5 }
const bad = { width: 'wide' }
const longSchema = { ...payloadSchema, properties: { width: { type: ['integer', 'string'] } } }

/** The type `resize` has a schema in the store, which this process has not read. */
async function withSchema(t: TestContext): Promise<Fresh> {
  const run = await fresh(t)
  await run.engine.putTaskType('resize', { payloadSchema })
  return run
}

const refusedAt = (at: string) => (problem: Problem) => {
  assert.deepEqual([problem.code, problem.status, problem.details.at], ['PAYLOAD_REFUSED', 400, at])
  assert.match(problem.message, /width: |Expected \\"object/)
  return true
}

const countOf = async ({ sql }: Pick<Fresh, 'sql'>) => {
  const [rows] = await sql<{ jobs: number; stages: number; tasks: number }>`
    select (select count(*) from pawl.job)::int as jobs, (select count(*) from pawl.stage)::int as stages,
           (select count(*) from pawl.task)::int as tasks`
  return [rows!.jobs, rows!.stages, rows!.tasks]
}

const jobOf = (stage: object): JobSpec => ({ name: 'j', stages: [{ name: 'a', task: 'resize', ...stage }] })
const many = Array.from({ length: 6000 }, (_, n) => ({ width: n === 5500 ? 0 : 1 }))

const entries: [what: string, queue: (engine: Engine) => Promise<unknown>, at: string][] = [
  ['enqueue', engine => engine.enqueue('resize', bad), 'tasks[0].payload'],
  ['enqueue with a dedupe key', engine => engine.enqueue('resize', bad, { dedupeKey: 'k' }), 'tasks[0].payload'],
  [
    'enqueueMany',
    engine =>
      engine.enqueueMany([
        { type: 'other' },
        { type: 'resize', payload: good },
        { type: 'resize', payload: bad, dedupeKey: 'k' },
      ]),
    'tasks[2].payload',
  ],
  ['the payload of a stage', engine => engine.submit(jobOf({ payload: bad })), 'stages.a.payload'],
  ['no payload, where one is needed', engine => engine.submit(jobOf({})), 'stages.a.payload'],
  ['the payloads of a stage', engine => engine.submit(jobOf({ payloads: [good, bad] })), 'stages.a.payloads[1]'],
  [
    'a stage that opens later',
    engine =>
      engine.submit({ name: 'j', stages: [{ name: 'first', task: 'other' }, ...jobOf({ payload: bad }).stages!] }),
    'stages.a.payload',
  ],
  ['a job with a gate', engine => engine.submit(jobOf({ payload: bad, gate: true })), 'stages.a.payload'],
  ['a large job', engine => engine.submit(jobOf({ payloads: many })), 'stages.a.payloads[5500]'],
  [
    'a large job under a key',
    engine => engine.submit(jobOf({ payloads: many }), { idempotencyKey: 'k' }),
    'stages.a.payloads[5500]',
  ],
]

for (const [what, queue, at] of entries) {
  test(`a payload that the schema of its type refuses is not queued: ${what}`, async t => {
    const run = await withSchema(t)
    for (let time = 0; time < 2; time++) await assert.rejects(queue(run.engine), refusedAt(at))
    assert.deepEqual(await countOf(run), [0, 0, 0])
  })
}

test('a payload that its schema refuses is not added to a running job', async t => {
  const run = await withSchema(t)
  const { engine } = run
  const job = await engine.submit({ name: 'j', open: true, stages: [{ name: 'a', task: 'resize', open: true }] })
  const adding = engine.addTasks(job.stages[0]!.id, [{ payload: good }, { payload: bad }])
  await assert.rejects(adding, refusedAt('tasks[1].payload'))
  const stage = { name: 'b', task: 'resize', payloads: [good, bad] }
  await assert.rejects(engine.addStages(job.id, [stage]), refusedAt('stages.b.payloads[1]'))
  assert.deepEqual(await countOf(run), [1, 1, 0])
  await engine.addTasks(job.stages[0]!.id, [{ payload: good }])
  await engine.addStages(job.id, [{ ...stage, payloads: [good] }])
  assert.deepEqual(await countOf(run), [1, 2, 2])
})

test('a refused payload is a 400 over HTTP that names the field, also for stages', async t => {
  const { engine, request, client } = await served(t)
  await engine.putTaskType('resize', { payloadSchema })
  for (const [path, json, at] of [
    ['/v1/tasks', { type: 'resize', payload: bad }, 'tasks[0].payload'],
    [
      '/v1/tasks',
      [
        { type: 'resize', payload: good },
        { type: 'resize', payload: bad },
      ],
      'tasks[1].payload',
    ],
    ['/v1/jobs', jobOf({ payloads: [good, bad] }), 'stages.a.payloads[1]'],
  ] as const) {
    const answer = await request(path, { method: 'POST', json })
    const { code, details } = (await answer.json()) as { code: string; details: { at: string; issues: string[] } }
    assert.deepEqual([answer.status, code, details.at], [400, 'PAYLOAD_REFUSED', at])
    assert.match(details.issues.join(), /^width: /)
  }
  await assert.rejects(client.enqueue('resize', bad), refusedAt('tasks[0].payload'))
  assert.deepEqual([(await engine.tasks()).items, (await engine.jobs()).items], [[], []])
})

test('a Date is checked as the text that the handler gets', async t => {
  const { engine } = await fresh(t)
  const at = new Date()
  const remind = defineTask({ type: 'remind', payload: z.object({ at: z.date() }), handler: async () => {} })
  await assert.rejects(engine.enqueue(remind, { at }), { code: 'PAYLOAD_REFUSED', message: /at: .*expected date/ })
  await engine.putTaskType('later', { payloadSchema: { properties: { at: { type: 'string', format: 'date-time' } } } })
  assert.equal((await engine.enqueue('later', { at })).state, 'queued')
})

test('a schema that another server changes counts at once, whether it refuses more or less', needsServer(), async t => {
  const run = await withSchema(t)
  const { engine, url, schema } = run
  const other = await openEngine({ database: url!, schema })
  t.after(() => other.close())
  const queues = [
    (payload: unknown) => engine.enqueue('resize', payload),
    (payload: unknown) => engine.enqueue('resize', payload, { idempotencyKey: crypto.randomUUID() }),
    (payload: unknown) => engine.submit(jobOf({ payload })),
    (payload: unknown) => engine.submit(jobOf({ payload, gate: true })),
  ]
  for (const queue of queues) {
    await other.putTaskType('resize', { payloadSchema })
    await queue(good)
    await assert.rejects(queue(bad), { code: 'PAYLOAD_REFUSED' })
    await other.putTaskType('resize', { payloadSchema: longSchema })
    await queue(bad)
    await other.putTaskType('resize', { payloadSchema: { type: 'string' } })
    await assert.rejects(queue(bad), { code: 'PAYLOAD_REFUSED' })
    await other.putTaskType('resize', { payloadSchema: null })
    await queue(bad)
  }
})

test('a change of a schema that is rolled back counts for nobody', async t => {
  const { engine } = await withSchema(t)
  const text = { payloadSchema: { type: 'string' } }
  const changing = engine.transaction(async tx => {
    await writeTaskType(engine.context, 'resize', text, tx)
    await engine.enqueue('resize', 'text', { tx })
    await assert.rejects(engine.enqueue('resize', good, { tx }), { code: 'PAYLOAD_REFUSED' })
    throw new Error('changed my mind')
  })
  await assert.rejects(changing, /changed my mind/)
  await engine.enqueue('resize', good)
  await assert.rejects(engine.enqueue('resize', 'text'), { code: 'PAYLOAD_REFUSED' })
})

test('a refused payload leaves the caller’s transaction as it was', async t => {
  const { engine } = await withSchema(t)
  await engine.transaction(async tx => {
    await engine.enqueue('resize', good, { tx })
    await assert.rejects(engine.enqueue('resize', bad, { tx }), refusedAt('tasks[0].payload'))
    await assert.rejects(engine.submit(jobOf({ payload: bad }), { tx }), refusedAt('stages.a.payload'))
    await engine.enqueue('resize', good, { tx })
  })
  assert.equal((await engine.tasks()).items.length, 2)
})

test('a schema costs no statement once it is known, and a type without one never does', needsServer(), async t => {
  const { engine } = await withSchema(t)
  const { statements } = engine.context.metrics
  const counted = async (queue: () => Promise<unknown>) => {
    const count = () => statements.counts.reduce((sum, n) => sum + n, 0)
    const before = count()
    await queue()
    return count() - before
  }
  await engine.enqueue('plain', null)
  await engine.enqueue('resize', good)
  const job = (task: string) => ({ name: 'j', stages: [{ name: 'a', task, payload: good }] })
  for (const type of ['plain', 'resize']) {
    assert.equal(await counted(() => engine.enqueue(type, good)), 1, type)
    assert.equal(await counted(() => engine.enqueueMany([{ type, payload: good }, { type: 'plain' }])), 1, type)
    assert.equal(await counted(() => engine.submit(job(type))), 1, type)
  }
  assert.equal(await counted(() => assert.rejects(engine.enqueue('resize', bad))), 1, 'the schema is read again')
})

test('calls that share a statement are refused one by one', async t => {
  const { engine } = await withSchema(t)
  const payloads = Array.from({ length: 40 }, (_, n) => (n % 10 === 3 ? bad : good))
  const answers = await Promise.allSettled(payloads.map(payload => engine.enqueue('resize', payload)))
  const jobs = await Promise.allSettled(payloads.map(payload => engine.submit(jobOf({ payload }))))
  const expected = payloads.map(payload => (payload === bad ? 'rejected' : 'fulfilled'))
  assert.deepEqual(
    [answers, jobs].map(all => all.map(({ status }) => status)),
    [expected, expected],
  )
  assert.deepEqual([(await engine.tasks()).items.length, (await engine.jobs()).items.length], [72, 36])
})

test('a repeated request gets its first answer, even if the schema refuses its payload by now', async t => {
  const { engine } = await withSchema(t)
  const call = { idempotencyKey: 'k' }
  const { id } = await engine.enqueue('resize', good, call)
  const job = await engine.submit(jobOf({ payload: good }), { idempotencyKey: 'j' })
  await engine.putTaskType('resize', { payloadSchema: { type: 'string' } })
  assert.equal((await engine.enqueue('resize', good, call)).id, id)
  assert.equal((await engine.submit(jobOf({ payload: good }), { idempotencyKey: 'j' })).id, job.id)
})

test('a list whose elements the schema refuses fails its stage with the reason, and none of them is queued', async t => {
  const run = await withSchema(t)
  const { engine } = run
  const job = await engine.submit({
    name: 'j',
    input: [good, bad],
    stages: [{ name: 'a', task: 'resize', forEach: 'input' }],
  })
  assert.equal(await statesOf(run, job.id), 'failed: a failed')
  const { error, cause } = await stageOf(run, job.id, 'a')
  assert.equal(cause, 'condition_error')
  assert.match(error!.message, /forEach\[1\].*width: /)
  assert.deepEqual(await countOf(run), [1, 1, 0])
  const list = await engine.submit({
    name: 'j',
    input: [good, good],
    stages: [{ name: 'a', task: 'resize', forEach: 'input' }],
  })
  assert.equal(await workOff(run, 'resize'), 2)
  assert.equal(await statesOf(run, list.id), 'succeeded: a succeeded')
})

test('a task that spawns a payload that the schema refuses is set aside with the reason, and spawns nothing', async t => {
  const { engine } = await withSchema(t)
  const split = defineTask({
    type: 'split',
    handler: (_, ctx) => ctx.spawn({ type: 'resize', payload: good }, { type: 'resize', payload: bad }),
  })
  await using _worker = startWorker(engine, [split], { drainSeconds: 2 })
  const job = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'split', open: 'untilDone', payload: 1 }] })
  const [task] = (await engine.jobTasks(job.id)).items
  const { state, error } = await ended(engine, task!.id)
  assert.equal(state, 'dead_lettered')
  assert.match(error!.message, /tasks\[1\]\.payload.*width: /)
  assert.equal((await engine.jobTasks(job.id)).items.length, 1)
})

test('an undo is queued whatever its schema says: its dead letter can be redriven with another payload', async t => {
  const run = await withSchema(t)
  const { engine } = run
  const job = await engine.submit({
    name: 'j',
    stages: [
      { name: 'a', task: 'make', payload: 1, compensate: { task: 'resize' } },
      { name: 'b', task: 'break', payload: 1 },
    ],
  })
  await workOff(run, 'make')
  await workOff(run, 'break', 'failed')
  const { claimed } = await run.sync({ queues: ['resize'], claim: 1 })
  assert.equal((claimed[0]!.payload as { payload: unknown }).payload, 1)
  await say(run, claimed, 'succeeded')
  await eventually('the job has ended', async () => (await engine.job(job.id)).endedAt !== null)
})
