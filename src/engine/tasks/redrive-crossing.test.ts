/** Redrives with an idempotency key, as over HTTP: accepted whole and once, redriven in batches. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { losing } from '../../../test/faults/losing-sql.ts'
import { needsServer } from '../../../test/harness/databases.ts'
import { eventually } from '../../../test/harness/eventually.ts'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { continueRedrives } from '../../babysitter/chores.ts'
import { pawl } from '../engine.ts'

/** The dead letter of a job that failed because of it. */
async function deadLetterOfJob({ engine, sync }: Fresh): Promise<{ readonly id: string; readonly jobId: string }> {
  const { id: jobId } = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const [task] = (await sync({ queues: ['a'], claim: 1 })).claimed
  const { id, epoch } = task!
  await sync({ settled: [{ id, epoch, outcome: 'dead_lettered', error: { message: 'x', reasonCode: 'timeout' } }] })
  return { id, jobId }
}

/** Holds the task's lock until `work` is done. `work` begins when `start` waits for the lock. */
async function whileTaskLocked<T>(
  { sql, schema }: Fresh,
  id: string,
  start: () => Promise<T>,
  work: () => Promise<void>,
) {
  await sql.script(`
    create function pawl.hold_up() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock(hashtext(tg_table_schema)); return new; end';
    create trigger hold_up before update on pawl.task for each row when (old.id = '${id}')
      execute function pawl.hold_up()`)
  return sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(hashtext(${schema}))`
    const started = start()
    await eventually('somebody waits', async () => {
      const [row] = await sql<{ n: number }>`
        select count(*)::int as n from pg_locks
         where locktype = 'advisory' and not granted and objid = (hashtext(${schema})::bigint & 4294967295)`
      return row!.n > 0
    })
    await work()
    return { started }
  })
}

test(
  'a redrive under a key holds one job at a time, so that redrives that cross do not wait for each other',
  needsServer(),
  async t => {
    const run = await fresh(t)
    const { engine } = run
    const [one, two] = [await deadLetterOfJob(run), await deadLetterOfJob(run)]
    const ask = () => engine.redrive({ ids: [one.id, two.id] }, { idempotencyKey: 'k' })
    const { started } = await whileTaskLocked(run, two.id, ask, async () => {
      assert.equal((await engine.task(one.id)).state, 'queued', 'its batch has committed')
      assert.equal((await engine.pauseJob(one.jobId)).state, 'paused', 'nobody holds its job')
      const again = await ask()
      assert.deepEqual([again.state, again.total, again.redriven], ['running', 2, []])
      assert.equal((await engine.redriveProgress(again.id!)).redriven, 1, 'how far it has come can be read')
    })
    const first = await started
    assert.deepEqual([first.state, first.redriven], ['done', [one.id, two.id]])
    assert.deepEqual(await ask(), first, 'asked again, the answer is the first one')
    for (const { id } of [one, two]) assert.equal((await engine.task(id)).round, 2)
  },
)

test('a redrive that was taken under a key is done once, even if its taker dies at once', async t => {
  const run = await fresh(t)
  const ids = [(await taskIn(run, 'dead_lettered')).id, (await taskIn(run, 'dead_lettered')).id]
  // Begin, key, redrive, answer, commit: the next transaction is the first batch.
  const { sql } = losing(run.sql, { n: 6, of: 'statement' })
  const dying = await pawl({ migrate: false, schema: run.schema, store: { sql, close: async () => {} } })
  await assert.rejects(dying.redrive({ ids }, { idempotencyKey: 'k' }), { code: 'STORE_UNAVAILABLE' })
  const again = await run.engine.redrive({ ids }, { idempotencyKey: 'k' })
  assert.deepEqual([again.state, again.total, again.redriven], ['running', 2, []])
  await run.advance(4)
  await continueRedrives().run(run.engine.context)
  assert.deepEqual(await run.engine.redrive({ ids }, { idempotencyKey: 'k' }), again)
  const { state, redriven } = await run.engine.redriveProgress(again.id!)
  assert.deepEqual([state, redriven], ['done', 2])
  for (const id of ids) assert.equal((await run.engine.task(id)).round, 2)
})

test('a redrive under a key in a transaction of the caller is there with it or not at all', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await taskIn(run, 'dead_lettered')
  const ask = (andThen: () => void) =>
    engine.transaction(async tx => {
      const answer = await engine.redrive({ ids: [id] }, { tx, idempotencyKey: 'k' })
      andThen()
      return answer
    })
  const failing = () => {
    throw new Error('oops')
  }
  await assert.rejects(ask(failing), /oops/)
  assert.equal((await engine.task(id)).state, 'dead_lettered')
  const first = await ask(() => {})
  assert.deepEqual([first.state, first.redriven], ['done', [id]])
  assert.deepEqual(await engine.redrive({ ids: [id] }, { idempotencyKey: 'k' }), first)
})

test('a redrive that fails is logged with the letter it has come to, and its correlation', async t => {
  const lines: unknown[] = []
  const run = await fresh(t, { log: (word, facts) => lines.push([word, facts]) })
  const { id: taskId } = await taskIn(run, 'dead_lettered', { correlationId: 'order-7' })
  const { sql } = losing(run.sql, { n: 6, of: 'statement' })
  const dying = await pawl({ migrate: false, schema: run.schema, store: { sql, close: async () => {} } })
  await assert.rejects(dying.redrive({ ids: [taskId] }, { idempotencyKey: 'k' }), { code: 'STORE_UNAVAILABLE' })
  const { id } = await run.engine.redrive({ ids: [taskId] }, { idempotencyKey: 'k' })
  // An error that is not caused by the letter, so the redrive is retried later.
  await run.sql.script(`
    create function pawl.fail() returns trigger language plpgsql as
      $$ begin raise exception 'no room' using errcode = 'disk_full'; end $$;
    create trigger fail before update on pawl.task for each row execute function pawl.fail()`)
  await run.advance(4)
  assert.equal((await continueRedrives().run(run.engine.context)).failed, 1)
  const [[word, { error, ...facts }] = ['', {}]] = lines as [string, Record<string, unknown>][]
  assert.deepEqual([lines.length, word, facts], [1, 'redrive.failed', { id, taskId, correlationId: 'order-7' }])
  assert.match(String(error), /no disk space left.*no room/)
  await run.sql.script('drop trigger fail on pawl.task')
})
