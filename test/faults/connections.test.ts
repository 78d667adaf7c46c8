/** Connections that hang, break or stall: work continues without help, and nothing acknowledged is lost. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import { startBabysitter } from '../../src/babysitter/babysitter.ts'
import { continueJobs } from '../../src/babysitter/job-chores.ts'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { startServer } from '../../src/server/server.ts'
import { defineTask, startWorker } from '../../src/worker/index.ts'
import { needsServer } from '../harness/databases.ts'
import { dice, seed } from '../harness/dice.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { openTransaction } from '../harness/open-transaction.ts'
import { type TcpProxy, tcpProxy } from '../harness/tcp-proxy.ts'

const bounded = { timeout: 600_000, ...needsServer() }

/** An engine whose connections go through a proxy. */
async function behindProxy(t: TestContext, run: Fresh): Promise<{ engine: Engine; proxy: TcpProxy }> {
  const proxy = await tcpProxy(t, Number(new URL(run.url!).port))
  const engine = await openEngine({ database: proxy.through(run.url!), schema: run.schema, migrate: false })
  t.after(() => engine.close())
  return { engine, proxy }
}

test('connections that hang are given up, and work goes on', bounded, async t => {
  const run = await fresh(t)
  const { engine, proxy } = await behindProxy(t, run)
  const work = defineTask({ type: 'work', handler: n => n })
  const worker = startWorker(engine, [work], { waitSeconds: 1, drainSeconds: 1 })
  t.after(() => worker.stop(0))
  const before = await engine.enqueue(work, 1)
  await ended(run.engine, before.id)
  proxy.freeze()
  const frozenAt = performance.now()
  const { id } = await eventually(
    'a task is acknowledged again',
    () => engine.enqueue(work, 2).catch(() => undefined),
    60,
  )
  await ended(run.engine, id)
  t.diagnostic(`work went on ${((performance.now() - frozenAt) / 1000).toFixed(1)} s after the connections hung`)
})

