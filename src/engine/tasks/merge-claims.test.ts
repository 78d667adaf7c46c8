/** Claims that arrive together share a statement, and keep their meaning. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { pawl } from '../engine.ts'

const queueTasks = async ({ engine }: Fresh, count: number) =>
  (await engine.enqueueMany(Array.from({ length: count }, () => ({ type: 'a' })))).map(({ id }) => id)

const idsOf = (tasks: readonly { id: string }[]) => tasks.map(({ id }) => id)

const countClaims = async ({ sql }: Fresh) => (await sql`select 1 from pawl.claim`).length

test('claims that arrive together share a statement, and each task is leased to the worker that asked', async t => {
  const run = await fresh(t)
  const ids = await queueTasks(run, 30)
  const claimed = await Promise.all(
    ids.map((_, n) => run.engine.claims({ worker: `w${n}`, queues: ['a'], start: true })),
  )
  assert.deepEqual(new Set(claimed.flatMap(idsOf)), new Set(ids))
  assert.equal(await countClaims(run), 1)
  for (const [n, [task]] of claimed.entries()) {
    const { owner, state } = await run.engine.task(task!.id)
    assert.deepEqual([owner, state], [`w${n}`, 'running'])
    const { items } = await run.engine.taskEvents(task!.id)
    assert.deepEqual(new Set(items.slice(1).map(({ actor }) => actor)), new Set([`worker:w${n}`]))
  }
})

test('claims that share a statement are served in the order of arrival, each with the number it asked for', async t => {
  const run = await fresh(t)
  const ids = await queueTasks(run, 6)
  const claimed = await Promise.all(
    [2, 1, 2, 3, 1].map((claim, n) => run.engine.claims({ worker: `w${n}`, queues: ['a'], claim })),
  )
  assert.deepEqual(
    claimed.map(tasks => idsOf(tasks).sort()),
    [ids.slice(0, 2), ids.slice(2, 3), ids.slice(3, 5), ids.slice(5), []],
  )
})

test('64 claimers of two servers at once never share a task', { timeout: 600_000, ...needsServer() }, async t => {
  const run = await fresh(t)
  const other = await pawl({ database: run.url!, schema: run.schema })
  t.after(() => other.close())
  const ids = await queueTasks(run, 200)
  const won: string[] = []
  const work = async (n: number) => {
    const engine = n % 2 === 0 ? run.engine : other
    for (;;) {
      const [task] = await engine.claims({ worker: `w${n}`, queues: ['a'], start: true })
      if (task === undefined) return
      won.push(task.id)
      assert.equal(task.epoch, 1)
      await engine.succeed(task.id, task.epoch)
    }
  }
  await Promise.all(Array.from({ length: 64 }, (_, n) => work(n)))
  assert.deepEqual(won.toSorted(), ids.toSorted())
})

test('claims with other queues or lease terms do not share a statement', async t => {
  const run = await fresh(t)
  await queueTasks(run, 2)
  const other = await run.engine.enqueue('b', null)
  const [short, long, b] = await Promise.all([
    run.engine.claims({ worker: 'short', queues: ['a'], leaseSeconds: 30, heartbeatSeconds: null }),
    run.engine.claims({ worker: 'long', queues: ['a'], leaseSeconds: 90, heartbeatSeconds: null }),
    run.engine.claims({ worker: 'b', queues: ['b'] }),
  ])
  assert.deepEqual([short[0]!.leaseSeconds, long[0]!.leaseSeconds, b[0]!.id], [30, 90, other.id])
  assert.equal(await countClaims(run), 3)
})

test('claims with a session or an idempotency key run alone and are remembered', async t => {
  const run = await fresh(t)
  await queueTasks(run, 4)
  const session = randomUUID()
  const asked = [
    () => run.engine.claims({ worker: 'plain', queues: ['a'] }),
    () => run.engine.claims({ worker: 'keyed', queues: ['a'] }, { idempotencyKey: 'k' }),
    () => run.engine.claims({ worker: 'holder', queues: ['a'], session, unlessHolding: true }),
  ]
  const [, keyed, holder] = await Promise.all(asked.map(ask => ask()))
  assert.deepEqual(idsOf(await asked[1]!()), idsOf(keyed!))
  assert.deepEqual(idsOf(await asked[2]!()), idsOf(holder!))
})

test('a claimer that has disconnected before its turn gets no task', async t => {
  const run = await fresh(t)
  const [id] = await queueTasks(run, 1)
  const gone = new AbortController()
  const lost = run.engine.claims({ worker: 'gone', queues: ['a'], waitSeconds: 60 }, {}, gone.signal)
  const next = run.engine.claims({ worker: 'next', queues: ['a'] })
  gone.abort()
  assert.deepEqual(idsOf(await lost), [])
  assert.deepEqual(idsOf(await next), [id])
})

test('merged claims get one careful task each', async t => {
  const run = await fresh(t)
  const ids = await queueTasks(run, 3)
  await run.engine.claims({ worker: 'dies', queues: ['a'], claim: 3 })
  await run.engine.loseWorker('dies')
  await run.sql`update pawl.task set run_at = pawl.clock() where state = 'retrying'`
  await run.sql`update pawl.due set run_at = t.run_at from pawl.task t where t.id = due.id`
  const claimed = await Promise.all(ids.map((_, n) => run.engine.claims({ worker: `w${n}`, queues: ['a'] })))
  assert.deepEqual(claimed.flatMap(idsOf).toSorted(), ids.toSorted())
  assert.deepEqual(
    claimed.map(([task]) => task!.careful),
    [true, true, true],
  )
})
