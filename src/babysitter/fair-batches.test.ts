/** Items that cannot be processed hide nothing else from the babysitter. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { claim } from '../../test/harness/jobs.ts'
import { taskIn } from '../../test/harness/task-in.ts'
import { newId } from '../kernel/id.ts'
import { insertRedrive } from '../store/tasks/redrive.ts'
import { succeedTasks } from '../store/tasks/settle.ts'
import { continueRedrives } from './chores.ts'
import { continueJobs, jobDeadlines } from './job-chores.ts'

/** From now on rows in `bad` cannot be written, for a reason other than a failure of the store. */
async function spoil({ sql }: Fresh, table: 'job' | 'task', isBad: string): Promise<void> {
  await sql.script(`
    create function pawl.fail() returns trigger language plpgsql as
      $$ begin raise exception 'no room' using errcode = 'disk_full'; end $$;
    create trigger fail before update on pawl.${table} for each row when (${isBad}) execute function pawl.fail()`)
}

const jobOf = (name: string, tasks = 1) => ({
  name,
  deadlineSeconds: name === 'bad' ? 50 : 55,
  stages: [{ name: 'a', task: name, payloads: Array.from({ length: tasks }, (_, n) => n) }],
})

async function submitBad({ engine }: Fresh, jobs: number): Promise<void> {
  for (let n = 0; n < jobs; n++) await engine.submit(jobOf('bad'))
}

test('a job that can never be driven on, however often it was counted, keeps no other from it', async t => {
  const f = await fresh(t)
  await f.engine.submit(jobOf('bad', 250))
  const { id } = await f.engine.submit(jobOf('good'))
  await spoil(f, 'job', `new.name = 'bad'`)
  // Settled tasks whose processes died before the roll-up.
  for (const task of await claim(f, ['bad'], 250)) await succeedTasks(f.sql, [task])
  await succeedTasks(f.sql, await claim(f, ['good']))
  await f.advance(10)
  assert.deepEqual(await continueJobs().run(f.engine.context), { continued: 1, failed: 1, more: false })
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('many jobs that can never be driven on come first once, and then those behind them', async t => {
  const f = await fresh(t)
  await submitBad(f, 100)
  const { id } = await f.engine.submit(jobOf('good'))
  await spoil(f, 'job', `new.name = 'bad'`)
  await succeedTasks(f.sql, await claim(f, ['bad']))
  await f.advance(5)
  await succeedTasks(f.sql, await claim(f, ['good']))
  await f.advance(10)
  const chore = continueJobs()
  const results = [await chore.run(f.engine.context), await chore.run(f.engine.context)]
  assert.deepEqual(results, [
    { continued: 0, failed: 100, more: false },
    { continued: 1, failed: 0, more: false },
  ])
  assert.equal((await f.engine.job(id)).state, 'succeeded')
  await f.sql.script('drop trigger fail on pawl.job')
  assert.equal((await chore.run(f.engine.context)).continued, 100, 'they are tried again, too')
})

test('many jobs that cannot be ended at their deadline keep no other from it', async t => {
  const f = await fresh(t)
  await submitBad(f, 100)
  const { id } = await f.engine.submit(jobOf('good'))
  await spoil(f, 'job', `new.name = 'bad'`)
  await f.advance(60)
  for (let turn = 0; turn < 2; turn++) await jobDeadlines.run(f.engine.context)
  assert.equal((await f.engine.job(id)).state, 'expired')
})

test('redrives that always fail keep no other from being gone on with', async t => {
  const f = await fresh(t)
  const redrive = async (type: string) => {
    const { id: letter } = await taskIn(f, 'dead_lettered', { type })
    const id = newId()
    await insertRedrive(f.sql, { id, actor: 'a', reason: null, rate: null, payload: null, ids: [letter] })
    return id
  }
  for (let n = 0; n < 10; n++) await redrive('bad')
  await f.advance(1)
  const id = await redrive('good')
  await spoil(f, 'task', `new.type = 'bad'`)
  await f.advance(10)
  const chore = continueRedrives()
  const results = [await chore.run(f.engine.context), await chore.run(f.engine.context)]
  assert.deepEqual(results, [
    { redriven: 0, failed: 10 },
    { redriven: 1, failed: 0 },
  ])
  assert.equal((await f.engine.redriveProgress(id)).state, 'done')
})
