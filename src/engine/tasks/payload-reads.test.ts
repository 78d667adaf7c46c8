import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import * as z from 'zod'
import { ended } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { stageOf, statesOf } from '../../../test/harness/jobs.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { StaleSchemas } from '../../store/tasks/payload-schemas.ts'
import { defineTask } from '../../worker/define-task.ts'
import { startWorker } from '../../worker/worker.ts'
import type { Engine } from '../engine.ts'
import { insertChecked, KnownSchemas } from './payload-checks.ts'

const personSchema = {
  type: 'object',
  properties: {
    email: { type: 'string', format: 'email' },
    otherEmail: { type: 'string', format: 'email' },
    id: { type: 'string', format: 'uuid' },
    phone: { type: 'string', pattern: '^\\+[0-9 ]{5,20}$' },
  },
  required: ['email', 'id', 'phone'],
}
const email = 'augusta.ada.king@lovelace.example'
const person = { email, otherEmail: email, id: crypto.randomUUID(), phone: '+44 20 7946 0958' }
const persons = Array.from({ length: 10_000 }, () => person)

const statementsOf = async ({ context }: Engine, work: () => Promise<unknown>) => {
  const count = () => context.metrics.statements.counts.reduce((sum, n) => sum + n, 0)
  const before = count()
  await work()
  return count() - before
}

/** The store, and how many schemas each statement through it has answered with. */
function recorded({ sql }: Pick<Fresh, 'sql'>, onAnswer = () => {}) {
  const answers: number[] = []
  const run = async (...args: Parameters<Sql>) => {
    const rows = await sql(...args)
    const schemas = rows.filter(row => (row as { schema?: unknown }).schema != null)
    if (schemas.length > 0) answers.push(schemas.length)
    onAnswer()
    return rows
  }
  return { sql: Object.assign(run, { isTransaction: false }) as unknown as Sql, answers }
}

/** Counts the turns of the event loop. */
function turns() {
  const counted = { count: 0, stop: () => clearImmediate(timer) }
  const turn = () => {
    counted.count += 1
    timer = setImmediate(turn)
  }
  let timer = setImmediate(turn)
  return counted
}

const withTypes = async ({ engine }: Fresh, count: number, payloadSchema: object) => {
  const types = Array.from({ length: count }, (_, n) => `t${n}`)
  for (const type of types) await engine.putTaskType(type, { payloadSchema: { ...payloadSchema } })
  return types
}

test('10,000 payloads with formats and patterns are checked in one call, while other work goes on', async t => {
  const run = await fresh(t)
  const { engine } = run
  await engine.putTaskType('greet', { payloadSchema: personSchema })
  assert.equal((await engine.enqueueMany(persons.map(payload => ({ type: 'greet', payload })))).length, 10_000)
  const counted = turns()
  t.after(counted.stop)
  const payloads = { tasks: persons.map(one => ({ type: 'greet', payload: JSON.stringify(one) })), at: String }
  let begun = 0
  const read = recorded(run, () => {
    begun = counted.count
  })
  await insertChecked(engine.context.types.schemas, read.sql, payloads, async () => {
    assert.ok(counted.count - begun > 20, `${counted.count - begun} turns`)
  })
})

test('a list of thousands of elements with formats and patterns becomes tasks', async t => {
  const run = await fresh(t)
  await run.engine.putTaskType('greet', { payloadSchema: personSchema })
  const stages = [{ name: 'a', task: 'greet', forEach: 'input' }]
  const job = await run.engine.submit({ name: 'j', input: persons.slice(0, 3000), stages })
  const { error } = await stageOf(run, job.id, 'a')
  assert.equal(error, null)
})

test('schemas are read in small parts, and other work goes on between them', async t => {
  const run = await fresh(t)
  const types = await withTypes(run, 50, personSchema)
  const counted = turns()
  t.after(counted.stop)
  let begun = 0
  const read = recorded(run, () => {
    begun = counted.count
  })
  await new KnownSchemas().read(read.sql, types)
  assert.equal(
    read.answers.reduce((sum, n) => sum + n, 0),
    50,
  )
  assert.ok(Math.max(...read.answers) <= 20, read.answers.join())
  assert.ok(counted.count - begun >= read.answers.at(-1)! - 1, `${counted.count - begun} turns`)
})

test('a schema is not sent again while it is the same', async t => {
  const run = await fresh(t)
  await run.engine.putTaskType('greet', { payloadSchema: personSchema })
  const { sql, answers } = recorded(run)
  const schemas = new KnownSchemas()
  for (let time = 0; time < 3; time++) await schemas.read(sql, ['greet'])
  assert.deepEqual(answers, [1])
})

test('calls that need the same schema at once share one read', async t => {
  const run = await fresh(t)
  await run.engine.putTaskType('greet', { payloadSchema: personSchema })
  const { sql, answers } = recorded(run)
  const schemas = new KnownSchemas()
  const payloads = { tasks: [{ type: 'greet', payload: JSON.stringify(person) }], at: String }
  const insert = async (versions: ReadonlyMap<string, string>) => {
    if (!versions.has('greet')) throw new StaleSchemas(['greet'])
  }
  await Promise.all(Array.from({ length: 50 }, () => insertChecked(schemas, sql, payloads, insert)))
  assert.deepEqual(answers, [1])
})

