/** Seed 004, Job State Machine v1: its allowed transitions and its invariants. Its load tests are in test/stories. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import type { TaskState } from '../../src/kernel/task.ts'
import type { HeldTask, SettledTask } from '../../src/protocol/tasks/sync.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { movesIn } from '../harness/job-in.ts'
import { claim } from '../harness/jobs.ts'
import { taskIn } from '../harness/task-in.ts'

type Task = HeldTask & { readonly queue: string }
type Act = (f: Fresh, task: Task) => Promise<unknown>

const reports =
  (report: Omit<SettledTask, 'id' | 'epoch'>): Act =>
  async (f, { id, epoch }) =>
    assert.deepEqual((await f.sync({ settled: [{ id, epoch, ...report }] })).refused, [])
const fails = (error: object) => reports({ outcome: 'failed', error: { message: 'no', ...error } })
const claimed: Act = (f, { queue }) => claim(f, [queue], 1)
const started: Act = (f, { id, epoch }) => f.sync({ started: [{ id, epoch }] })
const stopped: Act = (f, { id }) => f.engine.cancel(id, { mode: 'hard' })
const setAside: Act = (f, { id }) => f.engine.deadLetter(id, { reasonCode: 'policy_violation' })
const corrupt = reports({ outcome: 'dead_lettered', error: { message: 'odd', reasonCode: 'parse_error' } })

const rows: [row: string, from: TaskState, act: Act, to: TaskState][] = [
  ['queued → assigned, when a claim succeeds and a lease is acquired', 'queued', claimed, 'assigned'],
  ['assigned → running, when the worker acknowledges its start', 'assigned', started, 'running'],
  ['running → succeeded', 'running', reports({ outcome: 'succeeded' }), 'succeeded'],
  ['running → failed, by a PermanentError', 'running', fails({ permanent: true }), 'failed'],
  ['running → cancelled, by its worker after a signal', 'running', reports({ outcome: 'cancelled' }), 'cancelled'],
  ['queued → cancelled, by policy or user', 'queued', stopped, 'cancelled'],
  ['assigned → cancelled, by policy or user', 'assigned', stopped, 'cancelled'],
  ['running → cancelled, by policy or user', 'running', stopped, 'cancelled'],
  ['queued → dead_lettered, by a hard policy violation', 'queued', setAside, 'dead_lettered'],
  ['assigned → dead_lettered, by a hard policy violation', 'assigned', setAside, 'dead_lettered'],
  ['running → dead_lettered, by a hard policy violation', 'running', setAside, 'dead_lettered'],
  ['running → dead_lettered, by a corrupted payload', 'running', corrupt, 'dead_lettered'],
  ['running → (queued, as retrying), by a TransientError', 'running', fails({}), 'retrying'],
]
for (const [row, from, act, to] of rows) {
  test(`jsm 004: ${row}: one event, with its time, actor, cause and correlation`, async t => {
    const f = await fresh(t)
    const task = await taskIn(f, from, { correlationId: 'c-7' })
    const { items: before } = await f.engine.taskEvents(task.id)
    await act(f, task)
    assert.equal((await f.engine.task(task.id)).state, to)
    const { items } = await f.engine.taskEvents(task.id)
    assert.deepEqual(movesIn({ items: items.slice(before.length) }), [`${from} → ${to}`])
    const { ts, actor, cause, correlationId, seq } = items.at(-1)!
    assert.deepEqual([correlationId, seq, Number.isNaN(Date.parse(ts))], ['c-7', items.length, false])
    assert.ok(actor !== '' && cause !== null)
  })
}

for (const state of ['succeeded', 'failed', 'cancelled', 'dead_lettered'] as const) {
  test(`jsm 004: no transition leads from ${state} to running: a late start or report is refused`, async t => {
    const f = await fresh(t)
    const { id, epoch, queue } = await taskIn(f, state)
    const other = state === 'succeeded' ? 'failed' : 'succeeded'
    for (const late of [{ started: [{ id, epoch }] }, { settled: [{ id, epoch, outcome: other } as const] }]) {
      assert.deepEqual(
        (await f.sync(late)).refused.map(({ code }) => code),
        ['LEASE_LOST'],
      )
    }
    assert.equal((await claim(f, [queue])).length, 0)
    assert.equal((await f.engine.task(id)).state, state)
  })
}

test('jsm 004: running → queued is forbidden: a lost lease goes on as retrying, and the next claim has a new epoch', async t => {
  const f = await fresh(t)
  const { run } = rescue({ beginsBlind: false, now: () => 0 })
  const { id, queue } = await taskIn(f, 'running', { heartbeatSeconds: null, leaseSeconds: 1000 })
  await f.advance(1001)
  await run(f.engine.context)
  const [again] = await claim(f, [queue])
  assert.deepEqual([again!.id, again!.epoch], [id, 2])
  const moves = ['* → queued', 'queued → assigned', 'assigned → running', 'running → retrying', 'retrying → assigned']
  assert.deepEqual(movesIn(await f.engine.taskEvents(id)), moves)
})

test('jsm 004: a lease that is lost too often goes to the DLQ, with all its required fields', async t => {
  const f = await fresh(t)
  const { run } = rescue({ beginsBlind: false, now: () => 0 })
  const lease = { heartbeatSeconds: null, leaseSeconds: 1000, retry: { losses: 1 } }
  const { id } = await taskIn(f, 'running', { ...lease, correlationId: 'c-7' })
  await f.advance(1001)
  await run(f.engine.context)
  const { state, deadLetter } = await f.engine.task(id)
  assert.equal(state, 'dead_lettered')
  const { reasonCode, lastError, attempts, lastOwner, lastLeaseExpiresAt, correlationId } = deadLetter!
  assert.deepEqual([reasonCode, attempts, lastOwner, correlationId], ['infrastructure_failure', 1, 'w', 'c-7'])
  assert.ok(lastError.message !== '' && lastLeaseExpiresAt !== null)
})

test('jsm 004: attempts that are used up go to the DLQ, or to failed, per policy', async t => {
  const f = await fresh(t)
  for (const [deadLetter, end] of [
    ['exhausted', 'dead_lettered'],
    ['never', 'failed'],
  ] as const) {
    const task = await taskIn(f, 'running', { deadLetter, retry: { attempts: 1 } })
    await fails({})(f, task)
    assert.equal((await f.engine.task(task.id)).state, end)
  }
})

test('jsm 004: a transition asked for again under its idempotency key has no side effects', async t => {
  const f = await fresh(t)
  const { id } = await taskIn(f, 'queued')
  const call = { idempotencyKey: 'once', mode: 'hard' } as const
  const first = await f.engine.cancel(id, call)
  const events = await f.engine.taskEvents(id)
  assert.deepEqual(await f.engine.cancel(id, call), first)
  assert.deepEqual(await f.engine.taskEvents(id), events)
})

test('jsm 004: a soft cancel signals the worker, which may checkpoint and end; a hard one ends it at once', async t => {
  const f = await fresh(t)
  const { id, epoch } = await taskIn(f, 'running')
  await f.engine.cancel(id, { mode: 'soft' })
  const { cancel } = await f.sync({ beats: [{ id, epoch, checkpoint: { page: 3 } }] })
  assert.deepEqual(
    cancel.map(notice => [notice.id, notice.mode]),
    [[id, 'soft']],
  )
  const { state, checkpoint } = await f.engine.task(id)
  assert.deepEqual([state, checkpoint], ['running', { page: 3 }])
  assert.equal((await f.engine.cancel(id, { mode: 'hard' })).state, 'cancelled')
  assert.equal((await f.sync({ beats: [{ id, epoch }] })).refused[0]!.code, 'LEASE_LOST')
})
