/** Large jobs with ids chosen by their submitters. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openEngine } from '../../src/engine/engine.ts'
import type { JobSpec } from '../../src/spec/job-spec.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'
import { openTransaction } from '../harness/open-transaction.ts'

const bounded = { timeout: 600_000 }
const id = '0198c0de-0000-4000-8000-00000000000a'
const payloads = Array.from({ length: 5500 }, (_, n) => n)

test('while a large job is being written, whoever submits its id to add to it waits, and adds to it', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const f = await fresh(t)
  const other = await openEngine({ database: f.url!, schema: f.schema })
  t.after(() => other.close())
  const part = (name: string, more: object): JobSpec => ({
    id,
    ifThere: 'add',
    open: true,
    name: 'j',
    stages: [{ name, task: name, needs: [], ...more }],
  })
  // Everything that writes tasks waits until the lock is released.
  await f.sql.script(`
    create function pawl.hold() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(hashtext(tg_table_schema)); return null; end';
    create trigger hold before insert on pawl.task for each statement execute function pawl.hold()`)
  const lock = await openTransaction(f.sql)
  await lock.tx`select pg_advisory_xact_lock(hashtext(${f.schema}))`
  const waiting = async () => {
    const rows = await f.sql<{ wait: string }>`
      select wait_event as wait from pg_stat_activity
       where wait_event_type = 'Lock' and query like ${`%"${f.schema}".%`}`
    return rows.length
  }
  const large = f.engine.submit(part('a', { payloads }))
  await eventually('its tasks are being written', async () => (await waiting()) === 1)
  const small = other.submit(part('b', {}))
  let isAnswered = false
  const answered = () => (isAnswered = true)
  small.then(answered, answered)
  await eventually('the other waits', async () => isAnswered || (await waiting()) === 2)
  await lock.commit()
  assert.deepEqual(
    (await large).stages.map(({ name }) => name),
    ['a'],
  )
  assert.deepEqual(
    (await small).stages.map(({ name }) => name),
    ['a', 'b'],
  )
  assert.equal((await f.engine.job(id)).progress.total, 5501)
})

const large: JobSpec['stages'] = [{ name: 'a', task: 'a', payloads }]
const chosen: Record<string, JobSpec> = {
  'the id of a large job': { id, name: 'j', stages: large },
  'the id of a task in a large job': { name: 'j', stages: [{ name: 'first', task: 'b', taskId: id }, ...large] },
}

for (const [what, spec] of Object.entries(chosen)) {
  test(`${what} whose submission was cut off is free, for nobody has seen it`, bounded, async t => {
    const f = await fresh(t)
    await f.sql.script(`
      create function pawl.fail() returns trigger language plpgsql as
        $$ begin raise exception 'no room' using errcode = 'disk_full'; end $$;
      create trigger fail before insert on pawl.task for each row
        when (new.payload::text = '5499') execute function pawl.fail()`)
    await assert.rejects(f.engine.submit(spec), /no room/)
    await f.sql.script('drop trigger fail on pawl.task')
    const job = await f.engine.submit(spec)
    assert.equal(job.state, 'pending')
    const [left] = await f.sql`select count(*)::int as jobs from pawl.job`
    assert.deepEqual(left, { jobs: 1 })
  })
}
