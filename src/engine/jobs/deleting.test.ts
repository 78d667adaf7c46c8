/** A job is deleted in batches, and while others settle, cancel and bring back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { claim } from '../../../test/harness/jobs.ts'
import { openTransaction } from '../../../test/harness/open-transaction.ts'
import { driveOn } from '../../babysitter/job-chores.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { removeBatchOfJob } from '../../store/jobs/job-ends.ts'

const payloads = Array.from({ length: 30 }, (_, n) => n)
const one = { name: 'one', stages: [{ name: 'a', task: 'a' }] }

async function rowsLeft({ sql }: Fresh): Promise<number> {
  const [row] = await sql<{ n: number }>`
    select (select count(*) from pawl.task) + (select count(*) from pawl.job) + (select count(*) from pawl.stage)
         + (select count(*) from pawl.lane where job_id is not null) + (select count(*) from pawl.errand)
         + (select count(*) from pawl.due) + (select count(*) from pawl.tally) as n`
  return row!.n
}

const waitersAt = ({ sql, schema }: Fresh, count: number) =>
  eventually(`${count} wait for the job`, async () => {
    const [row] = await sql<{ n: number }>`
      select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%"${schema}".job%`}`
    return row!.n >= count
  })

test('a job that is being deleted is not seen and not brought back, and is deleted also if the deleter dies', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await engine.submit({ name: 'many', stages: [{ name: 'a', task: 'a', payloads }] })
  await engine.cancelJob(id, { mode: 'hard' })
  const { items } = await engine.tasks({ jobId: id })
  assert.equal(await run.sql.begin(tx => removeBatchOfJob(tx, id, 10)), 'some')

  const gone = { code: 'JOB_NOT_FOUND' }
  await assert.rejects(engine.job(id), gone)
  await assert.rejects(engine.retryJob(id), gone)
  await assert.rejects(engine.retryJob(id, { clone: true }), gone)
  const left = (await engine.tasks({ ids: items.map(task => task.id) })).items
  assert.equal(left.length, 20)
  await assert.rejects(engine.retry(left[0]!.id), gone)

  await run.advance(10)
  await driveOn().run(engine.context)
  assert.equal(await rowsLeft(run), 0)
})

test('a job that was brought back since it was looked at is not deleted, and none of it is', async t => {
  const run = await fresh(t)
  const { id } = await run.engine.submit({ name: 'many', stages: [{ name: 'a', task: 'a', payloads }] })
  assert.equal(await run.sql.begin(tx => removeBatchOfJob(tx, id, 10)), 'not ended')
  await assert.rejects(run.engine.deleteJob(id), { code: 'MOVE_REFUSED' })
  assert.equal((await run.engine.tasks({ jobId: id })).items.length, 30)
})

test('what a claim put back into the queue of a stage that had ended goes with the job', async t => {
  const run = await fresh(t)
  const { id } = await run.engine.submit({ name: 'many', stages: [{ name: 'a', task: 'a', payloads }] })
  await run.engine.cancelJob(id, { mode: 'hard' })
  await run.sql`
    insert into pawl.due (lane_id, run_at, id, ids, type)
    select lane_id, run_at, id, array[id], type from pawl.task limit 1`
  await run.engine.deleteJob(id)
  assert.equal(await rowsLeft(run), 0)
})

/** Others wait for the job; what `act` gives is awaited after it is let go. */
async function whileHeld<T>(run: Fresh, id: string, act: (tx: Sql) => Promise<() => Promise<T>>): Promise<T> {
  const other = await openTransaction(run.sql)
  let rest: () => Promise<T>
  try {
    await other.tx`select from pawl.job where id = ${id}::uuid for update`
    rest = await act(other.tx)
  } finally {
    await other.commit()
  }
  return rest()
}

test('a settle whose job is deleted at that moment is answered: it was written down', needsServer(), async t => {
  const run = await fresh(t)
  const { id } = await run.engine.submit(one)
  const [task] = await claim(run, ['a'])
  const { refused } = await whileHeld(run, id, async tx => {
    const settling = run.sync({ settled: [{ id: task!.id, epoch: task!.epoch, outcome: 'succeeded' }] })
    await waitersAt(run, 1)
    // As a removal would leave it, without the steps in between.
    await tx.script('set local session_replication_role = replica')
    for (const table of ['task', 'stage', 'lane']) {
      await tx.script(`delete from pawl.${table} where job_id = '${id}'`)
    }
    await tx.script(`delete from pawl.job where id = '${id}'; delete from pawl.claim`)
    return () => settling
  })
  assert.deepEqual(refused, [])
  await run.advance(10)
  await driveOn().run(run.engine.context)
  assert.equal(await rowsLeft(run), 0, 'nor are its counts left to be added up')
})

test('a job that ends by itself while it is deleted is deleted', needsServer(), async t => {
  const run = await fresh(t)
  const { id } = await run.engine.submit(one)
  const [task] = await claim(run, ['a'])
  await run.engine.cancelJob(id, { mode: 'soft' })
  await whileHeld(run, id, async () => {
    const settling = run.sync({ settled: [{ id: task!.id, epoch: task!.epoch, outcome: 'cancelled' }] })
    await waitersAt(run, 1)
    const deleting = run.engine.deleteJob(id)
    await waitersAt(run, 2)
    return () => Promise.all([settling, deleting])
  })
  assert.equal(await rowsLeft(run), 0)
})
