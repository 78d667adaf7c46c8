import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import * as z from 'zod'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { taskIn } from '../../test/harness/task-in.ts'
import { Problem, type ProblemCode } from '../kernel/problem.ts'
import type { TaskQuery } from '../protocol/tasks/tasks.ts'
import { defineTask } from '../worker/define-task.ts'
import { pawl } from './engine.ts'

/** Returns the number of rows in each table: a refused request must leave no trace. */
async function rowCounts({ sql }: Fresh): Promise<unknown> {
  const [counts] = await sql`
    select (select count(*) from pawl.task) as tasks, (select count(*) from pawl.due) as due,
           (select count(*) from pawl.change) as changes, (select count(*) from pawl.expiry) as expiries,
           (select count(*) from pawl.idempotency) as keys, (select count(*) from pawl.trouble) as trouble,
           (select count(*) from pawl.task_type) as types, (select sum(seq) from pawl.task) as events`
  return counts
}

/** Expects the call to be refused with this code and message, and to change nothing. */
async function rejects(run: Fresh, call: () => Promise<unknown>, code: ProblemCode, expected: RegExp): Promise<void> {
  const before = await rowCounts(run)
  const error = await call().then(
    () => assert.fail(`it was taken, but should be ${code}`),
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof Problem)) throw error
  assert.equal(error.code, code)
  assert.ok(error.status >= 400 && error.status < 500, `${error.status}`)
  assert.match(error.message.replaceAll('\\"', '"'), expected)
  assert.deepEqual(await rowCounts(run), before)
}

const nul = String.fromCharCode(0)
const loneSurrogate = String.fromCharCode(0xd800)
const cycle: Record<string, unknown> = { name: 'me' }
cycle.me = cycle
const nested = (levels: number) => JSON.parse('['.repeat(levels) + ']'.repeat(levels))
const endlesslyNested = () => {
  let value: unknown = null
  for (let level = 0; level < 100_000; level++) value = [value]
  return value
}

const badPayloads: [what: string, payload: unknown, code: ProblemCode, expected: RegExp][] = [
  ['a cycle', cycle, 'PAYLOAD_INVALID', /circular/i],
  ['a NUL', { text: `a${nul}b` }, 'PAYLOAD_INVALID', /NUL/],
  ['a NUL in a key', { [nul]: 1 }, 'PAYLOAD_INVALID', /NUL/],
  ['half of a surrogate pair', [loneSurrogate], 'PAYLOAD_INVALID', /surrogate/],
  ['101 levels', nested(101), 'PAYLOAD_INVALID', /100 levels/],
  ['no bottom', endlesslyNested(), 'PAYLOAD_INVALID', /payload/],
  ['a bigint', { n: 1n }, 'PAYLOAD_INVALID', /BigInt/],
  ['a function', () => 1, 'PAYLOAD_INVALID', /function is not JSON/],
  ['a symbol', Symbol('a'), 'PAYLOAD_INVALID', /symbol is not JSON/],
  ['more bytes than the limit', 'ä'.repeat(600), 'PAYLOAD_TOO_LARGE', /limit: 1000/],
]

test('a payload that cannot be kept is refused, and its neighbours with it', async t => {
  const run = await fresh(t, { maxPayloadBytes: 1000 })
  for (const [what, payload, code, expected] of badPayloads) {
    const items = [
      { type: 'a', payload: 'fine' },
      { type: 'a', payload },
    ]
    await t.test(what, async () => {
      await rejects(run, () => run.engine.enqueueMany(items), code, expected)
      await rejects(run, () => run.engine.enqueueMany(items), code, /tasks\[1\]\.payload/)
    })
  }
})

test('a payload that only looks odd is kept as it came', async t => {
  const { engine, sync } = await fresh(t)
  const payload = { text: '\\u0000 \\ud800 "\\" \u0001 😀 \u2028', deep: nested(99), '': [1e21, -0.5, null] }
  const { id } = await engine.enqueue('a', payload)
  assert.deepEqual((await engine.task(id)).payload, payload)
  const { claimed } = await sync({ queues: ['a'], claim: 1 })
  await sync({ settled: [{ id, epoch: claimed[0]!.epoch, outcome: 'succeeded', output: payload }] })
  assert.deepEqual((await engine.task(id)).output, payload)
})

