/** Rows locked by somebody else hold up no chore: they are skipped and found again later. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../test/harness/databases.ts'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { lockTask, whileLocked } from '../../test/harness/open-transaction.ts'
import { taskIn } from '../../test/harness/task-in.ts'
import type { Sql } from '../store/driver/sql.ts'
import type { Chore } from './chore.ts'
import { endGraces, expireTasks, retention } from './chores.ts'
import { rescue } from './rescue.ts'

interface Case {
  readonly chore: Chore
  /** The result field with the number of processed tasks. */
  readonly taken: string
  /** A task that the chore would process in one minute. */
  make(run: Fresh): Promise<{ readonly id: string }>
  lock(id: string): (tx: Sql) => Promise<unknown>
}

const lost = { taken: 'rescued', make: (run: Fresh) => taskIn(run, 'running') }
const overdue = {
  chore: expireTasks,
  taken: 'expired',
  make: (run: Fresh) => taskIn(run, 'queued', { expireInSeconds: 5 }),
}
const watchful = () => rescue({ beginsBlind: false, now: () => 0 })

const cases: Record<string, Case> = {
  'a lost task': { ...lost, chore: watchful(), lock: lockTask },
  'a claim that another babysitter looks at': {
    ...lost,
    chore: watchful(),
    lock: id => tx => tx`select from pawl.claim where ${id}::uuid = any(ids) for update`,
  },
  'a task past its time to live': { ...overdue, lock: lockTask },
  'a time to live that another babysitter looks at': {
    ...overdue,
    lock: id => tx => tx`select from pawl.expiry where task_id = ${id}::uuid for update`,
  },
  'a task whose grace is over': {
    chore: endGraces,
    taken: 'cancelled',
    lock: lockTask,
    async make(run) {
      const task = await taskIn(run, 'running')
      await run.engine.cancel(task.id)
      return task
    },
  },
  'a task that has been kept for long enough': {
    chore: retention(),
    taken: 'removed',
    lock: lockTask,
    make: run => taskIn(run, 'succeeded', { keepSeconds: 5 }),
  },
}

for (const [what, { chore, taken, make, lock }] of Object.entries(cases)) {
  test(
    `${what}, while somebody holds it locked, is passed over and not waited for; the others are not`,
    needsServer(),
    async t => {
      const run = await fresh(t)
      const [held, free] = [await make(run), await make(run)]
      await run.advance(60)
      const runChore = async () => (await chore.run(run.engine.context))[taken]
      assert.equal(await whileLocked(run.sql, lock(held.id), runChore), 1)
      const seqOf = async (id: string) => (await run.engine.tasks()).items.find(task => task.id === id)?.seq
      const before = await seqOf(held.id)
      assert.ok(before !== undefined, 'it is as it was')
      assert.notEqual(await seqOf(free.id), before)
      await run.advance(62)
      assert.equal(await runChore(), 1)
      assert.notEqual(await seqOf(held.id), before)
    },
  )
}
