import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { whileLocked } from '../../../test/harness/open-transaction.ts'
import { everyState, storyOf, taskIn } from '../../../test/harness/task-in.ts'
import { expireTasks } from '../../babysitter/chores.ts'
import { Problem } from '../../kernel/problem.ts'
import type { TaskState } from '../../kernel/task.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { Pawl } from '../engine.ts'

type Ask = (engine: Pawl, id: string) => Promise<TaskView>

/** Operator requests, and their result for each state in which they are allowed. */
const requests: [name: string, ask: Ask, granted: Partial<Record<TaskState, TaskState>>][] = [
  [
    'a soft cancel',
    (engine, id) => engine.cancel(id, { mode: 'soft' }),
    { blocked: 'cancelled', queued: 'cancelled', retrying: 'cancelled', assigned: 'assigned', running: 'running' },
  ],
  [
    'a hard cancel',
    (engine, id) => engine.cancel(id, { mode: 'hard' }),
    { blocked: 'cancelled', queued: 'cancelled', retrying: 'cancelled', assigned: 'cancelled', running: 'cancelled' },
  ],
  ['a resume', (engine, id) => engine.resume(id), { cancelled: 'queued' }],
  ['a retry', (engine, id) => engine.retry(id), { failed: 'queued', expired: 'queued' }],
  [
    'a dead-letter call',
    (engine, id) => engine.deadLetter(id, { reasonCode: 'policy_violation' }),
    { queued: 'dead_lettered', retrying: 'dead_lettered', assigned: 'dead_lettered', running: 'dead_lettered' },
  ],
]

for (const [name, ask, granted] of requests) {
  test(`${name} is granted where the lifecycle has it, and refused with the moves there are`, async t => {
    const run = await fresh(t)
    for (const state of everyState) {
      const { id } = await taskIn(run, state)
      const to = granted[state]
      if (to !== undefined) {
        const view = await ask(run.engine, id)
        assert.equal(view.state, to, state)
        assert.deepEqual(await run.engine.task(id), view)
        continue
      }
      const before = await run.engine.task(id)
      const error: unknown = await ask(run.engine, id).catch(thrown => thrown)
      assert.ok(error instanceof Problem, `${state} was taken`)
      assert.deepEqual([error.code, error.status, error.details.state], ['MOVE_REFUSED', 409, state])
      assert.deepEqual(error.details.possible, movesFor(state), state)
      assert.deepEqual(await run.engine.task(id), before)
    }
  })
}

test('after a hard cancel the worker is fenced off', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const view = await run.engine.cancel(id, { mode: 'hard', reason: 'wrong order', actor: 'user:ada' })
  assert.deepEqual([view.state, view.leaseUntil], ['cancelled', null])
  const { refused } = await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', output: 1 }] })
  assert.equal(refused[0]!.code, 'LEASE_LOST')
  const last = (await run.engine.taskEvents(id)).items.at(-1)!
  assert.deepEqual([last.actor, last.payload], ['user:ada', { mode: 'hard', reason: 'wrong order' }])
})

test('a soft cancel is an event, is asked for once, and can be made hard', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running')
  await run.engine.cancel(id)
  const twice = await run.engine.cancel(id)
  assert.equal(twice.state, 'running')
  assert.ok(twice.cancelRequestedAt !== null)
  await run.engine.cancel(id, { mode: 'hard' })
  assert.deepEqual((await storyOf(run, id)).slice(3), [
    'cancel_requested by operator: cancel',
    'cancelled by operator: cancel',
  ])
})

test('a cancelled task is never claimed', async t => {
  const run = await fresh(t)
  const { id, queue } = await taskIn(run, 'queued')
  await run.engine.cancel(id)
  assert.deepEqual((await run.sync({ queues: [queue], claim: 1 })).claimed, [])
  assert.equal((await run.engine.queues()).items[0]!.due, 0)
})

test('a new round has fresh budgets, a fresh time to live, and no trace of the old trouble', async t => {
  const run = await fresh(t)
  const options = { expireInSeconds: 100, retry: { attempts: 2, delaySeconds: 0 } }
  const { id, queue } = await taskIn(run, 'queued', options)
  const failing = async (epoch: number) => {
    const { claimed } = await run.sync({ queues: [queue], claim: 1 })
    assert.deepEqual([claimed[0]?.epoch, claimed[0]?.careful], [epoch, false])
    await run.sync({ settled: [{ id, epoch, outcome: 'failed', error: { message: 'no' } }] })
    return run.engine.task(id)
  }
  await failing(1)
  const letter = await failing(2)
  assert.deepEqual([letter.state, letter.round, letter.failures], ['dead_lettered', 1, 2])
  await run.advance(90)
  await run.engine.redrive({ ids: [id] })
  const revived = await run.engine.task(id)
  assert.deepEqual([revived.state, revived.round, revived.failures, revived.epoch], ['queued', 2, 0, 2])
  assert.deepEqual([revived.error, revived.deadLetter, revived.endedAt], [null, null, null])
  const lives = (Date.parse(revived.expireAt!) - Date.parse(revived.changedAt)) / 1000
  assert.equal(Math.round(lives), 100)
  await run.advance(50)
  assert.equal((await expireTasks.run(run.engine.context)).expired, 0)
  assert.equal((await failing(3)).state, 'retrying')
  assert.equal((await failing(4)).state, 'dead_lettered')
})

