import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { stageOf, statesOf } from '../../../test/harness/jobs.ts'
import { storyOf, taskIn } from '../../../test/harness/task-in.ts'
import { continueJobs } from '../../babysitter/job-chores.ts'
import { settleOne, take } from './one-task.ts'

const rollbackError = new Error('the caller thinks better of it')

test('a script claims one task, starts it, keeps it alive and ends it', async t => {
  const run = await fresh(t)
  const { engine } = run
  await engine.enqueueMany([{ type: 'a', payload: 1 }, { type: 'a' }])
  const [task, ...none] = await engine.claims({ worker: 'sh', queues: ['a'] })
  assert.deepEqual([task!.payload, none.length], [1, 0])
  const { id, epoch } = task!
  assert.equal((await engine.start(id, epoch)).state, 'running')
  await run.advance(15)
  const { cancel, leaseUntil } = await engine.heartbeat(id, epoch, { progress: 0.5, checkpoint: { page: 3 } })
  assert.equal(cancel, null)
  const kept = await engine.task(id)
  assert.deepEqual([kept.progress, kept.checkpoint, kept.leaseUntil], [0.5, { page: 3 }, leaseUntil])
  assert.ok(Date.parse(leaseUntil) >= Date.parse(task!.leaseUntil) + 14_000, 'the lease was renewed')
  const ended = await engine.succeed(id, epoch, { output: { pages: 7 } })
  assert.deepEqual([ended.state, ended.output], ['succeeded', { pages: 7 }])
  assert.deepEqual(await storyOf(run, id), [
    'queued by producer: enqueued',
    'claimed by worker:sh: claimed',
    'started by worker:sh: reported_start',
    'succeeded by worker:sh: reported_succeeded',
  ])
  assert.equal((await engine.succeed(id, epoch, { output: 'again' })).state, 'succeeded', 'its answer was lost')
})

test('what an attempt had written before it failed is kept with its error', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const error = { message: 'exit code 1', stack: 'at main.rs:7', output: 'reading a.txt\nno such word\n' }
  assert.deepEqual((await run.engine.fail(id, epoch, { error })).error, error)
  assert.deepEqual((await run.engine.attempts(id))[0]!.error, error)
})

test('a task and what its handler wrote are there together, or not at all', async t => {
  const run = await fresh(t)
  const { engine, sql } = run
  await sql.script('create table pawl.orders (id integer primary key)')
  const { id, epoch } = await taskIn(run, 'running')
  const bill = (number: number, andThen: () => void) =>
    engine.transaction(async tx => {
      await tx`insert into pawl.orders values (${number})`
      const inside = await engine.succeed(id, epoch, { output: number, tx })
      assert.equal(inside.state, 'succeeded')
      await engine.succeed(id, epoch, { output: number, tx })
      andThen()
    })
  const failing = () => {
    throw rollbackError
  }
  await assert.rejects(bill(1, failing), rollbackError)
  assert.deepEqual([(await engine.task(id)).state, await sql`select * from pawl.orders`], ['running', []])
  await bill(2, () => {})
  const { state, output } = await engine.task(id)
  assert.deepEqual([state, output, await sql`select id from pawl.orders`], ['succeeded', 2, [{ id: 2 }]])
  const { refused } = await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', output: 2 }] })
  assert.deepEqual(refused, [], 'the report that follows is answered as the first was')
})

test('the first heartbeat says that the task has begun', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'assigned')
  await run.engine.heartbeat(id, epoch)
  await run.engine.heartbeat(id, epoch)
  assert.deepEqual((await storyOf(run, id)).slice(2), ['started by worker:w: reported_start'])
})

test('a heartbeat tells that the task is to stop, and how long it may take', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id, epoch } = await taskIn(run, 'running', { graceSeconds: 20 })
  const other = await taskIn(run, 'running')
  await engine.cancel(id)
  await run.advance(5)
  const { cancel } = await engine.heartbeat(id, epoch)
  assert.equal(cancel!.mode, 'soft')
  assert.ok(cancel!.graceSeconds > 10 && cancel!.graceSeconds <= 15, `${cancel!.graceSeconds}`)
  assert.equal((await engine.heartbeat(other.id, other.epoch)).cancel, null, 'the cancel of another is not ours')
  assert.equal((await engine.cancelled(id, epoch, { reason: 'cleaned up' })).state, 'cancelled')
})

test('a script ends a task as failed, skipped or given back, and learns what became of it', async t => {
  const run = await fresh(t)
  const { engine } = run
  const held = () => taskIn(run, 'running')
  const [one, two, three, four] = [await held(), await held(), await held(), await held()]
  const failed = await engine.fail(one.id, one.epoch, { error: { message: 'no' } })
  assert.deepEqual([failed.state, failed.failures, failed.error!.message], ['retrying', 1, 'no'])
  const given = await engine.fail(two.id, two.epoch, { error: { message: 'no', permanent: true } })
  assert.equal(given.state, 'failed')
  assert.equal((await engine.skip(three.id, three.epoch, { reason: 'nothing to do' })).state, 'skipped')
  const released = await engine.release(four.id, four.epoch)
  assert.deepEqual([released.state, released.failures], ['retrying', 0])
})

