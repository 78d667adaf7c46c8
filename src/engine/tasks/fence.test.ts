import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { storyOf, taskIn } from '../../../test/harness/task-in.ts'
import { expireTasks } from '../../babysitter/chores.ts'
import { rescue } from '../../babysitter/rescue.ts'
import type { SettledTask, SyncRequest } from '../../protocol/tasks/sync.ts'

const outcomes = ['succeeded', 'failed', 'skipped', 'cancelled', 'released', 'dead_lettered'] as const

/** A task whose worker was considered dead and which another worker has claimed since: held under epoch 2. */
async function taskTakenOver(run: Fresh, state: 'assigned' | 'running') {
  const { id, queue } = await taskIn(run, state)
  await run.advance(21)
  await rescue({ beginsBlind: false }).run(run.engine.context)
  const { claimed } = await run.sync({ worker: 'second', queues: [queue], claim: 1 })
  assert.deepEqual([claimed[0]!.id, claimed[0]!.epoch], [id, 2])
  return { id, queue, old: { id, epoch: 1 }, held: { id, epoch: 2 } }
}

async function wholeTask(run: Fresh, id: string) {
  const [row] = await run.sql`select t::text as row from pawl.task t where id = ${id}::uuid`
  const [pulses] = await run.sql`select count(*) as n from pawl.pulse where entity_id = ${id}::uuid`
  return { ...row, ...pulses }
}

for (const state of ['assigned', 'running'] as const) {
  test(`a worker that lost its lease while ${state} changes nothing, whatever it says`, async t => {
    const run = await fresh(t)
    const { id, old, held } = await taskTakenOver(run, state)
    const before = await wholeTask(run, id)
    const zombie: Partial<SyncRequest>[] = [
      { started: [old] },
      { beats: [old] },
      { beats: [{ ...old, progress: 99, checkpoint: 'wrong' }] },
      { started: [old], beats: [{ ...old, progress: 99 }] },
      ...outcomes.map(outcome => ({ settled: [{ ...old, outcome, output: 'wrong', error: { message: 'late' } }] })),
      { settled: [{ ...old, outcome: 'succeeded', output: 'wrong', partial: true }] },
    ]
    for (const report of zombie) {
      const { refused } = await run.sync({ worker: 'w', ...report })
      assert.deepEqual(
        refused.map(({ id: of, epoch, code }) => [of, epoch, code]),
        [[id, 1, 'LEASE_LOST']],
        JSON.stringify(report),
      )
      assert.match(refused[0]!.message, /Stop working on it/)
      assert.deepEqual(await wholeTask(run, id), before)
    }
    await run.sync({ worker: 'second', settled: [{ ...held, outcome: 'succeeded', output: 'right' }] })
    assert.equal((await run.engine.task(id)).output, 'right')
  })
}

test('a worker that lost its lease is refused also while nobody holds the task', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running')
  await run.advance(21)
  await rescue({ beginsBlind: false }).run(run.engine.context)
  const old = { id, epoch: 1 }
  for (const report of [
    { beats: [old] },
    { started: [old] },
    { settled: [{ ...old, outcome: 'succeeded' as const }] },
  ]) {
    const { refused } = await run.sync(report)
    assert.deepEqual(
      refused.map(({ code }) => code),
      ['LEASE_LOST'],
    )
  }
  assert.equal((await run.engine.task(id)).state, 'retrying')
})

test('nobody can speak for an epoch that has not come yet', async t => {
  const run = await fresh(t)
  const { id } = await taskIn(run, 'running')
  const next = { id, epoch: 2 }
  const { refused } = await run.sync({ beats: [next], settled: [] })
  const settled = await run.sync({ settled: [{ ...next, outcome: 'succeeded' }] })
  assert.deepEqual(
    [...refused, ...settled.refused].map(({ code }) => code),
    ['LEASE_LOST', 'LEASE_LOST'],
  )
  assert.equal((await run.engine.task(id)).state, 'running')
})

test('a worker that holds a task again, and speaks of both leases at once, is heard for the right one', async t => {
  const run = await fresh(t)
  const { id, old, held } = await taskTakenOver(run, 'running')
  const codes = async (report: Partial<SyncRequest>) =>
    (await run.sync(report)).refused.map(({ epoch, code }) => [epoch, code])
  const lost = [[1, 'LEASE_LOST']]
  assert.deepEqual(await codes({ started: [old, held] }), lost)
  assert.deepEqual(await codes({ beats: [old, { ...held, progress: 2 }] }), lost)
  assert.deepEqual(await codes({ beats: [{ ...held, progress: 3 }, old] }), lost)
  assert.equal((await run.engine.task(id)).progress, 3)
  const wrong = { ...old, outcome: 'succeeded', output: 'wrong' } as const
  assert.deepEqual(await codes({ settled: [wrong], beats: [{ ...held, progress: 4 }] }), lost)
  assert.equal((await run.engine.task(id)).progress, 4)
  assert.deepEqual(await codes({ settled: [wrong, { ...held, outcome: 'succeeded', output: 'right' }] }), lost)
  assert.equal((await run.engine.task(id)).output, 'right')
})

