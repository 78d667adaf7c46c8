import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { lockTask, openTransaction, waitingForNobody, whileLocked } from '../../../test/harness/open-transaction.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import type { HeldTask } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { reportBeats } from './merge-reports.ts'

const leaseOf = ({ id, epoch }: HeldTask) => ({ id, epoch })
const leaseAndCheckpoint = async ({ engine }: Fresh, { id }: HeldTask) => {
  const { leaseUntil, checkpoint } = await engine.task(id)
  return { leaseUntil, checkpoint }
}

/** Sends heartbeats for a task, and runs `meanwhile` between the first attempt and the retry. */
async function beatWithChange(
  { engine, sql }: Fresh,
  task: HeldTask,
  meanwhile: () => Promise<void>,
): Promise<string[]> {
  let reads = 0
  const observed = async (...asked: Parameters<Sql>) => {
    const rows = await sql(...asked)
    reads += 1
    if (reads === 1) await meanwhile()
    return rows
  }
  const context = { ...engine.context, sql: Object.assign(observed, sql) as Sql }
  const beats = [{ ...leaseOf(task), checkpoint: { page: 2 } }]
  const refused = await waitingForNobody(() => reportBeats(context, beats))
  return refused.map(({ refusal }) => refusal.code)
}

test(
  'a beat that finds its task locked waits for nobody, and is refused: it has renewed and kept nothing',
  needsServer(),
  async t => {
    const run = await fresh(t)
    const [locked, free] = [await taskIn(run, 'running'), await taskIn(run, 'running')]
    const before = await leaseAndCheckpoint(run, locked)
    await run.advance(5)
    const beats = [
      leaseOf(locked),
      { ...leaseOf(locked), checkpoint: { page: 1 } },
      { ...leaseOf(free), checkpoint: {} },
    ]
    const { refused } = await whileLocked(run.sql, lockTask(locked.id), () => run.sync({ beats }))
    assert.deepEqual(
      refused.map(({ id, code }) => [id, code]),
      [[locked.id, 'TASK_BUSY']],
    )
    assert.deepEqual(await leaseAndCheckpoint(run, locked), before)
    assert.deepEqual((await run.engine.task(free.id)).checkpoint, {})
  },
)

test(
  'a beat that finds its task locked is tried again, and renews the lease once the task is let go',
  needsServer(),
  async t => {
    const run = await fresh(t)
    const task = await taskIn(run, 'running')
    const before = await leaseAndCheckpoint(run, task)
    await run.advance(5)
    const other = await openTransaction(run.sql)
    try {
      await lockTask(task.id)(other.tx)
      assert.deepEqual(await beatWithChange(run, task, other.commit), [])
    } finally {
      await other.commit()
    }
    const { leaseUntil, checkpoint } = await leaseAndCheckpoint(run, task)
    assert.notEqual(leaseUntil, before.leaseUntil)
    assert.deepEqual(checkpoint, { page: 2 })
  },
)

test('a beat that finds its task locked by whoever ends it hears that the lease is lost', needsServer(), async t => {
  const run = await fresh(t)
  const task = await taskIn(run, 'running')
  const other = await openTransaction(run.sql)
  try {
    await run.engine.cancel(task.id, { tx: other.tx, mode: 'hard' })
    assert.deepEqual(await beatWithChange(run, task, other.commit), ['LEASE_LOST'])
  } finally {
    await other.commit()
  }
  assert.equal((await run.engine.task(task.id)).checkpoint, null)
})