test('a task that comes back stands for its dedupeKey again, unless another does by now', async t => {
  const run = await fresh(t)
  const { engine } = run
  const first = await taskIn(run, 'cancelled', { dedupeKey: 'k' })
  const second = await engine.enqueue('work', null, { queue: first.queue, dedupeKey: 'k' })
  await assert.rejects(engine.resume(first.id), {
    code: 'DEDUPE_CONFLICT',
    details: { id: first.id, dedupeKey: 'k', heldBy: second.id },
  })
  assert.equal((await engine.task(first.id)).state, 'cancelled')
  await engine.cancel(second.id)
  await engine.resume(first.id)
  const third = await engine.enqueue('work', null, { queue: first.queue, dedupeKey: 'k' })
  assert.deepEqual([third.id, third.deduplicated], [first.id, true])
  await assert.rejects(engine.resume(second.id), { code: 'DEDUPE_CONFLICT' })
})

/** Written out, so that a change of the lifecycle shows up here. */
function movesFor(state: TaskState): string[] {
  const open = ['passOver', 'cancel', 'deadLetter']
  const possible: Record<TaskState, string[]> = {
    blocked: ['passOver', 'cancel'],
    queued: open,
    retrying: open,
    assigned: ['cancel', 'deadLetter'],
    running: ['cancel', 'deadLetter'],
    succeeded: [],
    skipped: [],
    cancelled: ['resume'],
    failed: ['retry'],
    expired: ['retry'],
    dead_lettered: ['redrive'],
  }
  return possible[state]
}

test('what succeeded is for ever', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'succeeded')
  const { engine } = run
  const calls = [
    () => engine.cancel(id, { mode: 'hard' }),
    () => engine.resume(id),
    () => engine.retry(id),
    () => engine.deadLetter(id, { reasonCode: 'timeout' }),
  ]
  for (const call of calls) await assert.rejects(call, { code: 'MOVE_REFUSED' })
  assert.equal((await engine.redrive({ ids: [id] })).refused[0]!.code, 'MOVE_REFUSED')
  assert.equal((await engine.task(id)).state, 'succeeded')
})

test('an operator who sets a task aside says why, and it is kept', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running', { correlationId: 'c-1' })
  const reasons = { reasonCode: 'dependency_unavailable', step: 'fetch', reason: 'the shop is shut' } as const
  const view = await run.engine.deadLetter(id, { ...reasons, actor: 'user:ada' })
  const { lastLeaseExpiresAt, ...letter } = view.deadLetter!
  assert.deepEqual(letter, {
    reasonCode: 'dependency_unavailable',
    step: 'fetch',
    lastError: { message: 'the shop is shut', step: 'fetch' },
    attempts: 1,
    lastOwner: 'w',
    correlationId: 'c-1',
  })
  assert.ok(Date.parse(lastLeaseExpiresAt!) > Date.parse(view.createdAt))
  assert.equal((await storyOf(run, id)).at(-1), 'dead_lettered by user:ada: operator')
})

test('of an operator and a worker who end a task at once, one wins and the other is told', async t => {
  const run = await fresh(t)
  for (let round = 0; round < 10; round++) {
    const { id, epoch } = await taskIn(run, 'running')
    const [cancelled, settled] = await Promise.all([
      run.engine.cancel(id, { mode: 'hard' }).then(
        () => true,
        (error: Problem) => error.code !== 'MOVE_REFUSED',
      ),
      run.sync({ settled: [{ id, epoch, outcome: 'succeeded' }] }).then(({ refused }) => refused.length === 0),
    ])
    assert.equal((await run.engine.task(id)).state, cancelled ? 'cancelled' : 'succeeded')
    assert.equal(settled, !cancelled)
  }
})

test(
  'a task that was called off while a claim had its place, and came back, is claimed by its own place',
  needsServer(),
  async t => {
    const { engine, sql, sync, advance } = await fresh(t)
    const [first] = await engine.enqueueMany([{ type: 'a' }, { type: 'a' }])
    const { id } = first!
    // A queue row that a claim has locked is left to that claim. This one releases it without claiming.
    await whileLocked(
      sql,
      tx => tx`select from pawl.due for update`,
      () => engine.cancel(id),
    )
    await advance(1)
    await engine.resume(id)
    await advance(1)
    const { claimed } = await sync({ queues: ['a'], claim: 2 })
    assert.deepEqual(await engine.brokenRules(), [], `${claimed.length} claimed`)
  },
)
