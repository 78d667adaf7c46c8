/**
 * Seed 000, the Marie scheduler: its table of valid transitions, and its rules for time, retries, branches and
 * outcomes.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageLanes, expireTasks, retention } from '../../src/babysitter/chores.ts'
import { jobDeadlines } from '../../src/babysitter/job-chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { isFinal, isGoodFinal, statesOf as statesIn, wasExecuted } from '../../src/kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../src/kernel/task.ts'
import type { HeldTask } from '../../src/protocol/tasks/sync.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { movesIn, twoStages } from '../harness/job-in.ts'
import { claim, say, stageOf, statesOf, workOff } from '../harness/jobs.ts'
import { taskIn } from '../harness/task-in.ts'

/** retry_limit 2, retry_delay 5, retry_backoff, expire_in_seconds 3600. */
const retry = { attempts: 3, delaySeconds: 5, jitter: false }
const work = { retry, expireInSeconds: 3600, leaseSeconds: 9000, heartbeatSeconds: null, deadLetter: 'never' } as const
type Task = HeldTask & { readonly queue: string }
type Act = (f: Fresh, task: Task) => Promise<unknown>

const reports =
  (outcome: 'succeeded' | 'skipped' | 'failed', permanent = false): Act =>
  async (f, { id, epoch }) => {
    const error = { message: 'Connection timeout', permanent }
    const item = {
      id,
      epoch,
      outcome,
      ...(outcome === 'failed' && { error }),
      ...(outcome === 'skipped' && { reason: 'branch_not_taken' }),
    }
    assert.deepEqual((await f.sync({ settled: [item] })).refused, [])
  }
const dispatched: Act = (f, { queue }) => claim(f, [queue], 1)
const liveIsOver: Act = async f => {
  await f.advance(3601)
  assert.equal((await expireTasks.run(f.engine.context)).expired, 1)
}
const cancelled: Act = (f, { id }) => f.engine.cancel(id, { mode: 'hard' })

/** The table of valid transitions, row by row. The last rows are additions of its text. */
const rows: [row: string, from: TaskState, act: Act, to: TaskState][] = [
  ['CREATED → ACTIVE when it is scheduled and dispatched', 'queued', dispatched, 'assigned'],
  ['CREATED → EXPIRED when its TTL is exceeded before scheduling', 'queued', liveIsOver, 'expired'],
  ['CREATED → CANCELLED by a user', 'queued', cancelled, 'cancelled'],
  ['ACTIVE → COMPLETED by a successful execution', 'running', reports('succeeded'), 'succeeded'],
  ['ACTIVE → SKIPPED when its branch condition is not met', 'running', reports('skipped'), 'skipped'],
  ['ACTIVE → RETRY when execution failed and retries remain', 'running', reports('failed'), 'retrying'],
  ['ACTIVE → FAILED when execution failed and no retries are left', 'running', reports('failed', true), 'failed'],
  ['RETRY → ACTIVE when the retry is scheduled and dispatched', 'retrying', dispatched, 'assigned'],
  ['RETRY → EXPIRED when its TTL is exceeded during the wait', 'retrying', liveIsOver, 'expired'],
  ['RETRY → CANCELLED by a user', 'retrying', cancelled, 'cancelled'],
  ['CANCELLED by a user from any non-terminal state: ACTIVE, dispatched', 'assigned', cancelled, 'cancelled'],
  ['CANCELLED by a user from any non-terminal state: ACTIVE, executing', 'running', cancelled, 'cancelled'],
  ['EXPIRED when not completed within expire_in_seconds: ACTIVE', 'running', liveIsOver, 'expired'],
]
for (const [row, from, act, to] of rows) {
  test(`marie 000: ${row}`, async t => {
    const f = await fresh(t)
    const task = await taskIn(f, from, work)
    await act(f, task)
    assert.equal((await f.engine.task(task.id)).state, to)
    assert.equal(movesIn(await f.engine.taskEvents(task.id)).at(-1), `${from} → ${to}`)
  })
}

for (const state of statesIn(taskLifecycle, 'final')) {
  test(`marie 000: ${state} is terminal: it is not dispatched, does not expire and cannot be cancelled`, async t => {
    const f = await fresh(t)
    const { id, queue } = await taskIn(f, state, work)
    const before = await f.engine.task(id)
    assert.equal((await claim(f, [queue])).length, 0)
    await f.advance(3601)
    assert.equal((await expireTasks.run(f.engine.context)).expired, 0)
    await assert.rejects(f.engine.cancel(id), { code: 'MOVE_REFUSED' })
    assert.deepEqual(await f.engine.task(id), before)
  })
}

