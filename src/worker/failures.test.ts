/** Failures: how much of them is kept, and how a failing worker reports them to people. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { ended, eventually } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { expireTasks } from '../babysitter/chores.ts'
import type { TaskError } from '../kernel/decide.ts'
import { TaskFailed } from '../protocol/tasks/results.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { RetryIn } from './errors.ts'
import { startWorker } from './worker.ts'

const once = { retry: { attempts: 1 } }

/** A function of a module outside of Pawl, as users have one. It begins in line 1. */
async function usersCode(t: TestContext, code: string): Promise<{ readonly run: () => never; readonly file: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'pawl-failures-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'bank.mjs')
  await writeFile(file, code)
  return { ...(await import(pathToFileURL(file).href)), file }
}

/** Everything that is printed to standard error until the test ends. */
function printed(t: TestContext): string[] {
  const parts: string[] = []
  t.mock.method(process.stderr, 'write', (part: string) => parts.push(String(part)) > 0)
  return parts
}

function logged() {
  const lines: { event: string; facts: Record<string, unknown> }[] = []
  const log = (event: string, facts: Record<string, unknown>) => void lines.push({ event, facts })
  const of = (event: string) => lines.filter(line => line.event === event).map(({ facts }) => facts)
  return { log, of }
}

test('what led to an error is kept with the task, its attempts, its events and its dead letter', async t => {
  const { engine } = await fresh(t)
  const work = defineTask({
    type: 'work',
    ...once,
    handler: () => {
      const refused = new AggregateError([new TypeError('no IPv6'), new Error('no IPv4')], 'refused')
      throw new Error('no rate today', { cause: new Error('fetch failed', { cause: refused }) })
    },
  })
  await using _worker = startWorker(engine, [work], { log: () => {} })
  const { id } = await engine.enqueue(work, null)
  const { error, deadLetter } = await ended(engine, id)
  assert.deepEqual(
    [error?.message, error?.cause?.message, error?.cause?.cause?.message],
    ['no rate today', 'fetch failed', 'refused'],
  )
  const inner = error?.cause?.cause?.errors?.map(({ name, message }) => `${name ?? 'Error'}: ${message}`)
  assert.deepEqual(inner, ['TypeError: no IPv6', 'Error: no IPv4'])
  assert.match(error?.cause?.stack ?? '', /failures\.test/)
  assert.deepEqual(deadLetter?.lastError, error)
  assert.deepEqual((await engine.attempts(id)).at(-1)?.error, error)
  assert.deepEqual((await engine.taskEvents(id)).items.at(-1)?.payload.error, error)
})

test('who awaits a result gets the error of the handler with everything that led to it', async t => {
  const { engine } = await fresh(t)
  const work = defineTask({
    type: 'work',
    ...once,
    handler: () => {
      throw new RangeError('too many', { cause: new AggregateError([new Error('one'), 'two'], 'both') })
    },
  })
  await using _worker = startWorker(engine, [work], { log: () => {} })
  const handle = await engine.enqueue(work, null)
  const failed = await handle.result().catch((error: unknown) => error)
  assert.ok(failed instanceof TaskFailed)
  const thrown = failed.cause as Error
  assert.deepEqual([failed.taskId, thrown.name, thrown.message], [handle.id, 'RangeError', 'too many'])
  const both = thrown.cause as AggregateError
  assert.ok(both instanceof AggregateError)
  assert.deepEqual([both.message, both.errors.map(({ message }) => message)], ['both', ['one', 'two']])
})

test('a worker in another language may report causes of any shape, and the report is accepted', async t => {
  const { engine, sync } = await fresh(t)
  const fail = async (error: object) => {
    const { id } = await engine.enqueue('work', null, { retry: { attempts: 1 } })
    const [held] = (await sync({ queues: ['work'], claim: 1 })).claimed
    const settled = [{ id, epoch: held!.epoch, outcome: 'failed', error: error as TaskError }] as const
    const { refused } = await sync({ settled })
    assert.deepEqual(refused, [])
    return (await engine.task(id)).error
  }
  assert.deepEqual(await fail({ message: 'a', cause: 'b' }), { message: 'a', cause: { message: 'b' } })
  assert.deepEqual(await fail({ message: 'a', cause: { code: 7 }, errors: 'none' }), {
    message: 'a',
    cause: { message: '{"code":7}' },
  })
  assert.deepEqual(await fail({ message: 'a', errors: [{ message: 'b', name: 'B', stack: 5 }, null] }), {
    message: 'a',
    errors: [{ message: 'b', name: 'B' }, { message: 'null' }],
  })
  let deep: object = { message: 'end' }
  for (let n = 0; n < 90; n++) deep = { message: `${n}`, cause: deep }
  assert.ok(JSON.stringify(await fail(deep)).length < 500)
})