test('an option that does not exist is refused with the one that was meant', async t => {
  const run = await fresh(t)
  const { engine } = run
  const any = (value: object) => value as never
  const unknown: ProblemCode = 'OPTION_UNKNOWN'
  await rejects(run, () => engine.enqueue('a', null, any({ priorty: 1 })), unknown, /didYouMean: "priority"/)
  await rejects(run, () => engine.enqueueMany([any({ type: 'a', runat: 1 })]), unknown, /didYouMean: "runAt"/)
  await rejects(run, () => engine.enqueueMany([], any({ idempotencykey: 'k' })), unknown, /"idempotencyKey"/)
  await rejects(run, () => engine.putTaskType('a', any({ leaseSecond: 60 })), unknown, /didYouMean: "leaseSeconds"/)
  await rejects(run, () => engine.tasks(any({ states: 'queued' })), unknown, /didYouMean: "state"/)
  await rejects(run, () => engine.sync(any({ worker: 'w', queue: ['a'] })), unknown, /didYouMean: "queues"/)
  await rejects(run, () => pawl(any({ databse: 'x' })), unknown, /didYouMean: "database"/)
  const bound = (bounds: object) => pawl(any({ database: 'postgres://127.0.0.1:1/x', bounds }))
  await rejects(run, () => bound({ lockSecond: 1 }), unknown, /didYouMean: "lockSeconds"/)
  await rejects(run, () => bound({ lockSeconds: 'x' }), 'OPTION_INVALID', /lockSeconds/)
  await rejects(run, () => engine.enqueue('a', null, any({ constructor: 1 })), unknown, /constructor/)
  const retry = () => engine.enqueue('a', null, { retry: any({ attempt: 5 }) })
  await rejects(run, retry, 'OPTION_INVALID', /did you mean "attempts"/)
  const { id } = await taskIn(run, 'queued')
  await rejects(run, () => engine.cancel(id, any({ mod: 'hard' })), unknown, /didYouMean: "mode"/)
  await rejects(run, () => engine.retry(id, any({ reasons: 'x' })), unknown, /didYouMean: "reason"/)
  await rejects(run, () => engine.redrive(any({ dryrun: true })), unknown, /didYouMean: "dryRun"/)
})