test('marie 000: a cancelled job can be resumed, with fresh retries and a fresh TTL, and then completes', async t => {
  const f = await fresh(t)
  const { id, queue } = await taskIn(f, 'cancelled', work)
  await f.advance(3601)
  const { state, round } = await f.engine.resume(id)
  assert.deepEqual([state, round], ['queued', 2])
  assert.equal((await expireTasks.run(f.engine.context)).expired, 0)
  assert.equal(await workOff(f, queue), 1)
  assert.equal((await f.engine.task(id)).state, 'succeeded')
})

test('marie 000: retries wait 5, 10, 20 seconds, and after retry_limit 3 it is FAILED', async t => {
  const f = await fresh(t)
  const { id, queue } = await taskIn(f, 'queued', { retry: { ...retry, attempts: 4 }, deadLetter: 'never' })
  const waits: number[] = []
  for (let attempt = 1; attempt <= 4; attempt++) {
    const [held] = await claim(f, [queue], 1)
    await reports('failed')(f, { ...held!, queue })
    const { state, runAt, changedAt } = await f.engine.task(id)
    if (state !== 'retrying') break
    waits.push(Math.round((Date.parse(runAt) - Date.parse(changedAt)) / 1000))
    assert.equal((await claim(f, [queue])).length, 0)
    await f.advance(21)
  }
  assert.deepEqual(waits, [5, 10, 20])
  assert.deepEqual([(await f.engine.task(id)).state, (await f.engine.task(id)).failures], ['failed', 4])
})

test('marie 000: start_after: a job for later is not dispatched before its time', async t => {
  const f = await fresh(t)
  const { queue } = await taskIn(f, 'queued', { runInSeconds: 3600 })
  await f.advance(3500)
  assert.equal((await claim(f, [queue])).length, 0)
  await f.advance(101)
  assert.equal((await claim(f, [queue])).length, 1)
})

test('marie 000: an execution longer than run_ttl_seconds loses its lease, and the job is rescheduled', async t => {
  const f = await fresh(t)
  const { run } = rescue({ beginsBlind: false, now: () => 0 })
  const task = await taskIn(f, 'running', { ...work, timeoutSeconds: 1000 })
  await f.advance(1001)
  assert.equal((await run(f.engine.context)).rescued, 1)
  const { refused } = await f.sync({ settled: [{ id: task.id, epoch: task.epoch, outcome: 'succeeded' }] })
  assert.equal(refused[0]!.code, 'LEASE_LOST')
  await f.advance(6)
  assert.equal((await claim(f, [task.queue]))[0]!.id, task.id)
})

test('marie 000: a job is leased to one executor, the highest priority first', async t => {
  const f = await fresh(t)
  const low = await taskIn(f, 'queued', { queue: 'extract', priority: 1 })
  const high = await taskIn(f, 'queued', { queue: 'extract', priority: 2 })
  const order = [...(await claim(f, ['extract'], 1)), ...(await claim(f, ['extract'], 1))].map(({ id }) => id)
  assert.deepEqual(order, [high.id, low.id])
  assert.equal((await claim(f, ['extract'])).length, 0)
})

test('marie 000: priorities rise as an SLA nears: overdue hard, overdue soft, upcoming, none', async t => {
  const f = await fresh(t)
  const slas = [
    {},
    { softDeadlineSeconds: 7200, hardDeadlineSeconds: 9000 },
    { softDeadlineSeconds: 600, hardDeadlineSeconds: 7200 },
    { softDeadlineSeconds: 600, hardDeadlineSeconds: 1200 },
  ]
  const ids: string[] = []
  for (const sla of slas) ids.push((await taskIn(f, 'queued', { queue: 'extract', ...sla })).id)
  await f.advance(1800)
  await ageLanes().run(f.engine.context)
  const order: string[] = []
  for (const _ of slas) order.push((await claim(f, ['extract'], 1))[0]!.id)
  assert.deepEqual(order, ids.reverse())
})

test('marie 000: keep_until: the record of an ended job stays until then', async t => {
  const f = await fresh(t)
  const keepUntil = new Date(Date.now() + 7 * 86_400_000)
  const { id } = await taskIn(f, 'succeeded', { keepUntil, keepSeconds: 0 })
  await f.advance(6 * 86_400)
  await retention().run(f.engine.context)
  assert.equal((await f.engine.task(id)).state, 'succeeded')
  await f.advance(2 * 86_400)
  await retention().run(f.engine.context)
  await assert.rejects(f.engine.task(id), { code: 'TASK_NOT_FOUND' })
})

