import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { storyOf, taskIn } from '../../test/harness/task-in.ts'
import { openEngine } from '../engine/engine.ts'
import { rescue } from './rescue.ts'

/** A babysitter that has never been blind. */
function watchful({ engine }: Pick<Fresh, 'engine'>) {
  const chore = rescue({ beginsBlind: false, now: () => 0 })
  return () => chore.run(engine.context)
}

test('a task whose worker died is retried, and the loss is charged to it', async t => {
  const run = await fresh(t)
  const runRescue = watchful(run)
  const { id, queue } = await taskIn(run, 'running', { heartbeatSeconds: 500, leaseSeconds: 5000 })
  await run.advance(900)
  assert.equal((await runRescue()).rescued, 0)
  await run.advance(101)
  assert.equal((await runRescue()).rescued, 1)
  const { state, failures, losses, owner } = await run.engine.task(id)
  assert.deepEqual([state, failures, losses, owner], ['retrying', 0, 1, 'w'])
  assert.equal((await storyOf(run, id)).at(-1), 'retrying by babysitter: lease_lost')
  const { claimed } = await run.sync({ queues: [queue], claim: 1 })
  assert.deepEqual([claimed[0]!.epoch, claimed[0]!.attempt, claimed[0]!.careful], [2, 2, false])
})

test('a task lost before its start is charged nothing, and comes back to be handled with care', async t => {
  const run = await fresh(t)
  const runRescue = watchful(run)
  const { id, queue } = await taskIn(run, 'assigned')
  for (const epoch of [2, 3, 4, 5]) {
    await run.advance(21)
    assert.equal((await runRescue()).rescued, 1)
    const { claimed } = await run.sync({ queues: [queue], claim: 1 })
    assert.deepEqual([claimed[0]!.epoch, claimed[0]!.attempt, claimed[0]!.careful], [epoch, 1, true])
  }
  assert.deepEqual([(await run.engine.task(id)).losses, (await run.engine.task(id)).state], [0, 'assigned'])
})

/** Workers claim the task and vanish before they start it, a number of times in a row. */
async function loseBeforeStart(run: Fresh, queue: string, times: number): Promise<void> {
  const runRescue = watchful(run)
  for (let n = 0; n < times; n++) {
    assert.equal((await run.sync({ queues: [queue], claim: 1 })).claimed.length, 1, `claim ${n + 1}`)
    await run.advance(21)
    assert.equal((await runRescue()).rescued, 1)
  }
}

test('a task that every worker loses before it starts ends as a dead letter; ten such losses count as one', async t => {
  const run = await fresh(t)
  const { id, queue } = await taskIn(run, 'queued', { retry: { losses: 2 } })
  await loseBeforeStart(run, queue, 9)
  assert.equal((await run.engine.task(id)).losses, 0)
  await loseBeforeStart(run, queue, 1)
  assert.deepEqual([(await run.engine.task(id)).losses, (await run.engine.task(id)).state], [1, 'retrying'])
  await loseBeforeStart(run, queue, 9)
  assert.equal((await run.engine.task(id)).state, 'retrying')
  await loseBeforeStart(run, queue, 1)
  const { state, losses, deadLetter } = await run.engine.task(id)
  assert.deepEqual([state, losses, deadLetter?.reasonCode], ['dead_lettered', 2, 'infrastructure_failure'])
})

test('a start, a release or a new round ends a row of losses before a start', async t => {
  const run = await fresh(t)
  const { id, queue } = await taskIn(run, 'queued', { retry: { delaySeconds: 0 } })
  const breaks = [
    async (epoch: number) => run.sync({ settled: [{ id, epoch, outcome: 'released' as const }] }),
    async (epoch: number) => run.sync({ settled: [{ id, epoch, outcome: 'failed' as const }] }),
    async () => {
      await run.engine.cancel(id, { mode: 'hard' })
      await run.engine.resume(id)
    },
  ]
  for (const breakRow of breaks) {
    await loseBeforeStart(run, queue, 9)
    const [held] = (await run.sync({ queues: [queue], claim: 1 })).claimed
    await breakRow(held!.epoch)
    await run.advance(5)
  }
  await loseBeforeStart(run, queue, 9)
  assert.equal((await run.engine.task(id)).losses, 0)
})