test('deadlines that cannot be kept are refused, of a task and of a type', async t => {
  const run = await fresh(t)
  const { engine } = run
  const bad: [options: object, code: ProblemCode, expected: RegExp][] = [
    [{ softDeadlineSeconds: -1 }, 'OPTION_INVALID', /option: "softDeadlineSeconds", must: "be from 0.001/],
    [{ hardDeadlineSeconds: 0 }, 'OPTION_INVALID', /option: "hardDeadlineSeconds", must: "be from 0.001/],
    [{ hardDeadlineSeconds: 'soon' }, 'OPTION_INVALID', /be a number/],
    [
      { softDeadlineSeconds: 60, hardDeadlineSeconds: 59 },
      'OPTION_INVALID',
      /not be before softDeadlineSeconds, .* 60/,
    ],
    [{ softDeadlineSecond: 60 }, 'OPTION_UNKNOWN', /didYouMean: "softDeadlineSeconds"/],
    [{ hardDeadline: 60 }, 'OPTION_UNKNOWN', /hardDeadline/],
  ]
  for (const [options, code, expected] of bad) {
    await rejects(run, () => engine.enqueue('a', null, options as never), code, expected)
    await rejects(run, () => engine.putTaskType('a', options as never), code, expected)
  }
  await engine.enqueue('a', null, { softDeadlineSeconds: 60, hardDeadlineSeconds: 60 })
  await engine.enqueue('a', null, { softDeadlineSeconds: null, hardDeadlineSeconds: 0.001 })
})

test('an option whose value cannot be used is refused, and says what it must be', async t => {
  const run = await fresh(t)
  const { engine } = run
  const bad: [option: object, expected: RegExp][] = [
    [{ leaseSeconds: -5 }, /leaseSeconds.*from 5 to/],
    [{ leaseSeconds: 4 }, /from 5 to/],
    [{ leaseSeconds: Number.NaN }, /be a number/],
    [{ leaseSeconds: '60' }, /be a number/],
    [{ heartbeatSeconds: 0 }, /from 1 to/],
    [{ timeoutSeconds: -1 }, /timeoutSeconds/],
    [{ expireInSeconds: 0 }, /expireInSeconds/],
    [{ runInSeconds: -1 }, /runInSeconds/],
    [{ runInSeconds: Number.POSITIVE_INFINITY }, /be a number/],
    [{ runAt: 'tomorrow' }, /Date or an ISO 8601/],
    [{ runAt: new Date(Number.NaN) }, /Date or an ISO 8601/],
    [{ keepUntil: '+012345-01-01T00:00:00Z' }, /between the years/],
    [{ priority: 1.5 }, /be a whole number/],
    [{ deadLetter: 'sometimes' }, /one of "exhausted", "never"/],
    [{ retry: { attempts: 0 } }, /attempts.*from 1 to/],
    [{ retry: [] }, /be an object/],
    [{ dedupeKey: `a${nul}b` }, /contain no NUL/],
    [{ dedupeKey: loneSurrogate }, /no invalid Unicode/],
    [{ dedupeKey: '' }, /non-empty/],
    [{ queue: 'q'.repeat(201) }, /at most 200/],
    [{ traceparent: '00-abc' }, /W3C traceparent/],
    [{ metadata: [] }, /be an object/],
    [{ idempotencyKey: nul }, /contain no NUL/],
    [{ idempotencyKey: '' }, /non-empty/],
    [{ actor: nul }, /contain no NUL/],
  ]
  for (const [option, expected] of bad) {
    await rejects(run, () => engine.enqueue('a', null, option as never), 'OPTION_INVALID', expected)
  }
  await rejects(run, () => engine.enqueue('', null), 'OPTION_INVALID', /"type"/)
  await rejects(run, () => engine.enqueueMany([{} as never]), 'OPTION_INVALID', /type.*be given/)
  await rejects(run, () => engine.enqueueMany([null as never]), 'OPTION_INVALID', /tasks\[0\].*be an object/)
  await rejects(run, () => engine.putTaskType('a', { leaseSeconds: -1 }), 'OPTION_INVALID', /task type a/)
  const metadata = () => engine.enqueue('a', null, { metadata: { text: nul } })
  await rejects(run, metadata, 'PAYLOAD_INVALID', /metadata/)
})

test('ten thousand and one tasks are too many for one call', async t => {
  const run = await fresh(t)
  const items = Array.from({ length: 10_001 }, () => ({ type: 'a' }))
  await rejects(run, () => run.engine.enqueueMany(items), 'TOO_MANY_TASKS', /tasks: 10001.*at most 10,000/)
})

test('a payload that its schema refuses is not queued, and the problem lists why', async t => {
  const run = await fresh(t)
  const { engine } = run
  const handler = () => {}
  const zodly = defineTask({ type: 'zodly', payload: z.object({ to: z.email(), n: z.number() }), handler })
  const valibotly = defineTask({ type: 'valibotly', payload: v.object({ to: v.pipe(v.string(), v.email()) }), handler })
  await engine.register(zodly)
  await engine.register(valibotly)
  const bad = { to: 'nowhere', n: 'seven' as unknown as number }
  await rejects(run, () => engine.enqueue(zodly, bad), 'PAYLOAD_REFUSED', /to: .*n: /)
  await rejects(run, () => engine.enqueue(valibotly, bad), 'PAYLOAD_REFUSED', /"valibotly".*to: /)
  await rejects(run, () => engine.enqueue('zodly', bad), 'PAYLOAD_REFUSED', /tasks\[0\]\.payload/)
  const many = () => engine.enqueueMany([{ type: 'other' }, { type: 'zodly', payload: bad }])
  await rejects(run, many, 'PAYLOAD_REFUSED', /tasks\[1\]\.payload/)
  const { id } = await engine.enqueue(zodly, { to: 'ada@example.org', n: 7 })
  assert.equal((await engine.task(id)).state, 'queued')
})

test('a question that makes no sense is refused', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await taskIn(run, 'queued')
  const ask = (query: object) => () => engine.tasks(query as TaskQuery)
  await rejects(run, ask({ state: 'quued' }), 'OPTION_INVALID', /one of "blocked", "queued"/)
  await rejects(run, ask({ state: ['queued', 'gone'] }), 'OPTION_INVALID', /one of/)
  await rejects(run, ask({ limit: 0 }), 'OPTION_INVALID', /from 1 to 1000/)
  await rejects(run, ask({ queue: nul }), 'OPTION_INVALID', /NUL/)
  await rejects(run, () => engine.taskEvents(id, { limit: -1 }), 'OPTION_INVALID', /limit/)
  for (const limit of [0, 10_001]) {
    await rejects(run, () => engine.events({ limit }), 'OPTION_INVALID', /from 1 to 10000/)
  }
})

test('a cursor that a list did not give out is refused, of every list', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await taskIn(run, 'queued')
  const job = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const made = (position: unknown) => Buffer.from(JSON.stringify(position)).toString('base64url')
  const nonsense = ['x', ...[null, 7, [], {}].map(made)]
  const seqs = ['x', 1.5, -1, 1e15, null].map(seq => made({ seq }))
  const lists: [(cursor: string) => Promise<unknown>, string[]][] = [
    [cursor => engine.tasks({ cursor }), ['x', 7].map(before => made({ before }))],
    [cursor => engine.deadLetters({ cursor }), [made({ before: 'x' })]],
    [cursor => engine.jobTasks(job.id, { cursor }), [made({ before: 'x' })]],
    [cursor => engine.jobs({ cursor }), []],
    [cursor => engine.stages({ state: 'waiting', cursor }), []],
    [cursor => engine.taskEvents(id, { cursor }), seqs],
    [cursor => engine.jobEvents(job.id, { cursor }), seqs],
    [cursor => engine.stageEvents(job.stages[0]!.id, { cursor }), seqs],
    [
      cursor => engine.logs(id, { cursor }),
      [{ n: 1 }, { epoch: 'x', n: 1 }, { epoch: 1, n: 2 ** 31 }, { epoch: 1, n: -1 }].map(made),
    ],
    [cursor => engine.events({ cursor }), [{ tx: 'x' }, { tx: 1, n: 1 }].map(made)],
  ]
  for (const [read, odd] of lists) {
    for (const cursor of [...nonsense, ...odd]) {
      await rejects(run, () => read(cursor), 'CURSOR_INVALID', /was not created by this API/)
    }
  }
  const elsewhere = made({ tx: 1, n: 1, k: 1, of: 'another' })
  await rejects(
    run,
    () => engine.events({ cursor: elsewhere }),
    'CURSOR_GONE',
    /belongs to a history that no longer exists/,
  )
})