test('a settle that is sent again is answered as the first was, whatever the task is now', async t => {
  const run = await fresh(t)
  for (const outcome of outcomes) {
    for (const state of ['assigned', 'running'] as const) {
      const { id, epoch, queue } = await taskIn(run, state)
      const report: SettledTask = { id, epoch, outcome, error: { message: 'no', retryInSeconds: 0 } }
      const same = async () => assert.deepEqual((await run.sync({ settled: [report] })).refused, [], outcome)
      await same()
      const { seq } = await run.engine.task(id)
      await same()
      assert.equal((await run.engine.task(id)).seq, seq)
      // The task is retried, claimed and settled by another worker. The old report still gets its old answer.
      if (outcome === 'cancelled') await run.engine.resume(id)
      if (outcome === 'dead_lettered') await run.engine.redrive({ ids: [id] })
      const { claimed } = await run.sync({ worker: 'second', queues: [queue], claim: 1 })
      const before = await wholeTask(run, id)
      await same()
      assert.deepEqual(await wholeTask(run, id), before)
      if (claimed.length === 0) continue
      await run.sync({ worker: 'second', settled: [{ id, epoch: 2, outcome: 'succeeded' }] })
      await same()
      assert.equal((await run.engine.task(id)).state, 'succeeded')
    }
  }
})

test('a settle that is sent again with another outcome is refused', async t => {
  const run = await fresh(t)
  for (const first of outcomes) {
    const { id, epoch } = await taskIn(run, 'running')
    await run.sync({ settled: [{ id, epoch, outcome: first }] })
    const before = await wholeTask(run, id)
    for (const outcome of outcomes.filter(other => other !== first)) {
      const { refused } = await run.sync({ settled: [{ id, epoch, outcome }] })
      assert.deepEqual(
        refused.map(({ code }) => code),
        ['LEASE_LOST'],
        `${first}, then ${outcome}`,
      )
    }
    assert.deepEqual(await wholeTask(run, id), before)
  }
})

test('a settle of an attempt that someone else has ended is refused, though the state is the same', async t => {
  const run = await fresh(t)
  const [cancelled, letter, expired] = [
    await taskIn(run, 'running'),
    await taskIn(run, 'running'),
    await taskIn(run, 'running', { expireInSeconds: 5 }),
  ]
  await run.engine.cancel(cancelled.id, { mode: 'hard' })
  await run.engine.deadLetter(letter.id, { reasonCode: 'policy_violation' })
  await run.advance(6)
  await expireTasks.run(run.engine.context)
  const settled: SettledTask[] = [
    { id: cancelled.id, epoch: 1, outcome: 'cancelled' },
    { id: letter.id, epoch: 1, outcome: 'dead_lettered' },
    { id: expired.id, epoch: 1, outcome: 'succeeded' },
  ]
  const { refused } = await run.sync({ settled })
  assert.deepEqual(
    refused.map(({ id, code }) => [id, code]),
    settled.map(({ id }) => [id, 'LEASE_LOST']),
  )
  assert.deepEqual((await storyOf(run, cancelled.id)).at(-1), 'cancelled by operator: cancel')
  assert.deepEqual((await storyOf(run, expired.id)).at(-1), 'expired by babysitter: time_to_live')
})

test('a settle that is named twice in one sync counts once', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  const report = { id, epoch, outcome: 'skipped' } as const
  const { refused } = await run.sync({ settled: [report, report, { ...report, outcome: 'cancelled' }] })
  assert.deepEqual(
    refused.map(({ code }) => code),
    ['LEASE_LOST'],
  )
  assert.equal((await storyOf(run, id)).length, 4)
})

test('an id in capitals is the same id', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'assigned')
  const shouted = { id: id.toUpperCase(), epoch }
  assert.deepEqual((await run.sync({ started: [shouted], beats: [shouted] })).refused, [])
  assert.deepEqual((await run.sync({ settled: [{ ...shouted, outcome: 'succeeded' }] })).refused, [])
  assert.equal((await run.engine.task(id.toUpperCase())).state, 'succeeded')
})
