/** Clients that know neither leases nor keys repeat a claim when its answer was lost, and get the same tasks. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { retention } from '../../babysitter/chores.ts'
import { rescue } from '../../babysitter/rescue.ts'
import { type Pawl, pawl } from '../engine.ts'

/** A client that may talk to any engine. */
function client(queues = ['a']) {
  const session = randomUUID()
  return async (engine: Pawl) => {
    const [task, ...more] = await engine.claims({ worker: 'pod', session, queues, start: true, unlessHolding: true })
    assert.deepEqual(more, [])
    return task
  }
}

async function otherEngine(t: { after(end: () => Promise<void>): void }, { url, schema }: Fresh): Promise<Pawl> {
  const engine = await pawl({ database: url!, schema })
  t.after(() => engine.close())
  return engine
}

test('who asks again while it holds a task gets that one, and a next one only when it has ended', async t => {
  const { engine } = await fresh(t)
  await engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
  const [ask, other] = [client(), client()]
  const first = (await ask(engine))!
  for (const _ of [1, 2]) {
    const again = (await ask(engine))!
    assert.deepEqual([again.id, again.epoch], [first.id, first.epoch])
    assert.ok(again.leaseSeconds <= first.leaseSeconds)
  }
  assert.equal((await engine.task(first.id)).state, 'running')
  await engine.succeed(first.id, first.epoch)
  const second = (await ask(engine))!
  assert.notEqual(second.id, first.id)
  assert.equal(await other(engine), undefined)
})

test('who lost its task gets the next, not the one that another holds by now', async t => {
  const { engine, advance } = await fresh(t)
  await engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
  const [slow, quick] = [client(), client()]
  const lost = (await slow(engine))!
  const taken = (await quick(engine))!
  await engine.succeed(taken.id, taken.epoch)
  await advance(600)
  await rescue({ beginsBlind: false }).run(engine.context)
  const won = (await quick(engine))!
  assert.deepEqual([won.id, won.epoch], [lost.id, lost.epoch + 1])
  assert.equal(await slow(engine), undefined)
})

test('who is busy with a task for days still gets it when it asks again', async t => {
  const { engine, advance } = await fresh(t)
  const settings = { leaseSeconds: 7 * 86_400, heartbeatSeconds: null }
  await engine.enqueueMany([
    { type: 'a', ...settings },
    { type: 'a', ...settings },
  ])
  const ask = client()
  const first = (await ask(engine))!
  await advance(3 * 86_400)
  await retention().run(engine.context)
  assert.equal((await ask(engine))!.id, first.id)
})

test('a claim for those who hold nothing wants a session to know them by', async t => {
  const { engine } = await fresh(t)
  const asked = engine.claims({ worker: 'pod', queues: ['a'], unlessHolding: true })
  await assert.rejects(asked, { code: 'OPTION_INVALID', message: /session/ })
})

test('the same client asking twice at once, of two servers, gets one task', needsServer(), async t => {
  const run = await fresh(t)
  const other = await otherEngine(t, run)
  for (let n = 0; n < 5; n++) await run.engine.enqueue('a', n)
  // Claims stop halfway until the lock is released, so that the two claims are sure to meet.
  await run.sql.script(`
    create function pawl.hold() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(hashtext(tg_table_schema)); return new; end';
    create trigger hold before insert on pawl.claim for each row execute function pawl.hold()`)
  const ask = client()
  const asked = await run.sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(hashtext(${run.schema}))`
    const both = [run.engine, other].map(engine => ask(engine))
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
  const [one, two] = await Promise.all(asked)
  assert.deepEqual([one!.id, one!.epoch], [two!.id, two!.epoch])
  assert.equal((await run.engine.queues()).items[0]!.due, 4)
})

test(
  'any number of the same client at once, on two servers, get one task until it has ended',
  needsServer(),
  async t => {
    const run = await fresh(t)
    const other = await otherEngine(t, run)
    await run.engine.enqueueMany(Array.from({ length: 20 }, () => ({ type: 'a' })))
    const ask = client()
    for (let left = 20; left > 0; left--) {
      const got = await Promise.all([run.engine, other, run.engine, other].map(ask))
      assert.equal(new Set(got.map(task => task!.id)).size, 1)
      await other.succeed(got[0]!.id, got[0]!.epoch)
    }
    assert.equal(await ask(other), undefined)
  },
)