test('marie 000: jobs can be listed by state', async t => {
  const f = await fresh(t)
  const states: TaskState[] = ['queued', 'running', 'failed', 'cancelled']
  for (const state of states) {
    const { id } = await taskIn(f, state)
    const { items } = await f.engine.tasks({ state })
    assert.deepEqual(
      items.map(task => task.id),
      [id],
    )
  }
})

test('marie 000: in a DAG the branch not taken is SKIPPED without running, and the DAG is COMPLETED', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({
    name: 'dag',
    stages: [
      { name: 'classify', task: 'classify' },
      { name: 'invoice', task: 'invoice', needs: ['classify'], when: 'stages.classify.output == "invoice"' },
      { name: 'letter', task: 'letter', needs: ['classify'], when: 'stages.classify.output == "letter"' },
      { name: 'stamp', task: 'stamp', needs: ['letter'] },
      { name: 'store', task: 'store', needs: ['invoice', 'stamp'], join: 'any' },
    ],
  })
  await workOff(f, 'classify', { outcome: 'succeeded', output: 'invoice' })
  assert.deepEqual([await workOff(f, 'letter'), await workOff(f, 'stamp')], [0, 0])
  assert.deepEqual([await workOff(f, 'invoice'), await workOff(f, 'store')], [1, 1])
  const ended = 'classify succeeded, invoice succeeded, letter skipped, stamp skipped, store succeeded'
  assert.equal(await statesOf(f, id), `succeeded: ${ended}`)
  const { items } = await f.engine.tasks({ stageId: (await stageOf(f, id, 'letter')).id })
  assert.deepEqual(movesIn(await f.engine.taskEvents(items[0]!.id)), ['* → blocked', 'blocked → skipped'])
})

test('marie 000: a cancelled DAG can be resumed: what was done stays done, the rest runs', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'dag', stages: twoStages })
  await workOff(f, 'a')
  await f.engine.cancelJob(id)
  assert.equal(await workOff(f, 'b'), 0)
  await f.engine.resumeJob(id)
  assert.equal(await statesOf(f, id), 'pending: a succeeded, b pending')
  assert.deepEqual([await workOff(f, 'a'), await workOff(f, 'b')], [0, 1])
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded')
})

test('marie 000: a cancelled job of a DAG can be resumed, and its DAG goes on with it', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'dag', stages: twoStages })
  const { items } = await f.engine.tasks({ jobId: id, type: 'a' })
  await f.engine.cancel(items[0]!.id)
  assert.equal(await statesOf(f, id), 'failed: a failed, b cancelled')
  await f.engine.resume(items[0]!.id)
  assert.deepEqual([await workOff(f, 'a'), await workOff(f, 'b')], [1, 1])
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded')
})

test('marie 000: a DAG that is not completed in time is EXPIRED, once what is in hand has ended', async t => {
  const f = await fresh(t)
  const { id } = await f.engine.submit({ name: 'dag', deadlineSeconds: 3600, stages: twoStages })
  const held = await claim(f, ['a'])
  await f.advance(3601)
  await jobDeadlines.run(f.engine.context)
  assert.equal((await f.engine.job(id)).state, 'stopping')
  await say(f, held, 'cancelled')
  assert.equal(await statesOf(f, id), 'expired: a cancelled, b cancelled')
})

/** is_terminal, is_successful_terminal, was_executed, which is false only for SKIPPED and CANCELLED. */
const helpers: [state: TaskState, terminal: boolean, successful: boolean, executed?: boolean][] = [
  ['queued', false, false],
  ['retrying', false, false],
  ['running', false, false],
  ['succeeded', true, true, true],
  ['skipped', true, true, false],
  ['expired', true, false, true],
  ['cancelled', true, false, false],
  ['failed', true, false, true],
]
for (const [state, terminal, successful, executed] of helpers) {
  test(`marie 000: what can be asked of ${state}: is it terminal, successful, executed`, () => {
    assert.equal(isFinal(taskLifecycle, state), terminal)
    assert.equal(isGoodFinal(taskLifecycle, state), successful)
    if (executed !== undefined) assert.equal(wasExecuted(taskLifecycle, state), executed)
  })
}
