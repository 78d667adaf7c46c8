import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { needsServer } from '../../test/harness/databases.ts'
import { ended } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import type { EngineTransaction } from '../kernel/transactions.ts'
import type { ClaimedTask, SyncPort } from '../protocol/tasks/sync.ts'
import type { Sql } from '../store/driver/sql.ts'
import { newAttempt } from './attempt.ts'
import { makeAttempts, makeNotifier } from './attempts.ts'
import { defineTask } from './define-task.ts'
import { workerSettings } from './options.ts'
import { startWorker } from './worker.ts'

test('what a handler writes and the end of its task commit together', async t => {
  const { engine, sql } = await fresh(t)
  await sql.script('create table pawl.orders (id integer primary key, attempt integer)')
  const log: string[] = []
  const bill = defineTask({
    type: 'bill',
    retry: { attempts: 3, delaySeconds: 0 },
    async handler(order, ctx) {
      await engine.transaction(async (tx: Sql) => {
        await tx`insert into pawl.orders values (${order as number}, ${ctx.attempt})`
        await ctx.complete(tx, { billed: order })
        if (ctx.attempt === 1) throw new Error('the transaction fails at the last moment')
      })
    },
  })
  const worker = startWorker(engine, [bill], { log: word => log.push(word) })
  t.after(() => worker.stop())
  const { id } = await engine.enqueue(bill, 7)
  const task = await ended(engine, id)
  assert.deepEqual([task.state, task.output, task.failures], ['succeeded', { billed: 7 }, 1])
  assert.deepEqual(await sql`select id, attempt from pawl.orders`, [{ id: 7, attempt: 2 }])
  await worker.stop()
  assert.ok(!log.includes('task.refused'), 'the report that follows is answered as the first was')
})

test('a job goes on as soon as the handler that completed its task returns', needsServer(), async t => {
  const { engine, url } = await fresh(t)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  t.after(() => client.end())
  const one = defineTask({
    type: 'one',
    async handler(_, ctx) {
      await client.query('begin')
      ctx.spawn({ stage: 'two', payload: 'spawned' })
      await ctx.complete(client, 'done')
      await client.query('commit')
    },
  })
  const two = defineTask({ type: 'two', handler: payload => payload })
  const worker = startWorker(engine, [one, two])
  t.after(() => worker.stop())
  const stages = [
    { name: 'one', task: 'one' },
    { name: 'two', task: 'two', open: 'untilDone' },
  ] as const
  const job = await engine.submit({ name: 'j', stages })
  const { items } = await engine.tasks({ jobId: job.id })
  await ended(engine, items[0]!.id)
  const last = await engine.tasks({ stageId: job.stages[1]!.id })
  assert.equal((await ended(engine, last.items[0]!.id)).output, 'spawned')
})

test('a handler whose task was called off meanwhile cannot complete it, and its transaction can tell', async t => {
  const { engine, sql } = await fresh(t)
  await sql.script('create table pawl.orders (id integer primary key)')
  let refused: unknown
  const bill = defineTask({
    type: 'bill',
    async handler(_, ctx) {
      await engine.cancel(ctx.id, { mode: 'hard' })
      await engine
        .transaction(async (tx: Sql) => {
          await tx`insert into pawl.orders values (1)`
          await ctx.complete(tx)
        })
        .catch(error => {
          refused = error
          throw error
        })
    },
  })
  const worker = startWorker(engine, [bill])
  t.after(() => worker.stop())
  const { id } = await engine.enqueue(bill, null)
  assert.equal((await ended(engine, id)).state, 'cancelled')
  await worker.stop()
  assert.equal((refused as { code: string }).code, 'LEASE_LOST')
  assert.deepEqual(await sql`select * from pawl.orders`, [])
})

test('over a wire a transaction cannot be used, and the handler is told so', async t => {
  const { engine } = await fresh(t)
  const remote: SyncPort = { sync: engine.sync, putTaskType: engine.putTaskType }
  const bill = defineTask({
    type: 'bill',
    retry: { attempts: 1 },
    handler: (_, ctx) => ctx.complete({} as EngineTransaction),
  })
  const worker = startWorker(remote, [bill])
  t.after(() => worker.stop())
  const { id } = await engine.enqueue(bill, null)
  const task = await ended(engine, id)
  assert.match(task.error!.message, /cannot be used with an engine in another process/)
})

test('a heartbeat that finds the task ended by its own handler does not tell the handler to stop', () => {
  const attempts = makeAttempts(workerSettings([], {}, 'w'), makeNotifier())
  const held = (id: string) => newAttempt({ id, epoch: 1, leaseSeconds: 60 } as ClaimedTask, 0)
  const [done, lost] = [held('done'), held('lost')]
  done.completed = { output: null }
  const refused = [done, lost].map(one => {
    attempts.add(one)
    return { id: one.task.id, epoch: 1, code: 'LEASE_LOST', message: '' } as const
  })
  attempts.applyAnswer({ waitedMs: 0, claimed: [], cancel: [], refused })
  assert.deepEqual([done.interrupted, lost.interrupted], [undefined, 'lease-lost'])
})
