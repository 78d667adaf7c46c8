import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { storyOf, taskIn } from '../../../test/harness/task-in.ts'
import { rescue } from '../../babysitter/rescue.ts'
import type { TaskState } from '../../kernel/task.ts'
import type { SettledTask } from '../../protocol/tasks/sync.ts'

const idsOf = (tasks: readonly { id: string }[]) => tasks.map(({ id }) => id)

test('a claim takes the oldest first and no more than it asks for', async t => {
  const { engine, sync } = await fresh(t)
  const ids = idsOf(await engine.enqueueMany(Array.from({ length: 7 }, (_, n) => ({ type: 'a', payload: n }))))
  const ask = { queues: ['a'], claim: 3 }
  assert.deepEqual(idsOf((await sync(ask)).claimed), ids.slice(0, 3))
  assert.deepEqual(idsOf((await sync({ queues: ['a'], claim: 0 })).claimed), [])
  assert.deepEqual(idsOf((await sync(ask)).claimed), ids.slice(3, 6))
  assert.deepEqual(idsOf((await sync(ask)).claimed), ids.slice(6))
  assert.deepEqual(idsOf((await sync(ask)).claimed), [])
})

test('a claim serves the queues it names, by priority across all of them', async t => {
  const { engine, sync } = await fresh(t)
  const items = [
    { type: 'w', queue: 'a', priority: 1, payload: 'a1' },
    { type: 'w', queue: 'b', priority: 2, payload: 'b2' },
    { type: 'w', queue: 'c', priority: 9, payload: 'c9' },
    { type: 'w', queue: 'a', priority: 3, payload: 'a3' },
  ]
  await engine.enqueueMany(items)
  const { claimed } = await sync({ queues: ['a', 'b'], claim: 10 })
  assert.deepEqual(
    claimed.map(({ payload }) => payload),
    ['a3', 'b2', 'a1'],
  )
  assert.equal((await engine.tasks({ queue: 'c' })).items[0]!.state, 'queued')
})

test('a worker is handed all that it needs to know', async t => {
  const { engine, sync } = await fresh(t)
  const { id } = await engine.enqueue('a', { n: 1 }, { timeoutSeconds: 5, leaseSeconds: 15, correlationId: 'c' })
  const { claimed, waitedMs } = await sync({ queues: ['a'], claim: 1 })
  const { leaseUntil, leaseSeconds, ...facts } = claimed[0]!
  assert.deepEqual(facts, {
    id,
    epoch: 1,
    type: 'a',
    jobId: null,
    stageId: null,
    payload: { n: 1 },
    attempt: 1,
    checkpoint: null,
    careful: false,
    heartbeatSeconds: 10,
    timeoutSeconds: 5,
    correlationId: 'c',
    traceparent: null,
  })
  assert.ok(leaseSeconds > 14 && leaseSeconds <= 15)
  assert.equal((await engine.task(id)).leaseUntil!.slice(0, 19), leaseUntil.slice(0, 19))
  assert.ok(waitedMs < 10_000)
})

test('a start is recorded once, however often it is said', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'assigned')
  for (const _ of [1, 2]) assert.deepEqual((await run.sync({ started: [{ id, epoch }] })).refused, [])
  assert.equal((await run.engine.task(id)).state, 'running')
  assert.deepEqual(await storyOf(run, id), [
    'queued by producer: enqueued',
    'claimed by worker:w: claimed',
    'started by worker:w: reported_start',
  ])
})

test('a start that was a while ago is dated back, but not before its claim', async t => {
  const run = await fresh(t)
  const [one, other] = [await taskIn(run, 'assigned'), await taskIn(run, 'assigned')]
  await run.advance(1000)
  const started = [
    { id: one.id, epoch: 1, agoMs: 400_000 },
    { id: other.id, epoch: 1, agoMs: 4_000_000 },
  ]
  await run.sync({ started })
  const [{ startedAt }, { startedAt: otherStartedAt }] = [
    await run.engine.task(one.id),
    await run.engine.task(other.id),
  ]
  const claimedAt = async (id: string) => (await run.engine.attempts(id))[0]!.claimedAt
  const since = (Date.parse(startedAt!) - Date.parse(await claimedAt(one.id))) / 1000
  assert.ok(since >= 600 && since < 900, `${since}`)
  assert.equal(otherStartedAt, await claimedAt(other.id))
})

