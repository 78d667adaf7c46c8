import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { retention } from '../../babysitter/chores.ts'
import type { SyncRequest } from '../../protocol/tasks/sync.ts'
import { type Pawl, pawl } from '../engine.ts'
import { sync } from './sync.ts'

const leasesOf = ({ claimed }: { claimed: readonly { id: string; epoch: number }[] }) =>
  claimed.map(({ id, epoch }) => [id, epoch])

/** Another engine on the same tables, like another process. */
async function otherEngine({ url, schema, sql }: Fresh): Promise<Pawl> {
  if (url === undefined) return pawl({ schema, store: { sql, close: async () => {} } })
  return pawl({ database: url, schema })
}

function claimRequests(session = randomUUID()): (syncId: string, more?: Partial<SyncRequest>) => SyncRequest {
  return (syncId, more = {}) => ({ worker: 'w', session, syncId, queues: ['a'], claim: 2, ...more })
}

test('a sync that is sent again with its syncId has the same claims again, on any server', async t => {
  const run = await fresh(t)
  const other = await otherEngine(run)
  t.after(() => other.close())
  await run.engine.enqueueMany(Array.from({ length: 5 }, (_, payload) => ({ type: 'a', payload })))
  const ask = claimRequests()
  const first = await run.engine.sync(ask('1'))
  assert.equal(first.claimed.length, 2)
  for (const engine of [run.engine, other, other, run.engine]) {
    const again = await engine.sync(ask('1'))
    assert.deepEqual(leasesOf(again), leasesOf(first))
    for (const [index, { leaseSeconds, leaseUntil: _, ...task }] of again.claimed.entries()) {
      const { leaseSeconds: atFirst, leaseUntil: _until, ...same } = first.claimed[index]!
      assert.deepEqual(task, same)
      assert.ok(leaseSeconds <= atFirst)
    }
  }
  assert.deepEqual((await run.engine.queues()).items[0]!.due, 3)
  const next = await other.sync(ask('2'))
  assert.equal(next.claimed.length, 2)
  assert.notDeepEqual(leasesOf(next), leasesOf(first))
})

test('a lost answer costs nothing: what was settled or taken back since is left out', async t => {
  const run = await fresh(t)
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
  const ask = claimRequests()
  const { claimed } = await run.engine.sync(ask('1'))
  const [done, open] = claimed
  await run.sync({ settled: [{ id: done!.id, epoch: 1, outcome: 'released' }] })
  const again = await run.engine.sync(ask('1'))
  assert.deepEqual(leasesOf(again), [[open!.id, 1]])
  const next = await run.engine.sync(ask('2'))
  assert.deepEqual(leasesOf(next), [[done!.id, 2]])
})

test('a syncId that won nothing wins later', async t => {
  const run = await fresh(t)
  const ask = claimRequests()
  assert.deepEqual((await run.engine.sync(ask('1'))).claimed, [])
  const { id } = await run.engine.enqueue('a', null)
  assert.deepEqual(leasesOf(await run.engine.sync(ask('1'))), [[id, 1]])
  await run.engine.enqueue('a', null)
  assert.deepEqual(leasesOf(await run.engine.sync(ask('1'))), [[id, 1]])
})

test('a sync whose winnings are all gone has nothing at once when it is sent again, and claims no more', async t => {
  const run = await fresh(t)
  const { id } = await run.engine.enqueue('a', null)
  const ask = claimRequests()
  await run.engine.sync(ask('1'))
  await run.engine.cancel(id, { mode: 'hard' })
  await run.engine.enqueue('a', null)
  const { wake } = run.engine.context
  const wait = () => assert.fail('it waits beside what is queued')
  const again = sync({ ...run.engine.context, wake: { ...wake, wait } }, ask('1', { waitSeconds: 60 }))
  assert.deepEqual((await again).claimed, [])
  const keyed = { worker: 'w', session: ask('1').session!, syncId: '1', queues: ['a'], claim: 2 }
  assert.deepEqual(await run.engine.claims(keyed, { idempotencyKey: 'k' }), [])
  assert.equal((await run.engine.sync(ask('2'))).claimed.length, 1)
})

test('a settle goes with a repeated claim, and counts once', async t => {
  const run = await fresh(t)
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'a' }])
  const ask = claimRequests()
  const [one] = (await run.engine.sync(ask('1', { claim: 1 }))).claimed
  const settled = [{ id: one!.id, epoch: one!.epoch, outcome: 'succeeded' as const }]
  const first = await run.engine.sync(ask('2', { settled }))
  const again = await run.engine.sync(ask('2', { settled }))
  assert.deepEqual(leasesOf(again), leasesOf(first))
  assert.deepEqual([first.refused, again.refused], [[], []])
})

test('sessions do not share their syncIds, and without one there is nothing to give again', async t => {
  const run = await fresh(t)
  const ids = (await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'a' }])).map(({ id }) => id)
  const claim = { claim: 1 }
  const [one, two] = [claimRequests(), claimRequests()]
  assert.deepEqual(leasesOf(await run.engine.sync(one('1', claim))), [[ids[0], 1]])
  assert.deepEqual(leasesOf(await run.engine.sync(two('1', claim))), [[ids[1], 1]])
  assert.deepEqual(leasesOf(await run.sync({ queues: ['a'], claim: 1 })), [[ids[2], 1]])
  assert.deepEqual(leasesOf(await run.sync({ queues: ['a'], claim: 1 })), [])
})

test('the same sync sent twice at once, to two servers, claims once', needsServer(), async t => {
  const run = await fresh(t)
  const other = await otherEngine(run)
  t.after(() => other.close())
  for (let n = 0; n < 5; n++) await run.engine.enqueue('a', n)
  const ask = claimRequests()
  for (const engine of [run.engine, other]) await engine.sync(ask('0', { queues: ['none'] }))
  // Claims stop halfway until the lock is released, so that the two claims are sure to meet.
  await run.sql.script(`
    create function pawl.hold() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(hashtext(tg_table_schema)); return new; end';
    create trigger hold before insert on pawl.claim for each row execute function pawl.hold()`)
  const syncs = await run.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(hashtext(${run.schema}))`
    const both = [run.engine, other].map(engine => engine.sync(ask('1')))
    let answered = false
    for (const one of both) void one.then(() => (answered = true))
    for (let waiting = 0; waiting < 2 && !answered; ) {
      const [row] = await run.sql<{ n: number }>`
        select count(*) as n from pg_stat_activity
         where wait_event_type = 'Lock' and query like ${`%"${run.schema}".session%`}`
      waiting = row!.n
    }
    return both
  })
  const [one, two] = await Promise.all(syncs)
  assert.equal(one!.claimed.length, 2)
  assert.deepEqual(leasesOf(one!), leasesOf(two!))
  assert.equal((await run.engine.queues()).items[0]!.due, 3)
})

test('a session that was removed after a day unseen is opened again, and its claims remembered', async t => {
  const run = await fresh(t)
  const ask = claimRequests()
  await run.engine.sync(ask('1'))
  await run.advance(86_400 + 60)
  await retention().run(run.engine.context)
  assert.deepEqual(await run.sql`select 1 from pawl.session`, [])
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'a' }])
  const first = await run.engine.sync(ask('2'))
  assert.equal(first.claimed.length, 2)
  assert.deepEqual(leasesOf(await run.engine.sync(ask('2'))), leasesOf(first))
  assert.equal((await run.engine.workers()).items.length, 1)
})
