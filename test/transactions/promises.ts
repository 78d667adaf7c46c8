/** The promises of Pawl for the transactions of every library. Each library has a file that tests all of them. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Order } from '../../examples/transactions/order.ts'
import type { Pawl } from '../../src/engine/engine.ts'
import type { CallerTransaction } from '../../src/kernel/transactions.ts'
import { defineTask } from '../../src/worker/define-task.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { ended } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { lockTask, whileLocked } from '../harness/open-transaction.ts'

/** A library, connected to a database that has a table `orders`. */
export interface Library<Tx extends CallerTransaction> {
  /** Commits when `work` resolves, and rolls back when it rejects. */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  insert(tx: Tx, order: Order): PromiseLike<unknown>
  /** Sends a statement of the caller. */
  run(tx: Tx, statement: string): PromiseLike<unknown>
  /** The example of the docs. */
  placeOrder(engine: Pawl, order: Order): Promise<void>
  /** Objects that users might pass instead of a transaction, and why they are refused. */
  readonly mistakes: readonly { readonly given: unknown; readonly why: RegExp }[]
  close(): Promise<void>
}

/** The table that users of the examples have. */
const table = 'create table pawl.orders (id integer primary key, item text not null)'

const rollbackError = new Error('the caller decides to roll back')

const rollBack = async () => {
  throw rollbackError
}

/** Text that is easily damaged on its way, and the question marks and dollars that some libraries replace. */
const payload = {
  text: `it's "quoted" \\ back\\\\slash, ($1, ?, ??, \\?, :name, @p1, \${x}) grüße 日本 🚀 \n\t`,
  empty: '',
  nothing: null,
  list: [1, 2.5, true, 'a,b', null, {}, []],
  nested: { 'key ?': { at: '2026-02-28T23:59:59.999Z', large: 2 ** 53 - 1 } },
  long: 'x"\\'.repeat(50_000),
}