test('a script that lost its lease is refused, whatever it says, and changes nothing', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id, epoch, queue } = await taskIn(run, 'retrying')
  await engine.claims({ worker: 'other', queues: [queue] })
  const before = await engine.task(id)
  const lost = { code: 'LEASE_LOST', status: 409 }
  for (const call of [
    () => engine.start(id, epoch),
    () => engine.heartbeat(id, epoch, { progress: 1 }),
    () => engine.succeed(id, epoch, { output: 1 }),
    () => engine.fail(id, epoch),
    () => engine.skip(id, epoch),
    () => engine.cancelled(id, epoch),
    () => engine.transaction(tx => engine.succeed(id, epoch, { tx })),
    () => engine.transaction(tx => engine.fail(id, epoch, { tx })),
  ]) {
    await assert.rejects(call, lost)
  }
  assert.deepEqual(await engine.task(id), before)
  const nobody = '01890000-0000-7000-8000-000000000000'
  await assert.rejects(engine.start(nobody, 1), { code: 'TASK_NOT_FOUND', status: 404 })
  const queued = await taskIn(run, 'queued')
  await assert.rejects(engine.start(queued.id, 0), lost)
})

test('what a script says wrongly is refused by name', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id, epoch } = await taskIn(run, 'running')
  const any = (value: unknown) => value as never
  await assert.rejects(engine.succeed(id, epoch, any({ outptu: 1 })), /didYouMean: "output"/)
  await assert.rejects(engine.skip(id, epoch, any({ output: 1 })), { code: 'OPTION_UNKNOWN' })
  await assert.rejects(engine.heartbeat(id, epoch, any({ progres: 1 })), /didYouMean: "progress"/)
  await assert.rejects(engine.succeed(id, any('one')), { code: 'OPTION_INVALID' })
  await assert.rejects(engine.succeed(id, epoch, { output: '\0' }), { code: 'PAYLOAD_INVALID' })
  await assert.rejects(engine.claims(any({ worker: 'sh' })), /queues/)
  await assert.rejects(engine.claims(any({ worker: 'sh', queues: ['a'], settled: [] })), { code: 'OPTION_UNKNOWN' })
  const bad = engine.transaction(tx => engine.succeed(id, epoch, { output: '\0', tx }))
  await assert.rejects(bad, { code: 'PAYLOAD_INVALID' })
  assert.equal((await engine.task(id)).state, 'running')
})

test('a job goes on when the transaction that ended its task has committed: by the report, or by the babysitter', async t => {
  const run = await fresh(t)
  const { engine } = run
  for (const by of ['report', 'babysitter']) {
    const stages = ['a', 'b'].map(name => ({ name, task: name }))
    const job = await engine.submit({ name: 'j', stages })
    const [task] = await engine.claims({ worker: 'w', queues: ['a'] })
    const { id, epoch } = task!
    await engine.transaction(tx => engine.succeed(id, epoch, { tx }))
    assert.equal(await statesOf(run, job.id), 'pending: a pending, b created')
    if (by === 'report') await run.sync({ settled: [{ id, epoch, outcome: 'succeeded' }] })
    else {
      await run.advance(4)
      await continueJobs().run(engine.context)
    }
    assert.equal(await statesOf(run, job.id), 'running: a succeeded, b pending', by)
    await engine.cancelJob(job.id)
  }
})

test('tasks that are spawned with a settle in a transaction are there when it commits, once', async t => {
  const run = await fresh(t)
  const { engine } = run
  const job = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const [task] = await engine.claims({ worker: 'w', queues: ['a'] })
  const { id, epoch } = task!
  const settle = (andThen: () => void) =>
    engine.transaction(async tx => {
      await engine.succeed(id, epoch, { spawn: [{ payload: 1 }, { payload: 2 }], tx })
      andThen()
    })
  const failing = () => {
    throw rollbackError
  }
  await assert.rejects(settle(failing), rollbackError)
  assert.equal((await stageOf(run, job.id, 'a')).progress.total, 1)
  await settle(() => {})
  await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', spawn: [{ payload: 1 }, { payload: 2 }] }] })
  assert.equal((await stageOf(run, job.id, 'a')).progress.total, 3)
  assert.equal((await engine.claims({ worker: 'w', queues: ['a'], claim: 9 })).length, 2)
  const late = engine.transaction(tx => engine.succeed(id, epoch + 1, { spawn: [{}], tx }))
  await assert.rejects(late, { code: 'LEASE_LOST' })
  await assert.rejects(
    async () => {
      const alone = await taskIn(run, 'running')
      await engine.transaction(tx => engine.succeed(alone.id, alone.epoch, { spawn: [{}], tx }))
    },
    { code: 'SPAWN_REFUSED' },
  )
})

