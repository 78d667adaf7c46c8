import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { openTransaction } from '../../../test/harness/open-transaction.ts'
import { cancel } from '../../kernel/decide.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { decideTasks } from '../../store/tasks/task-updates.ts'

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

/** Cancels these tasks in one statement. */
const cancelAll = (sql: Sql, ids: readonly string[]) =>
  sql.begin(tx => decideTasks(tx, ids, 'operator', task => cancel(task, 'hard')))

test('of two cancels at one place in the queue, neither puts back what the other removed', needsServer(), async t => {
  const { engine, sql, schema } = await fresh(t, { rules: 'broken on purpose' })
  // Two rows of the queue with 50 tasks each. Whoever writes the first one waits for the lock.
  const ids = (await engine.enqueueMany(new Array(100).fill({ type: 'a' }))).map(({ id }) => id)
  await sql.script(`
    create function pawl.hold() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(hashtext(tg_table_schema)); return new; end';
    create trigger hold before update on pawl.due for each row when (old.id = '${ids[0]}')
      execute function pawl.hold()`)
  const lock = await openTransaction(sql)
  const [me] = await lock.tx<{ pid: number }>`select pg_backend_pid() as pid`
  await lock.tx`select pg_advisory_xact_lock(hashtext(${schema}))`
  const both = cancelAll(sql, [ids[0]!, ids[50]!])
  await eventually('the cancel waits', async () => {
    const rows = await sql`select from pg_stat_activity where ${me!.pid}::int = any(pg_blocking_pids(pid))`
    return rows.length > 0
  })
  await engine.cancel(ids[51]!)
  await lock.commit()
  await both
  const waiting = await sql<{ id: string }>`select unnest(ids) as id from pawl.due`
  assert.ok(!waiting.some(({ id }) => id === ids[51]))
  assert.deepEqual(await engine.brokenRules(), [])
})

test('a batch of a large stage is cancelled without reading the places of all later ones', needsServer(), async t => {
  const { engine, sql, schema } = await fresh(t, { connections: 1 })
  const payloads = Array.from({ length: 2000 }, (_, n) => n)
  const job = await engine.submit({ name: 'large', stages: [{ name: 'only', task: 'a', payloads }] })
  const tasks = await sql<{ id: string }>`select id from pawl.task where job_id = ${job.id}::uuid order by id`
  const rowsRead = async () => {
    await sql`select pg_stat_force_next_flush()`
    const [row] = await sql<{ rows: number }>`
      select (seq_tup_read + idx_tup_fetch)::float8 as rows
        from pg_stat_user_tables where schemaname = ${schema} and relname = 'due'`
    return row!.rows
  }
  const earlier = await rowsRead()
  const ids = tasks.map(({ id }) => id)
  for (let done = 0; done < ids.length; done += 100) await cancelAll(sql, ids.slice(done, done + 100))
  const read = (await rowsRead()) - earlier
  // There are 40, each with 50 tasks.
  assert.ok(read < 100, `it read ${read} rows`)
  await engine.cancelJob(job.id)
})