test('a call may use types whose schemas do not fit into memory together', async t => {
  const run = await fresh(t)
  const fields = Array.from({ length: 30 }, (_, n) => [`a${n}`, { pattern: `^[a-z]{1,500}${n}$` }])
  const types = await withTypes(run, 3, { properties: Object.fromEntries(fields) })
  const { engine } = run
  assert.equal((await engine.enqueueMany(types.map(type => ({ type, payload: {} })))).length, 3)
})

test('a call whose schemas keep changing may be repeated later', async t => {
  const run = await fresh(t)
  const insert = () => Promise.reject(new StaleSchemas(['greet']))
  const payloads = { tasks: [{ type: 'greet', payload: '1' }], at: String }
  await assert.rejects(insertChecked(new KnownSchemas(), run.sql, payloads, insert), {
    code: 'STORE_BUSY',
    message: /kept changing.*greet/,
  })
})

test('a list costs no more statements with a known schema than without one', async t => {
  const { engine } = await fresh(t)
  await engine.putTaskType('greet', { payloadSchema: personSchema })
  const submit = (task: string) =>
    engine.submit({ name: 'j', input: persons.slice(0, 10), stages: [{ name: 'a', task, forEach: 'input' }] })
  const counts: number[] = []
  for (const type of ['plain', 'greet']) {
    await submit(type)
    counts.push(await statementsOf(engine, () => submit(type)))
  }
  assert.equal(counts[1], counts[0])
})

test('a list whose statement is cancelled is repeated later, and its stage does not fail', async t => {
  const run = await fresh(t)
  const { engine, sql } = run
  await sql.script(`
    create function pawl.cancelled() returns trigger language plpgsql as
      $$ begin raise exception 'canceling statement due to statement timeout' using errcode = '57014'; end $$;
    create trigger cancelled before insert on pawl.task execute function pawl.cancelled()`)
  const id = crypto.randomUUID()
  const spec = { id, name: 'j', input: [1, 2], stages: [{ name: 'a', task: 'plain', forEach: 'input' }] }
  await assert.rejects(engine.submit(spec), { code: 'STORE_BUSY' })
  await sql.script('drop trigger cancelled on pawl.task')
  const job = await engine.submit(spec)
  assert.match(await statesOf(run, job.id), /a pending/)
})

const throwing = defineTask({
  type: 'throwing',
  payload: z.any().refine(value => value.length > 0),
  handler: async () => {},
})

test('a payload whose check throws is refused with the text of the error', async t => {
  const { engine } = await fresh(t)
  await assert.rejects(engine.enqueue(throwing, null), { code: 'PAYLOAD_REFUSED', message: /reading 'length'/ })
})

/** Runs a job whose task spawns, and returns this task. */
async function spawned(engine: Engine, spawn: { type?: string; payload: unknown; stage?: string }, task = 'split') {
  const split = defineTask({ type: task, handler: (_, ctx) => ctx.spawn(spawn) })
  await using _worker = startWorker(engine, [split], { drainSeconds: 2 })
  const later = { name: 'b', task: 'throwing', needs: ['a'], open: 'untilDone' } as const
  const first = { name: 'a', task, open: 'untilDone', payload: 1 } as const
  const job = await engine.submit({ name: 'j', stages: [first, later] })
  // The spawned task may be there already, and nothing runs it.
  const { items } = await engine.jobTasks(job.id)
  return await ended(engine, items.find(({ type }) => type === task)!.id)
}

for (const [what, spawn] of [
  ['of its type', { type: 'throwing', payload: null }],
  ['of the type of a later stage', { stage: 'b', payload: null }],
] as const) {
  test(`a task that spawns a payload whose check throws is set aside with the reason: the schema ${what}`, async t => {
    const { engine } = await fresh(t)
    await engine.register(throwing)
    const { state, error } = await spawned(engine, spawn)
    assert.equal(state, 'dead_lettered')
    assert.match(error!.message, /tasks\[0\]\.payload.*reading 'length'/)
  })
}

test('spawned payloads are checked while the job is not locked', async t => {
  const { engine, sql } = await fresh(t)
  let checks = 0
  const validate = async (value: unknown) => {
    checks += 1
    await sql`select from pawl.job for update`
    return { value }
  }
  const payload = { '~standard': { version: 1, vendor: 'test', validate } } as const
  await engine.register(defineTask({ type: 'careful', payload, handler: async () => {} }))
  const { state } = await spawned(engine, { type: 'careful', payload: 1 })
  assert.deepEqual([state, checks > 0], ['succeeded', true])
})

test('calls that share a statement with one whose schema has changed still share it', async t => {
  const { engine } = await fresh(t)
  await engine.enqueue('plain', 1)
  await engine.putTaskType('greet', { payloadSchema: personSchema })
  const tasks = Array.from({ length: 30 }, (_, n) => (n % 10 === 5 ? 'greet' : 'plain'))
  const all = (call: (type: string) => Promise<unknown>) => () => Promise.all(tasks.map(call))
  const job = (task: string) => ({ name: 'j', stages: [{ name: 'a', task, payload: person }] })
  const enqueues = await statementsOf(
    engine,
    all(type => engine.enqueue(type, person)),
  )
  assert.ok(enqueues < 15, `${enqueues} statements`)
  await engine.putTaskType('greet', { payloadSchema: { ...personSchema, title: 'Person' } })
  await nextTurn()
  const submits = await statementsOf(
    engine,
    all(type => engine.submit(job(type))),
  )
  assert.ok(submits < 15, `${submits} statements`)
})