test('who cannot name a lease reports the attempt that is under way, and only while there is one', async t => {
  const run = await fresh(t)
  const { engine } = run
  for (const state of ['assigned', 'running'] as const) {
    const { id } = await taskIn(run, state)
    assert.equal((await settleOne(engine.context, 'succeeded', id, null, { output: 1 })).state, 'succeeded')
    const again = settleOne(engine.context, 'succeeded', id, null)
    await assert.rejects(again, { code: 'MOVE_REFUSED', details: { id, state: 'succeeded', possible: [] } })
  }
  const failed = await taskIn(run, 'running')
  assert.equal(
    (await settleOne(engine.context, 'failed', failed.id, null, { error: { message: 'no' } })).state,
    'retrying',
  )
  await assert.rejects(settleOne(engine.context, 'failed', failed.id, null), { code: 'MOVE_REFUSED' })
  const mine = await taskIn(run, 'running')
  await engine.transaction(async tx => void (await settleOne(engine.context, 'succeeded', mine.id, null, { tx })))
  assert.equal((await engine.task(mine.id)).state, 'succeeded')
})

test('of many who claim at once nobody goes away empty while something is due', async t => {
  const { engine } = await fresh(t)
  const crowd = 6
  for (let round = 0; round < 10; round++) {
    // Tasks enqueued together share a queue row, which each claim locks for a moment.
    await engine.enqueueMany(Array.from({ length: crowd }, () => ({ type: 'a' })))
    const won = await Promise.all(
      Array.from({ length: crowd }, (_, n) => engine.claims({ worker: `w${n}`, queues: ['a'], start: true })),
    )
    assert.deepEqual(
      won.map(tasks => tasks.length),
      Array.from({ length: crowd }, () => 1),
    )
    assert.equal(new Set(won.flatMap(tasks => tasks.map(({ id }) => id))).size, crowd)
  }
  assert.deepEqual(await engine.claims({ worker: 'w', queues: ['a'] }), [])
})

test('a task that is taken is shown as it is read, running and with all that it has', async t => {
  const { engine } = await fresh(t)
  const { stages } = await engine.submit({
    name: 'j',
    correlationId: 'c',
    priority: 3,
    stages: [{ name: 'a', task: 'a', open: true, leaseSeconds: 600 }],
  })
  await engine.addTasks(stages[0]!.id, [{ payload: { n: 1 }, metadata: { page: 7 }, retry: { attempts: 2 } }])
  const alone = await engine.enqueue('a', 2, { runInSeconds: 0, dedupeKey: 'k', expireInSeconds: 60 })
  const first = await take(engine.context, { worker: 'w', queues: ['a'] }, { idempotencyKey: 'one' })
  assert.deepEqual(first, [await engine.task(first[0]!.id)])
  assert.deepEqual([first[0]!.state, first[0]!.metadata], ['running', { page: 7 }])
  assert.equal((await engine.job(stages[0]!.jobId)).state, 'running')
  const again = await take(engine.context, { worker: 'w', queues: ['a'] }, { idempotencyKey: 'one' })
  assert.deepEqual(again, first, 'asked for once more it is the same')
  const [second] = await take(engine.context, { worker: 'w', queues: ['a'] })
  assert.deepEqual([second!.id, second], [alone.id, await engine.task(alone.id)])
  assert.deepEqual(await take(engine.context, { worker: 'w', queues: ['a'] }), [])
})

test('what another has put back is found though a slow claim has gone past its place', async t => {
  const { engine } = await fresh(t)
  const ids = (await engine.enqueueMany(Array.from({ length: 60 }, () => ({ type: 'a' })))).map(({ id }) => id)
  const { sql, claimHints } = engine.context
  const [lane] = await sql<{ id: number; us: number }>`
    select lane_id as id, (date_part('epoch', max(run_at)) * 1000000)::bigint as us from pawl.due group by lane_id`
  const place = { laneId: lane!.id, runAtUs: Number(lane!.us), id: ids.at(-1)! }
  claimHints.learn([place], { usedHints: false, isFull: true, tookMs: 10_000 })
  assert.ok(claimHints.current().length === 1, 'claims begin behind the last')
  const [won] = await engine.claims({ worker: 'w', queues: ['a'] })
  assert.equal(won!.id, ids[0])
})

test('only the first start in a stage is news to its job, and one that comes after a retry is again', async t => {
  const { engine, sql } = await fresh(t)
  const { id } = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a', payloads: [1, 2, 3] }] })
  const begin = async () => (await engine.claims({ worker: 'w', queues: ['a'], start: true }))[0]!
  const talliedRows = async () => (await sql<{ rows: number }>`select count(*)::int as rows from pawl.tally`)[0]!.rows
  const first = await begin()
  assert.deepEqual([(await engine.job(id)).state, await talliedRows()], ['running', 0])
  const second = await begin()
  assert.equal(await talliedRows(), 0)
  const bad = { error: { message: 'no', permanent: true } }
  await engine.fail(first.id, first.epoch, bad)
  await engine.fail(second.id, second.epoch, bad)
  assert.equal((await engine.job(id)).state, 'failed')
  await engine.retryJob(id)
  assert.equal((await engine.job(id)).state, 'pending')
  await begin()
  const { state, stages } = await engine.job(id)
  assert.deepEqual([state, stages[0]!.state], ['running', 'running'])
})