test('a beat renews the lease, and keeps progress and checkpoint', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running', { heartbeatSeconds: 500, leaseSeconds: 5000 })
  const before = await run.engine.task(id)
  await run.advance(900)
  const { refused } = await run.sync({ beats: [{ id, epoch, progress: { percent: 10 }, checkpoint: { page: 3 } }] })
  await run.sync({ beats: [{ id, epoch }] })
  assert.deepEqual(refused, [])
  const after = await run.engine.task(id)
  const longer = (Date.parse(after.leaseUntil!) - Date.parse(before.leaseUntil!)) / 1000
  assert.ok(longer >= 900 && longer < 1000, `${longer}`)
  assert.deepEqual([after.progress, after.checkpoint], [{ percent: 10 }, { page: 3 }])
  assert.equal(after.seq, before.seq)
  await run.advance(900)
  const looked = await rescue({ beginsBlind: false }).run(run.engine.context)
  assert.equal(looked.rescued, 0)
})

test('the next attempt is handed the last checkpoint', async t => {
  const run = await fresh(t)
  const { id, epoch, queue } = await taskIn(run, 'running')
  await run.sync({ beats: [{ id, epoch, checkpoint: { page: 3 } }] })
  await run.sync({ settled: [{ id, epoch, outcome: 'failed', error: { message: 'no', retryInSeconds: 0 } }] })
  const { claimed } = await run.sync({ queues: [queue], claim: 1 })
  assert.deepEqual([claimed[0]!.checkpoint, claimed[0]!.attempt, claimed[0]!.epoch], [{ page: 3 }, 2, 2])
})

const error = { message: 'no' }
const endings: [facts: Omit<SettledTask, 'id' | 'epoch'>, state: TaskState][] = [
  [{ outcome: 'succeeded', output: [1] }, 'succeeded'],
  [{ outcome: 'succeeded', output: [1], partial: true }, 'succeeded'],
  [{ outcome: 'failed', error }, 'retrying'],
  [{ outcome: 'failed', error: { ...error, permanent: true } }, 'failed'],
  [{ outcome: 'skipped', reason: 'nothing to do' }, 'skipped'],
  [{ outcome: 'cancelled', reason: 'shut down' }, 'cancelled'],
  [{ outcome: 'dead_lettered', error: { ...error, reasonCode: 'parse_error', step: 'input' } }, 'dead_lettered'],
]

for (const start of ['with', 'without'] as const) {
  test(`each outcome ends an attempt as it says, ${start} a start before it`, async t => {
    const run = await fresh(t)
    for (const [facts, state] of endings) {
      const { id, epoch } = await taskIn(run, start === 'with' ? 'running' : 'assigned')
      assert.deepEqual((await run.sync({ settled: [{ id, epoch, ...facts }] })).refused, [])
      const task = await run.engine.task(id)
      assert.equal(task.state, state)
      assert.equal(task.leaseUntil, null)
      assert.equal(task.partial, facts.partial === true)
      assert.deepEqual(task.output, facts.output ?? null)
      assert.deepEqual(task.error, facts.error ?? null)
      assert.deepEqual(await storyOf(run, id), [
        'queued by producer: enqueued',
        'claimed by worker:w: claimed',
        `started by worker:w: ${start === 'with' ? 'reported_start' : 'implied'}`,
        `${state} by worker:w: reported_${facts.outcome}`,
      ])
    }
  })
}

test('a task that is given back is charged nothing, and may be claimed at once', async t => {
  const run = await fresh(t)
  for (const state of ['assigned', 'running'] as const) {
    const { id, epoch, queue } = await taskIn(run, state)
    await run.sync({ settled: [{ id, epoch, outcome: 'released', reason: 'shutting down' }] })
    const task = await run.engine.task(id)
    assert.deepEqual([task.state, task.failures, task.losses], ['retrying', 0, 0])
    const { claimed } = await run.sync({ queues: [queue], claim: 1 })
    assert.deepEqual([claimed[0]!.id, claimed[0]!.epoch, claimed[0]!.attempt], [id, 2, 1])
  }
})

