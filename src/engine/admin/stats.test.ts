import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { countEvents, retention, watchQueues } from '../../babysitter/chores.ts'
import { rescue } from '../../babysitter/rescue.ts'
import { bucketOf } from '../../kernel/metrics.ts'
import type { SettledTask } from '../../protocol/tasks/sync.ts'
import { bucketSql, countMoves } from '../../store/admin/stats.ts'

const countOnce = ({ engine }: Fresh) => countEvents.run(engine.context)

/** Transactions of other tests on the same server may briefly delay the counting. */
const count = (run: Fresh) =>
  eventually('all is counted', async () => {
    await countOnce(run)
    const [row] = await run.sql<{ left: number }>`
      select count(*) as left from pawl.change c join pawl.counted d on (c.tx, c.n) > (d.tx, d.n)`
    return row!.left === 0
  })
const near = (seconds: number | null, wanted: number) =>
  assert.ok(seconds !== null && seconds > wanted / 1.2 && seconds < wanted * 1.2, `${seconds} is not about ${wanted}`)
const settle = ({ sync }: Fresh, held: { id: string; epoch: number }, report: Omit<SettledTask, 'id' | 'epoch'>) =>
  sync({ settled: [{ id: held.id, epoch: held.epoch, ...report }] })

test('statistics say how long tasks waited and ran, by type', async t => {
  const run = await fresh(t)
  const { engine, sync } = run
  for (const type of ['slow', 'slow', 'quick']) await engine.enqueue(type, null)
  await engine.enqueue('slow', null, { runInSeconds: 400 })
  await run.advance(100)
  const { claimed } = await sync({ queues: ['slow', 'quick'], claim: 3 })
  await sync({ started: claimed.map(({ id, epoch }) => ({ id, epoch })) })
  await run.advance(300)
  for (const held of claimed) await settle(run, held, { outcome: 'succeeded' })
  // The task became due long after it was enqueued, so it waited only for a moment.
  await run.advance(10)
  const [late] = (await sync({ queues: ['slow'], claim: 1 })).claimed
  await settle(run, late!, { outcome: 'succeeded', ranMs: 2000 })
  await count(run)
  const { types, queues, lastCountedAt } = await engine.stats()
  assert.deepEqual(
    types.map(({ type, queued, claimed, started, succeeded }) => [type, queued, claimed, started, succeeded]),
    [
      ['quick', 1, 1, 1, 1],
      ['slow', 3, 3, 3, 3],
    ],
  )
  const [quick, slow] = types as [(typeof types)[0], (typeof types)[0]]
  near(quick.queue.p50Seconds, 100)
  near(quick.run.p95Seconds, 300)
  near(slow.queue.p50Seconds, 100)
  near(slow.queue.meanSeconds, 70)
  near(slow.run.p95Seconds, 300)
  assert.equal(slow.run.count, 3)
  assert.ok(slow.endedPerSecond > 0)
  assert.ok(lastCountedAt !== null)
  assert.deepEqual(
    queues.map(({ queue, due }) => [queue, due]),
    [
      ['quick', 0],
      ['slow', 0],
    ],
  )
})

test('statistics tell failures, retries, losses and every kind of end apart', async t => {
  const run = await fresh(t)
  const no = { message: 'no' }
  const again = await taskIn(run, 'running', { retry: { delaySeconds: 0 } })
  await settle(run, again, { outcome: 'failed', error: no })
  for (const state of ['failed', 'skipped', 'cancelled', 'expired', 'dead_lettered'] as const) await taskIn(run, state)
  await taskIn(run, 'running')
  await run.advance(1000)
  await rescue({ beginsBlind: false }).run(run.engine.context)
  await count(run)
  const [only] = (await run.engine.stats()).types
  const { type: _, queue: _queue, run: _run, queuedPerSecond: _q, endedPerSecond: _e, ...counts } = only!
  assert.deepEqual(counts, {
    queued: 7,
    claimed: 6,
    started: 6,
    succeeded: 0,
    skipped: 1,
    failed: 1,
    cancelled: 1,
    expired: 1,
    deadLettered: 1,
    failures: 3,
    retried: 2,
    lost: 1,
  })
})