test('a payload that kills every worker ends as a dead letter, its neighbours pay nothing', async t => {
  const run = await fresh(t)
  const runRescue = watchful(run)
  const killer = await taskIn(run, 'queued', { queue: 'q', correlationId: 'c' })
  const neighbour = await taskIn(run, 'queued', { queue: 'q' })
  for (const losses of [1, 2, 3]) {
    const { claimed } = await run.sync({ queues: ['q'], claim: 5 })
    const { id, epoch } = claimed.find(task => task.id === killer.id)!
    await run.sync({ started: [{ id, epoch }] })
    await run.advance(21)
    assert.equal((await runRescue()).rescued, claimed.length)
    assert.equal((await run.engine.task(killer.id)).losses, losses)
  }
  const task = await run.engine.task(killer.id)
  assert.equal(task.state, 'dead_lettered')
  const { lastLeaseExpiresAt, ...letter } = task.deadLetter!
  assert.deepEqual(letter, {
    reasonCode: 'infrastructure_failure',
    lastError: { message: 'The worker stopped renewing its lease.' },
    attempts: 3,
    lastOwner: 'w',
    correlationId: 'c',
  })
  assert.ok(lastLeaseExpiresAt !== null)
  const { losses, failures } = await run.engine.task(neighbour.id)
  assert.deepEqual([losses, failures], [0, 0])
})

test('an attempt that runs for too long is a failure; the last one is a dead letter "timeout"', async t => {
  const run = await fresh(t)
  const runRescue = watchful(run)
  const retry = { attempts: 2, delaySeconds: 0 }
  const options = { timeoutSeconds: 1000, leaseSeconds: 9000, heartbeatSeconds: null, retry }
  const { id, queue } = await taskIn(run, 'running', options)
  await run.advance(900)
  assert.equal((await runRescue()).rescued, 0)
  await run.advance(101)
  assert.equal((await runRescue()).rescued, 1)
  const first = await run.engine.task(id)
  assert.deepEqual([first.state, first.failures, first.losses], ['retrying', 1, 0])
  assert.match(first.error!.message, /longer than 1000 s/)
  const late = await run.sync({ settled: [{ id, epoch: 1, outcome: 'succeeded' }] })
  assert.equal(late.refused[0]!.code, 'LEASE_LOST')
  await run.sync({ queues: [queue], claim: 1 })
  await run.sync({ started: [{ id, epoch: 2 }] })
  await run.advance(1001)
  assert.equal((await runRescue()).rescued, 1)
  const last = await run.engine.task(id)
  assert.deepEqual([last.state, last.deadLetter?.reasonCode, last.failures], ['dead_lettered', 'timeout', 2])
  assert.equal((await storyOf(run, id)).at(-1), 'dead_lettered by babysitter: timeout')
})

test("a task's own timeout is kept though its lease is long", async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running', { leaseSeconds: 3600, heartbeatSeconds: null, timeoutSeconds: 1000 })
  await run.advance(1001)
  assert.equal((await watchful(run)()).rescued, 1)
  assert.equal((await run.engine.task(id)).failures, 1)
})

test('an attempt that starts long after its claim has all of its time', async t => {
  const run = await fresh(t)
  const runRescue = watchful(run)
  const { id } = await taskIn(run, 'assigned', { leaseSeconds: 36_000, heartbeatSeconds: null, timeoutSeconds: 1000 })
  await run.advance(1001)
  assert.equal((await runRescue()).rescued, 0)
  await run.sync({ started: [{ id, epoch: 1 }] })
  await run.advance(900)
  assert.equal((await runRescue()).rescued, 0)
  await run.advance(101)
  assert.equal((await runRescue()).rescued, 1)
})

test('a task whose losses are used up fails if it never goes to the dead letters', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running', { retry: { losses: 1 }, deadLetter: 'never' })
  await run.advance(21)
  await watchful(run)()
  assert.equal((await run.engine.task(id)).state, 'failed')
})

test('a task that is lost while it is told to stop ends as cancelled', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running')
  await run.engine.cancel(id)
  await run.advance(21)
  await watchful(run)()
  assert.deepEqual((await storyOf(run, id)).at(-1), 'cancelled by babysitter: lease_lost')
})

test('a lease ends when it says: without heartbeats only the lease counts', async t => {
  const run = await fresh(t)
  const runRescue = watchful(run)
  await taskIn(run, 'running', { heartbeatSeconds: null, leaseSeconds: 5000 })
  await taskIn(run, 'running', { heartbeatSeconds: 500, leaseSeconds: 9000 })
  await taskIn(run, 'running', { heartbeatSeconds: 9000, leaseSeconds: 1500 })
  const rescued: unknown[] = []
  for (const seconds of [900, 200, 500, 3300, 200]) {
    await run.advance(seconds)
    rescued.push((await runRescue()).rescued)
  }
  assert.deepEqual(rescued, [0, 1, 1, 0, 1])
})

/** A babysitter whose clock follows that of the database. Heartbeats are long, because the machine may be slow. */
function sleepy(run: Fresh) {
  let ms = 0
  const chore = rescue({ now: () => ms, heartbeatSeconds: 1000 })
  return async (seconds: number) => {
    ms += seconds * 1000
    await run.advance(seconds)
    return chore.run(run.engine.context)
  }
}
const leisurely = { heartbeatSeconds: 1000, leaseSeconds: 9000 }
const blind = { rescued: 0, isBlind: true }