test('the causes of a task that failed very often are cut with its errors, so that it can still be stored', async t => {
  const { engine, sync } = await fresh(t)
  // Random, because the limit applies to what is stored after compression.
  const random = (length: number) => randomBytes(length).toString('base64').slice(0, length)
  const { id } = await engine.enqueue('work', null, { retry: { attempts: 10, delaySeconds: 0, jitter: false } })
  const fail = async (output: string) => {
    const [held] = (await sync({ queues: ['work'], claim: 1 })).claimed
    const causes = { cause: { message: random(9000) }, errors: [1, 2, 3].map(() => ({ message: random(9000) })) }
    const error = { message: 'no', output, ...causes }
    const settled = [{ id, epoch: held!.epoch, outcome: 'failed', error }] as const
    assert.deepEqual((await sync({ settled })).refused, [])
    return JSON.stringify((await engine.task(id)).error).length
  }
  const sizes = [await fail(random(700_000)), await fail(random(700_000)), await fail('')]
  assert.ok(sizes[0]! > 736_000 && sizes[1]! > 736_000, `${sizes}`)
  assert.ok(sizes[2]! < 1500, `${sizes}`)
})

test('a failing worker prints one readable line per failed attempt, with the line of the user', async t => {
  const { engine } = await fresh(t)
  const bank = await usersCode(t, "export function run() {\n  throw new Error('no rate \\x1b[2J today')\n}\n")
  const work = defineTask({ type: 'work', retry: { attempts: 2, delaySeconds: 0 }, handler: () => bank.run() })
  const lines = printed(t)
  await using _worker = startWorker(engine, [work])
  const { id } = await engine.enqueue(work, null)
  await ended(engine, id)
  const all = await eventually('both are printed', () => lines.length === 2 && lines.join(''))
  t.mock.restoreAll()
  const place = `${bank.file}:2:9`
  assert.equal(
    all,
    `pawl: work ${id} failed, attempt 1 of 2: no rate \\x1b[2J today (${place}); next attempt at once\n` +
      `pawl: work ${id} failed, attempt 2 of 2: no rate \\x1b[2J today (${place}); now dead lettered\n`,
  )
})

test('the log of a worker is told of each failed attempt, and of its stack at the level debug', async t => {
  const { engine } = await fresh(t)
  const { log, of } = logged()
  const work = defineTask({
    type: 'work',
    retry: { attempts: 3, delaySeconds: 50, jitter: false },
    handler: (_: unknown, ctx: TaskContext) => {
      throw new Error(`attempt ${ctx.attempt}`, { cause: new Error('the disk is full') })
    },
  })
  const lines = printed(t)
  await using _worker = startWorker(engine, [work], { name: 'ada', log })
  const { id } = await engine.enqueue(work, null, { correlationId: 'order-7' })
  const [failed] = await eventually('it is told', () => of('task.failed').length > 0 && of('task.failed'))
  assert.deepEqual([lines, failed!.level, failed!.message], [[], 'warn', 'attempt 1'])
  const { attempt, attempts, next, retryInSeconds, correlationId, worker } = failed!
  assert.deepEqual([attempt, attempts, next, retryInSeconds], [1, 3, 'retrying', 50])
  assert.deepEqual([failed!.id, correlationId, worker], [id, 'order-7', 'ada'])
  const [{ level, stack } = {}] = of('task.stack')
  assert.equal(level, 'debug')
  assert.match(`${stack}`, /^Error: attempt 1\n[\s\S]*\n {2}Caused by: Error: the disk is full\n/)
})

test('a handler that postpones its task uses no attempt, however often it does', async t => {
  const { engine, advance } = await fresh(t)
  const { log, of } = logged()
  const work = defineTask({
    type: 'work',
    retry: { attempts: 2 },
    handler: (_: unknown, ctx: TaskContext) => {
      if (ctx.epoch < 6) throw new RetryIn(60, 'the report is not ready', { usesAttempt: false })
      return ctx.attempt
    },
  })
  await using _worker = startWorker(engine, [work], { log })
  const { id } = await engine.enqueue(work, null)
  for (let epoch = 1; epoch < 6; epoch++) {
    const task = await eventually('it is postponed', async () => {
      const task = await engine.task(id)
      return task.state === 'retrying' && task.epoch === epoch && task
    })
    assert.deepEqual([task.failures, task.losses], [0, 0])
    const waitSeconds = (Date.parse(task.runAt) - Date.parse(task.changedAt)) / 1000
    assert.ok(Math.abs(waitSeconds - 60) < 1, `${waitSeconds} s`)
    await advance(61)
  }
  const { state, output } = await ended(engine, id)
  assert.deepEqual([state, output], ['succeeded', 1])
  assert.equal((await engine.attempts(id))[0]?.reason, 'the report is not ready')
  assert.deepEqual(of('task.failed'), [])
})

test('a task that is postponed without end ends with its time to live', async t => {
  const { engine, advance } = await fresh(t)
  const work = defineTask({
    type: 'work',
    expireInSeconds: 100,
    handler: () => {
      throw new RetryIn(60, { usesAttempt: false })
    },
  })
  await using _worker = startWorker(engine, [work], { log: () => {} })
  const { id } = await engine.enqueue(work, null)
  await eventually('it is postponed', async () => (await engine.task(id)).state === 'retrying')
  await advance(101)
  await expireTasks.run(engine.context)
  assert.equal((await engine.task(id)).state, 'expired')
})