test('however many count at once, every event is counted once', async t => {
  const run = await fresh(t)
  const items = Array.from({ length: 60 }, () => ({ type: 'work' }))
  for (let batch = 0; batch < 10; batch++) {
    await run.engine.enqueueMany(items)
    const { claimed } = await run.sync({ queues: ['work'], claim: 60 })
    await run.sync({ settled: claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' })) })
    await Promise.all([1, 2, 3, 4].map(() => countMoves(run.sql, 50)))
  }
  for (const _ of [1, 2]) await count(run)
  const [{ queued, claimed, started, succeeded }] = (await run.engine.stats()).types as [never]
  assert.deepEqual([queued, claimed, started, succeeded], [600, 600, 600, 600])
})

test('a series shows when it happened, and outlives the tasks', async t => {
  const run = await fresh(t)
  const settings = { keepSeconds: 1 }
  await taskIn(run, 'succeeded', settings)
  await count(run)
  await run.advance(1200)
  await taskIn(run, 'succeeded', settings)
  await taskIn(run, 'succeeded', settings)
  await count(run)
  await run.advance(600)
  await retention().run(run.engine.context)
  assert.deepEqual((await run.engine.tasks()).items, [])
  const { series, types } = await run.engine.stats({ sinceSeconds: 3600, bucketSeconds: 300 })
  assert.deepEqual(
    series.map(({ succeeded }) => succeeded),
    [1, 2],
  )
  assert.equal((Date.parse(series[1]!.at) - Date.parse(series[0]!.at)) / 1000, 1200)
  assert.equal(types[0]!.succeeded, 3)
  const recent = await run.engine.stats({ sinceSeconds: 900 })
  assert.deepEqual([recent.types[0]!.succeeded, recent.bucketSeconds], [2, 60])
  await run.advance(4 * 86_400)
  await retention().run(run.engine.context)
  assert.deepEqual((await run.engine.stats({ sinceSeconds: 3 * 86_400 })).types, [])
  const total = (await run.engine.internals.totals()).moves.find(({ what }) => what === 'succeeded')
  assert.equal(total?.n, 3)
})

test('the database and this process put a duration into the same bucket', async t => {
  const { sql } = await fresh(t)
  const durations = [-1, 0, 0.0005, 0.0009, 0.0015, 0.0021, 0.0057, 0.037, 1.001, 60.5, 7200, 86_400, 400_000]
  const [row] = await sql<{ buckets: number[] }>`
    select array_agg(${bucketSql('seconds')} order by n) as buckets
      from unnest(${durations}::float8[]) with ordinality as d (seconds, n)`
  assert.deepEqual(row!.buckets.map(Number), durations.map(bucketOf))
})

test('one who has not finished holds up what is counted, and none of it is missed', needsServer(), async t => {
  const run = await fresh(t)
  await run.engine.transaction(async tx => {
    await run.engine.enqueue('early', null, { tx })
    await run.engine.enqueue('late', null)
    await countOnce(run)
    assert.deepEqual((await run.engine.stats()).types, [])
  })
  await count(run)
  assert.deepEqual(
    (await run.engine.stats()).types.map(({ type, queued }) => [type, queued]),
    [
      ['early', 1],
      ['late', 1],
    ],
  )
})

test('after a move to another server, counting goes on with what happens there', async t => {
  const run = await fresh(t)
  await run.engine.enqueue('before', null)
  await run.sql`update pawl.counted set generation = gen_random_uuid(), tx = 1e15`
  await countOnce(run)
  await run.engine.enqueue('after', null)
  await count(run)
  assert.ok((await run.engine.stats()).types.some(({ type }) => type === 'after'))
})

test('a question that would make too many points is refused and says why', async t => {
  const { engine } = await fresh(t)
  const must = { code: 'OPTION_INVALID' }
  await assert.rejects(engine.stats({ sinceSeconds: 86_400, bucketSeconds: 60 }), must)
  await assert.rejects(engine.stats({ bucketSeconds: 90 }), must)
  await assert.rejects(engine.stats({ sinceSeconds: 5 * 86_400 }), must)
  await assert.rejects(engine.stats({ since: 5 } as never), { code: 'OPTION_UNKNOWN' })
})

test('how deep the queues were is kept by the minute, whoever looks and however often', async t => {
  const run = await fresh(t)
  const runChore = () => watchQueues.run(run.engine.context)
  await runChore()
  for (const type of ['slow', 'slow', 'quick']) await run.engine.enqueue(type, null)
  await run.engine.claims({ worker: 'w', queues: ['quick'] })
  await run.advance(60)
  await Promise.all([runChore(), runChore()])
  await run.advance(120)
  await run.engine.enqueue('slow', null)
  await runChore()
  const { depths } = await run.engine.stats()
  assert.deepEqual(
    depths.map(({ queue, due, held }) => [queue, due, held]),
    [
      ['quick', 0, 1],
      ['slow', 2, 0],
      ['quick', 0, 1],
      ['slow', 3, 0],
    ],
  )
  const [together] = (await run.engine.stats({ sinceSeconds: 7200, bucketSeconds: 3600 })).depths.slice(-1)
  assert.deepEqual([together!.queue, together!.due], ['slow', 3])
  await run.advance(4 * 86_400)
  await retention().run(run.engine.context)
  const [left] = await run.sql<{ n: number }>`select count(*)::int as n from pawl.depth`
  assert.equal(left!.n, 0)
})