export function testPromises<Tx extends CallerTransaction>(
  name: string,
  open: (url: string, schema: string) => Library<Tx> | Promise<Library<Tx>>,
): void {
  const opened = async (t: TestContext) => {
    const run = await fresh(t)
    await run.sql.script(table)
    const library = await open(`${run.url}?options=-c%20search_path%3D${run.schema}`, run.schema)
    t.after(() => library.close())
    const items = async () =>
      (await run.sql<{ item: string }>`select item from pawl.orders order by id`).map(r => r.item)
    return { ...run, library, items }
  }
  const promise = (title: string, body: (run: Awaited<ReturnType<typeof opened>>, t: TestContext) => Promise<void>) =>
    test(`${name}: ${title}`, async t => body(await opened(t), t))

  promise('a task and a row appear together when the transaction commits, and not before', async run => {
    const { engine, library, items } = run
    await library.transaction(async tx => {
      await library.insert(tx, { id: 1, item: 'tea' })
      await engine.enqueue('ship', payload, { tx })
      assert.deepEqual((await engine.tasks()).items, [])
      assert.deepEqual(await items(), [])
    })
    const [task] = (await engine.tasks()).items
    assert.deepEqual(task!.payload, payload)
    assert.deepEqual(await items(), ['tea'])
    assert.equal((await run.sync({ queues: ['ship'], claim: 1 })).claimed.length, 1)
  })

  promise('neither the task nor the row remains when the transaction rolls back', async run => {
    const { engine, library, items } = run
    const failed = library.transaction(async tx => {
      await engine.enqueue('ship', 1, { tx })
      await library.insert(tx, { id: 1, item: 'tea' })
      return rollBack()
    })
    await assert.rejects(failed, rollbackError)
    assert.deepEqual([(await engine.tasks()).items, await items()], [[], []])
  })

  promise('a call that is refused changes nothing, and the transaction can continue', async run => {
    const { engine, library, items } = run
    const { id } = await engine.enqueue('taken', null)
    await library.transaction(async tx => {
      await library.insert(tx, { id: 1, item: 'tea' })
      await engine.enqueue('ship', 1, { tx, idempotencyKey: 'k' })
      // Refused by the engine, by a unique index, and before anything is sent.
      await assert.rejects(engine.enqueue('ship', 2, { tx, idempotencyKey: 'k' }), { code: 'IDEMPOTENCY_MISMATCH' })
      await assert.rejects(engine.enqueue('ship', 3, { tx, id }), { code: 'ID_TAKEN', status: 409 })
      await assert.rejects(engine.enqueue('ship', 4, { tx, priority: 'high' as never }), { code: 'OPTION_INVALID' })
      await engine.enqueue('ship', 5, { tx })
      await library.insert(tx, { id: 2, item: 'milk' })
    })
    const { items: tasks } = await engine.tasks({ queue: 'ship' })
    assert.deepEqual(tasks.map(task => task.payload).sort(), [1, 5])
    assert.deepEqual(await items(), ['tea', 'milk'])
  })

  promise('several tasks, a job and requests of operators take part in the transaction', async run => {
    const { engine, library } = run
    const { id } = await engine.enqueue('ship', 0)
    const work = (andThen: () => Promise<void>) =>
      library.transaction(async tx => {
        await engine.enqueueMany(
          [
            { type: 'ship', payload: 1, dedupeKey: 'k' },
            { type: 'bill', payload: 2 },
          ],
          { tx },
        )
        const job = await engine.submit({ name: 'j', stages: [{ name: 's', task: 'pack', payloads: [3] }] }, { tx })
        await engine.cancel(id, { tx, reason: 'too late' })
        await engine.pauseJob(job.id, { tx })
        await andThen()
        return job
      })
    const state = async () => [(await engine.tasks()).items.length, (await engine.jobs()).items.length]
    await assert.rejects(work(rollBack), rollbackError)
    assert.deepEqual(await state(), [1, 0])
    const job = await work(async () => {})
    assert.deepEqual(await state(), [4, 1])
    assert.equal((await engine.task(id)).state, 'cancelled')
    assert.equal((await engine.job(job.id)).state, 'paused')
  })

  promise('a handler ends its task together with its own row, or with neither', async (run, t) => {
    const { engine, library, items } = run
    const ship = defineTask({
      type: 'ship',
      retry: { attempts: 2, delaySeconds: 0 },
      handler: (_, ctx) =>
        library.transaction(async tx => {
          await library.insert(tx, { id: ctx.attempt, item: `attempt ${ctx.attempt}` })
          await ctx.complete(tx, { shipped: true })
          if (ctx.attempt === 1) throw rollbackError
        }),
    })
    const worker = startWorker(engine, [ship])
    t.after(() => worker.stop())
    const { id } = await engine.enqueue(ship, null)
    const task = await ended(engine, id)
    assert.deepEqual([task.state, task.output, task.failures], ['succeeded', { shipped: true }, 1])
    assert.deepEqual(await items(), ['attempt 2'])
  })

  promise('answers have the same values as outside of a transaction', async run => {
    const { engine, library } = run
    const answers = async (options: { tx?: Tx }) => {
      const options1 = { ...options, actor: 'ada' }
      const runAt = new Date('2030-01-02T03:04:05.678Z')
      const metadata = { owner: 'ada' }
      const tasks = await engine.enqueueMany([{ type: 'ship', payload, priority: 7, runAt, metadata }], options1)
      const stages = [{ name: 's', task: 'pack', payloads: [payload], gate: {} }] as const
      const job = await engine.submit({ name: 'j', stages, metadata }, options1)
      return [tasks, job, await engine.cancel(tasks[0]!.id, options1), await engine.cancelJob(job.id, options1)]
    }
    const without = await answers({})
    assert.deepEqual(comparable(await library.transaction(tx => answers({ tx }))), comparable(without))
  })

  promise('calls that begin at the same time do not disturb each other', async run => {
    const { engine, library } = run
    const { id } = await engine.enqueue('taken', null)
    await library.transaction(async tx => {
      const calls = [1, 2, 3].map(one => engine.enqueue('ship', one, { tx }))
      const refused = engine.enqueue('ship', 4, { tx, id })
      await assert.rejects(refused, { code: 'ID_TAKEN' })
      await Promise.all([...calls, engine.enqueue('ship', 5, { tx })])
    })
    assert.equal((await engine.tasks({ queue: 'ship' })).items.length, 4)
  })

  promise('errors of the server are told apart as they are outside of a transaction', async run => {
    const { engine, library } = run
    const { id } = await engine.enqueue('ship', null)
    await whileLocked(run.sql, lockTask(id), () =>
      library.transaction(async tx => {
        await library.run(tx, "set local lock_timeout = '20ms'")
        await assert.rejects(engine.cancel(id, { tx }), { code: 'STORE_BUSY' })
        await engine.enqueue('ship', null, { tx })
      }),
    )
    assert.equal((await engine.tasks()).items.length, 2)
  })

  promise('an object that is not an open transaction is refused, and nothing is queued', async run => {
    const { engine, library } = run
    for (const { given, why } of library.mistakes) {
      const refused = engine.enqueue('ship', null, { tx: given as Tx })
      await assert.rejects(refused, { code: 'TRANSACTION_NOT_OPEN', status: 409, message: why })
    }
    const ended = await library.transaction(async tx => tx)
    await assert.rejects(engine.enqueue('ship', null, { tx: ended }), { code: 'TRANSACTION_NOT_OPEN' })
    assert.deepEqual((await engine.tasks()).items, [])
  })

  promise(
    'a handler that completes its task in anything else is told what to pass, and its task goes on',
    async (run, t) => {
      const { engine, library } = run
      const ship = defineTask({
        type: 'ship',
        retry: { attempts: 1 },
        async handler(_, ctx) {
          const wrong = library.mistakes.map(({ given, why }) => [given, 'TRANSACTION_NOT_OPEN', why] as const)
          for (const [given, code, message] of [...wrong, [{}, 'TRANSACTION_UNKNOWN', /accepted/] as const]) {
            await assert.rejects(ctx.complete(given as Tx, 'too early'), { code, message })
          }
          return 'in the end'
        },
      })
      const worker = startWorker(engine, [ship], { log: () => {} })
      t.after(() => worker.stop())
      const { state, output, error } = await ended(engine, (await engine.enqueue(ship, null)).id)
      assert.deepEqual([state, output, error], ['succeeded', 'in the end', null])
    },
  )

  promise('a transaction that has failed is refused with the reason', async run => {
    const { engine, library } = run
    const failed = library.transaction(async tx => {
      await assert.rejects(async () => library.run(tx, 'select no_such_column'))
      await assert.rejects(engine.enqueue('ship', null, { tx }), { code: 'TRANSACTION_FAILED' })
      return rollBack()
    })
    await assert.rejects(failed)
    assert.deepEqual((await engine.tasks()).items, [])
  })

  promise('the example of the docs stores an order and its task, or neither', async run => {
    const { engine, library, items } = run
    const order = { id: 1, item: 'tea' }
    await library.placeOrder(engine, order)
    await assert.rejects(library.placeOrder(engine, order))
    const { items: tasks } = await engine.tasks({ queue: 'ship' })
    assert.deepEqual([tasks.map(task => task.payload), await items()], [[order], ['tea']])
  })
}

const idText = /^[0-9a-f]{8}-[0-9a-f-]{27}$/
const timeText = /^202\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

/** The answer with the ids and times replaced that differ between two runs. The given times stay. */
function comparable(answer: unknown): unknown {
  if (typeof answer === 'string') return answer.replace(idText, 'id').replace(timeText, 'time')
  if (answer instanceof Date) return 'Date'
  if (Array.isArray(answer)) return answer.map(comparable)
  if (typeof answer !== 'object' || answer === null) return answer
  return Object.fromEntries(Object.entries(answer).map(([key, value]) => [key, comparable(value)]))
}
