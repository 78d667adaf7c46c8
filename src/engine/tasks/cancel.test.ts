import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { openTransaction } from '../../../test/harness/open-transaction.ts'
import type { Sql } from '../../store/driver/sql.ts'

/** Cancels a job while another transaction holds a lock. Returns what was found meanwhile and how the job ended. */
async function cancelDuringTransaction<T>(
  run: Fresh,
  id: string,
  take: (tx: Sql) => Promise<unknown>,
  read: (tx: Sql) => Promise<T>,
) {
  const other = await openTransaction(run.sql)
  let cancelling: ReturnType<Fresh['engine']['cancelJob']>
  let found: T
  try {
    const [me] = await other.tx<{ pid: number }>`select pg_backend_pid() as pid`
    await take(other.tx)
    cancelling = run.engine.cancelJob(id, { mode: 'hard' })
    await eventually('the cancel waits', async () => {
      const rows = await run.sql`select from pg_stat_activity where ${me!.pid}::int = any(pg_blocking_pids(pid))`
      return rows.length > 0
    })
    found = await read(other.tx)
  } finally {
    await other.commit()
  }
  return { found, state: (await cancelling).state }
}

test(
  'who calls off a stage waits for the claim that has its lane before it locks tasks: neither waits for ever',
  needsServer(),
  async t => {
    const run = await fresh(t)
    const stages = ['a', 'b'].map(name => ({ name, task: name, needs: [], payloads: [1, 2, 3], parallelism: 2 }))
    const { id } = await run.engine.submit({ name: 'many', stages })
    const claim = (tx: Sql) => tx`select from pawl.lane where job_id = ${id}::uuid and queue = 'b' for update`
    const tasks = (tx: Sql) => tx`select id from pawl.task where job_id = ${id}::uuid for update skip locked`
    const { found, state } = await cancelDuringTransaction(run, id, claim, tasks)
    assert.deepEqual([found.length, state], [6, 'cancelled'])
  },
)