test('failures are tried again after their delay, until the budget is used up', async t => {
  const run = await fresh(t)
  const retry = { attempts: 3, delaySeconds: 500, maxSeconds: 9000, jitter: false }
  const { id, queue } = await taskIn(run, 'queued', { retry })
  const delays: number[] = []
  for (const epoch of [1, 2, 3]) {
    const { claimed } = await run.sync({ queues: [queue], claim: 1 })
    assert.deepEqual([claimed[0]!.id, claimed[0]!.epoch, claimed[0]!.attempt], [id, epoch, epoch])
    await run.sync({ settled: [{ id, epoch, outcome: 'failed', error: { message: `no ${epoch}` } }] })
    const { runAt, changedAt } = await run.engine.task(id)
    delays.push((Date.parse(runAt) - Date.parse(changedAt)) / 1000)
    assert.deepEqual((await run.sync({ queues: [queue], claim: 1 })).claimed, [])
    await run.advance(2000)
  }
  assert.deepEqual(delays.slice(0, 2), [500, 1000])
  const { state, deadLetter, failures } = await run.engine.task(id)
  assert.deepEqual([state, failures], ['dead_lettered', 3])
  const { lastLeaseExpiresAt, ...evidence } = deadLetter!
  assert.ok(Date.parse(lastLeaseExpiresAt!) > 0)
  assert.deepEqual(evidence, {
    reasonCode: 'exhausted_retries',
    lastError: { message: 'no 3' },
    attempts: 3,
    lastOwner: 'w',
    correlationId: null,
  })
})

test('a task that never goes to the dead letters fails when its budget is used up', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running', { retry: { attempts: 1 }, deadLetter: 'never' })
  await run.sync({ settled: [{ id, epoch, outcome: 'failed', error }] })
  assert.equal((await run.engine.task(id)).state, 'failed')
})

test('a worker is told of a soft cancel at its next sync, and may still succeed', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running', { graceSeconds: 2000 })
  await run.engine.cancel(id)
  await run.advance(500)
  const cancels = [{ id, epoch, mode: 'soft' }]
  for (const ask of [{ beats: [{ id, epoch }] }, { queues: ['other'], claim: 1 }]) {
    const { cancel } = await run.sync(ask)
    assert.deepEqual(
      cancel.map(({ graceSeconds: _, ...notice }) => notice),
      cancels,
    )
    assert.ok(cancel[0]!.graceSeconds > 1000 && cancel[0]!.graceSeconds <= 1500, `${cancel[0]!.graceSeconds}`)
  }
  assert.deepEqual((await run.sync({ worker: 'another', queues: ['other'], claim: 1 })).cancel, [])
  assert.deepEqual((await run.sync({ settled: [{ id, epoch, outcome: 'succeeded' }] })).refused, [])
  assert.equal((await run.engine.task(id)).state, 'succeeded')
  assert.deepEqual((await run.sync({ queues: ['other'], claim: 1 })).cancel, [])
})

test('a failure, a release or a dead letter of a task that is told to stop ends it as cancelled', async t => {
  const run = await fresh(t)
  for (const outcome of ['failed', 'released', 'dead_lettered'] as const) {
    const { id, epoch } = await taskIn(run, 'running')
    await run.engine.cancel(id)
    await run.sync({ settled: [{ id, epoch, outcome, error }] })
    assert.equal((await run.engine.task(id)).state, 'cancelled', outcome)
  }
})

test('a careful task that its handler postpones is an ordinary task when it comes back', async t => {
  const run = await fresh(t)
  const { engine, advance } = run
  await engine.enqueue('a', null)
  const claim = async () => (await run.sync({ queues: ['a'], claim: 1 })).claimed[0]!
  await claim()
  await advance(21)
  await rescue({ beginsBlind: false }).run(engine.context)
  const { id, epoch, careful } = await claim()
  const error = { message: 'not ready', retryInSeconds: 60 }
  await run.sync({ started: [{ id, epoch }], settled: [{ id, epoch, outcome: 'released', error }] })
  await advance(61)
  assert.deepEqual([careful, (await claim()).careful], [true, false])
})

test('tasks to be handled with care are handed out one at a time', async t => {
  const run = await fresh(t)
  const { engine, advance } = run
  const ids = idsOf(await engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'a' }]))
  assert.equal((await run.sync({ queues: ['a'], claim: 3 })).claimed.length, 3)
  await advance(21)
  assert.equal((await rescue({ beginsBlind: false }).run(engine.context)).rescued, 3)
  const seen: string[] = []
  for (const _ of ids) {
    const { claimed } = await run.sync({ queues: ['a'], claim: 3 })
    assert.deepEqual(
      claimed.map(({ careful }) => careful),
      [true],
    )
    seen.push(...idsOf(claimed))
  }
  assert.deepEqual(seen.sort(), [...ids].sort())
  assert.deepEqual((await run.sync({ queues: ['a'], claim: 3 })).claimed, [])
})