test(
  'connections that break at any moment end no process, and lose nothing that was acknowledged',
  bounded,
  async t => {
    const run = await fresh(t)
    const { engine, proxy } = await behindProxy(t, run)
    proxy.coalesceMs = 3
    const killer = new pg.Client(run.url!)
    await killer.connect()
    t.after(() => killer.end())
    const chance = dice(seed)
    const acknowledged: string[] = []
    let lost = 0
    let isOver = false
    const killing = (async () => {
      while (!isOver) {
        await killer.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'pawl' and pid <> pg_backend_pid()
            and query like '%${run.schema}%'`,
        )
        // Some pauses are long enough for a connection to open and do its work, however busy the machine is.
        await setTimeout(chance.below(2) * chance.below(200))
      }
    })()
    const isEnough = () => acknowledged.length >= 40 && lost >= 40
    for (let call = 0; call < 20_000 && !isEnough(); call++) {
      await engine.enqueueMany([{ type: 'a' }, { type: 'a' }]).then(
        queued => acknowledged.push(...queued.map(({ id }) => id)),
        error => {
          assert.equal(error.code, 'STORE_UNAVAILABLE', String(error))
          lost += 1
        },
      )
    }
    isOver = true
    await killing
    assert.ok(isEnough(), `${acknowledged.length} tasks were acknowledged, and ${lost} calls were lost`)
    for (const id of acknowledged) assert.equal((await run.engine.task(id)).state, 'queued')
  },
)

test(
  'a job that somebody holds in a transaction stops nothing else, and goes on when it is let go',
  bounded,
  async t => {
    const run = await fresh(t)
    const engine = await openEngine({ database: run.url!, schema: run.schema, migrate: false })
    const server = await startServer(engine, { port: 0, blockedSeconds: 0 })
    t.after(async () => {
      await server.close()
      await engine.close()
    })
    const babysitter = startBabysitter(engine, [continueJobs()])
    t.after(() => babysitter.stop())
    const { id } = await engine.submit({
      name: 'held',
      stages: [
        { name: 'a', task: 'a', payloads: Array.from({ length: 12 }, (_, n) => n), tolerate: { percent: 50 } },
        { name: 'b', task: 'b' },
      ],
    })
    const tasks = await engine.claims({ worker: 'w', queues: ['a'], claim: 12, start: true })
    const other = await openTransaction(run.sql)
    await run.engine.pauseJob(id, { tx: other.tx })
    // More concurrent reports than connections: each is written, although the job cannot continue.
    const settling = tasks.map(task => engine.succeed(task.id, task.epoch))
    const began = performance.now()
    for (let n = 0; n < 20; n++) await engine.enqueue('unrelated', n)
    const ready = await fetch(`${server.url}/readyz`)
    assert.equal(ready.status, 200)
    t.diagnostic(`20 unrelated tasks and /readyz took ${Math.round(performance.now() - began)} ms`)
    await assert.rejects(engine.pauseJob(id), { code: 'STORE_BUSY', status: 503 })
    await Promise.all(settling)
    await other.commit()
    await eventually('the stage has ended', async () => (await engine.job(id)).stages[0]!.state === 'succeeded')
    assert.equal((await engine.job(id)).state, 'paused')
  },
)

test('a task that somebody holds is refused as busy, and its neighbours in the batch are settled', bounded, async t => {
  const run = await fresh(t)
  const { engine, sync, sql } = run
  await engine.enqueueMany(Array.from({ length: 20 }, (_, n) => ({ type: 'work', payload: n })))
  const { claimed } = await sync({ queues: ['work'], claim: 20 })
  const held = claimed[7]!
  const other = await openTransaction(sql)
  await other.tx`select from pawl.task where id = ${held.id}::uuid for update`
  const settled = claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const }))
  const { refused } = await sync({ settled })
  await other.commit()
  assert.deepEqual(
    refused.map(({ id, code }) => [id, code]),
    [[held.id, 'TASK_BUSY']],
  )
  assert.equal((await engine.tasks({ state: 'succeeded' })).items.length, 19)
  assert.deepEqual((await sync({ settled })).refused, [], 'sent again, it is settled')
})

test('a transaction whose process is frozen is ended by the server, and others go on', bounded, async t => {
  const run = await fresh(t)
  const bounds = { idleSeconds: 1 }
  const frozen = await openEngine({ database: run.url!, schema: run.schema, migrate: false, bounds })
  t.after(() => frozen.close())
  const { id } = await run.engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const stuck = frozen.context.sql.begin(async tx => {
    await tx`select from pawl.job where id = ${id}::uuid for update`
    await eventually('another has paused the job meanwhile', async () => {
      const isDone = await run.engine.pauseJob(id).then(
        () => true,
        error => error.code !== 'STORE_BUSY' && Promise.reject(error),
      )
      return isDone
    })
    await tx`select 1`
  })
  await assert.rejects(stuck, { code: 'STORE_UNAVAILABLE' })
  assert.equal((await run.engine.job(id)).state, 'paused')
})

test('whoever waits for a held job under an idempotency key keeps no connection from others', bounded, async t => {
  const run = await fresh(t)
  const engine = await openEngine({ database: run.url!, schema: run.schema, migrate: false, connections: 1 })
  t.after(() => engine.close())
  const { id } = await engine.submit({ name: 'held', stages: [{ name: 'a', task: 'a' }] })
  const other = await openTransaction(run.sql)
  await run.engine.pauseJob(id, { tx: other.tx })
  const ended: string[] = []
  const pausing = assert.rejects(engine.pauseJob(id, { idempotencyKey: 'k' }), { code: 'STORE_BUSY' })
  const pause = pausing.then(() => ended.push('pause'))
  await engine.enqueue('unrelated', 1).then(() => ended.push('enqueue'))
  await pause
  await other.commit()
  assert.deepEqual(ended, ['enqueue', 'pause'])
})