test('a request about a task that does not exist is refused', async t => {
  const run = await fresh(t)
  const { engine } = run
  const letter = { reasonCode: 'policy_violation' } as const
  for (const id of ['', 'x', `${nul}`, '01890000-0000-7000-8000-00000000000', '01890000-0000-7000-8000-000000000000']) {
    const calls = [
      () => engine.task(id),
      () => engine.taskEvents(id),
      () => engine.attempts(id),
      () => engine.cancel(id),
      () => engine.resume(id),
      () => engine.retry(id),
      () => engine.deadLetter(id, letter),
    ]
    for (const call of calls) await rejects(run, call, 'TASK_NOT_FOUND', /No task has this ID/)
  }
})

test('events of what does not exist are refused, from the start and behind a cursor', async t => {
  const run = await fresh(t)
  const { engine } = run
  const nobody = '01890000-0000-7000-8000-000000000000'
  const behind = { cursor: Buffer.from(JSON.stringify({ seq: 1 })).toString('base64url') }
  for (const ask of [{}, behind]) {
    await rejects(run, () => engine.taskEvents(nobody, ask), 'TASK_NOT_FOUND', /No task has this ID/)
    await rejects(run, () => engine.stageEvents(nobody, ask), 'STAGE_NOT_FOUND', /No stage has this ID/)
    await rejects(run, () => engine.jobEvents(nobody, ask), 'JOB_NOT_FOUND', /No job has this ID/)
  }
  const { id } = await taskIn(run, 'queued')
  assert.deepEqual(await engine.taskEvents(id, behind), { items: [], next: null })
})

test("an operator's request that makes no sense is refused", async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await taskIn(run, 'running')
  const letter = await taskIn(run, 'dead_lettered')
  const any = (value: object) => value as never
  const invalid: ProblemCode = 'OPTION_INVALID'
  await rejects(run, () => engine.cancel(id, any({ mode: 'gently' })), invalid, /one of "soft", "hard"/)
  await rejects(run, () => engine.cancel(id, { reason: nul }), invalid, /NUL/)
  await rejects(run, () => engine.cancel(id, { actor: nul }), invalid, /NUL/)
  await rejects(run, () => engine.deadLetter(id, any({ reasonCode: 'bored' })), invalid, /one of "parse_error"/)
  await rejects(run, () => engine.deadLetter(id, any({})), invalid, /reasonCode/)
  await rejects(run, () => engine.deadLetter(id, any({ reasonCode: 'timeout', step: 'sleep' })), invalid, /step/)
  await rejects(run, () => engine.redrive({ ids: [letter.id], ratePerSecond: 0 }), invalid, /ratePerSecond/)
  await rejects(run, () => engine.redrive({ limit: -1 }), invalid, /limit/)
  await rejects(run, () => engine.redrive({ ids: [letter.id], reason: nul }), invalid, /NUL/)
  await rejects(run, () => engine.redrive({ ids: [letter.id], payload: nul }), 'PAYLOAD_INVALID', /NUL/)
  await rejects(run, () => engine.redrive({ ids: [letter.id, 'x'] }), 'TASK_NOT_FOUND', /"x"/)
})