test('a babysitter that could not see waits two heartbeats, and charges nothing for what it missed', async t => {
  const run = await fresh(t)
  const runRescue = sleepy(run)
  const lost = await taskIn(run, 'running', leisurely)
  await run.advance(6000)
  for (const seconds of [0, 900, 900]) assert.deepEqual(await runRescue(seconds), blind)
  assert.equal((await run.engine.task(lost.id)).state, 'running')
  assert.equal((await runRescue(300)).rescued, 1)
  const { state, losses } = await run.engine.task(lost.id)
  assert.deepEqual([state, losses], ['retrying', 0])
})

test('a babysitter that sees charges what is lost, until it cannot see for longer than a heartbeat', async t => {
  const run = await fresh(t)
  const runRescue = sleepy(run)
  for (const seconds of [0, 900, 900, 900]) await runRescue(seconds)
  const seen = await taskIn(run, 'running', leisurely)
  for (const seconds of [900, 900, 300]) await runRescue(seconds)
  assert.deepEqual([(await run.engine.task(seen.id)).state, (await run.engine.task(seen.id)).losses], ['retrying', 1])
  assert.deepEqual(await runRescue(1001), blind)
})

test('a worker that comes back while the babysitter waits keeps its task', async t => {
  const run = await fresh(t)
  const runRescue = sleepy(run)
  const { id, epoch } = await taskIn(run, 'running', leisurely)
  await run.advance(30_000)
  assert.deepEqual(await runRescue(0), blind)
  assert.deepEqual((await run.sync({ beats: [{ id, epoch }] })).refused, [])
  for (const seconds of [900, 900]) assert.deepEqual(await runRescue(seconds), blind)
  assert.deepEqual((await run.sync({ beats: [{ id, epoch }] })).refused, [])
  assert.equal((await runRescue(300)).rescued, 0)
  assert.equal((await run.engine.task(id)).state, 'running')
})

test('a look that the store did not answer does not count as having looked', async t => {
  const run = await fresh(t)
  let ms = 0
  const chore = rescue({ beginsBlind: false, now: () => ms })
  const away = Object.assign(() => Promise.reject(new Error('away')), run.sql)
  const { id } = await taskIn(run, 'running')
  for (const _ of [1, 2, 3]) {
    ms += 9_000
    await run.advance(9)
    await assert.rejects(chore.run({ ...run.engine.context, sql: away as never }), /away/)
  }
  assert.equal((await chore.run(run.engine.context)).isBlind, true)
  assert.equal((await run.engine.task(id)).state, 'running')
})

test('two babysitters at once take each task back once', async t => {
  const run = await fresh(t)
  const other = await openEngine({ database: run.url!, schema: run.schema })
  t.after(() => other.close())
  const { engine } = run
  await engine.enqueueMany(Array.from({ length: 200 }, () => ({ type: 'a' })))
  const ids: string[] = []
  for (let n = 0; n < 20; n++) {
    const { claimed } = await run.sync({ queues: ['a'], claim: 10 })
    ids.push(...claimed.map(({ id }) => id))
    await run.sync({ started: claimed.map(({ id, epoch }) => ({ id, epoch })) })
  }
  await run.advance(21)
  const rounds = await Promise.all([run, { engine: other }, run, { engine: other }].map(each => watchful(each)()))
  const rescued = rounds.reduce((sum, did) => sum + (did.rescued as number), 0)
  assert.equal(rescued, 200)
  for (const id of ids.slice(0, 20)) {
    const { losses, seq } = await engine.task(id)
    assert.deepEqual([losses, seq], [1, 4])
  }
})

test('a task that cannot be written is counted and told, and holds nobody up', async t => {
  const logged: unknown[] = []
  const run = await fresh(t, { log: (word, facts) => logged.push([word, facts.id]) })
  const runRescue = watchful(run)
  await run.engine.enqueueMany(Array.from({ length: 9 }, () => ({ type: 'a' })))
  const { claimed } = await run.sync({ queues: ['a'], claim: 9 })
  const bad = claimed[4]!.id
  await run.sql.script(`
    create function pawl.raise() returns trigger language plpgsql as 'begin raise exception ''not this one''; end';
    create trigger not_this_one before update on pawl.task for each row when (new.id = '${bad}')
      execute function pawl.raise()`)
  await run.advance(21)
  const { rescued, failed } = await runRescue()
  assert.deepEqual([rescued, failed, logged], [8, 1, [['task.unwritable', bad]]])
  await run.sql.script('drop trigger not_this_one on pawl.task')
  await run.advance(2)
  assert.equal((await runRescue()).rescued, 1)
})
