/** Dead letters have their own retention: by default they are kept until an operator acts on them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../test/harness/fresh.ts'
import { workOff } from '../../test/harness/jobs.ts'
import { taskIn } from '../../test/harness/task-in.ts'
import { findJobsPastRetention, startOfJobScan } from '../store/jobs/job-chores.ts'
import { retention } from './chores.ts'
import { jobRetention } from './job-chores.ts'

const day = 86_400
const odd = { outcome: 'dead_lettered', error: { message: 'odd', reasonCode: 'parse_error' } } as const

/** Runs the babysitter and returns the tasks that still exist. */
async function kept<Name extends string>({ engine }: Fresh, tasks: Record<Name, { readonly id: string }>) {
  await retention().run(engine.context)
  const { items } = await engine.tasks()
  return (Object.keys(tasks) as Name[]).filter(name => items.some(({ id }) => id === tasks[name].id))
}

test('a dead letter stays when tasks that ended otherwise go, whatever was said about keeping those', async t => {
  const run = await fresh(t)
  const soon = new Date((await run.engine.internals.clock()) + 1000)
  const tasks = {
    failed: await taskIn(run, 'failed'),
    letter: await taskIn(run, 'dead_lettered'),
    brief: await taskIn(run, 'dead_lettered', { keepSeconds: 1 }),
    dated: await taskIn(run, 'dead_lettered', { keepUntil: soon }),
  }
  await run.advance(400 * day)
  assert.deepEqual(await kept(run, tasks), ['letter', 'brief', 'dated'])
  assert.equal((await run.engine.deadLetters()).items.length, 3)
})

test('a dead letter goes after its own retention, said by the task or its type, and not before its date', async t => {
  const run = await fresh(t)
  await run.engine.putTaskType('typed', { keepDeadLetterSeconds: 10 * day })
  const inAYear = new Date((await run.engine.internals.clock()) + 365 * day * 1000)
  const tasks = {
    own: await taskIn(run, 'dead_lettered', { keepDeadLetterSeconds: 5 * day }),
    typed: await taskIn(run, 'dead_lettered', { type: 'typed' }),
    forEver: await taskIn(run, 'dead_lettered', { type: 'typed', keepDeadLetterSeconds: null }),
    dated: await taskIn(run, 'dead_lettered', { type: 'typed', keepUntil: inAYear }),
  }
  await run.advance(4 * day)
  assert.deepEqual(await kept(run, tasks), ['own', 'typed', 'forEver', 'dated'])
  await run.advance(2 * day)
  assert.deepEqual(await kept(run, tasks), ['typed', 'forEver', 'dated'])
  await run.advance(5 * day)
  assert.deepEqual(await kept(run, tasks), ['forEver', 'dated'])
  await run.advance(400 * day)
  assert.deepEqual(await kept(run, tasks), ['forEver'])
})

test('a dead letter that somebody has acted on is kept as any other task', async t => {
  const run = await fresh(t)
  const letter = await taskIn(run, 'dead_lettered')
  await run.engine.redrive({ ids: [letter.id] })
  await workOff(run, letter.queue)
  await run.advance(15 * day)
  assert.deepEqual(await kept(run, { letter }), [])
})

test('a job that has dead letters stays as long as they do', async t => {
  const run = await fresh(t)
  const { engine } = run
  const stages = [{ name: 'a', task: 'a', onFailure: 'continue' as const }]
  const jobs = {
    lost: (await engine.submit({ name: 'lost', stages })).id,
    brief: (await engine.submit({ name: 'brief', stages: [{ ...stages[0]!, keepDeadLetterSeconds: 20 * day }] })).id,
    redriven: (await engine.submit({ name: 'redriven', stages })).id,
  }
  await workOff(run, 'a', odd)
  const plain = (await engine.submit({ name: 'plain', stages })).id
  await workOff(run, 'a', 'failed')
  const left = async () => {
    await jobRetention.run(engine.context)
    return (await engine.jobs()).items.map(({ name }) => name).sort()
  }
  await run.advance(15 * day)
  assert.deepEqual(await left(), ['brief', 'lost', 'redriven'], `${plain} is gone`)
  await engine.retryJob(jobs.redriven)
  await workOff(run, 'a')
  await run.advance(6 * day)
  assert.deepEqual(await left(), ['lost', 'redriven'])
  await run.advance(15 * day)
  assert.deepEqual(await left(), ['lost'])
  await engine.deleteJob(jobs.lost)
  assert.deepEqual(await left(), [])
})

test('jobs that stay for their dead letters do not keep later ones from going', async t => {
  const run = await fresh(t)
  const { engine } = run
  const stages = [{ name: 'a', task: 'a', onFailure: 'continue' as const }]
  for (let n = 0; n < 5; n++) await engine.submit({ name: `kept ${n}`, stages })
  await workOff(run, 'a', odd)
  const { id } = await engine.submit({ name: 'plain', stages })
  await workOff(run, 'a')
  await run.advance(15 * day)
  let scan = startOfJobScan
  const found: string[] = []
  for (let turn = 0; turn < 3; turn++) {
    const seen = await findJobsPastRetention(run.sql, 14 * day, 10, [], scan, 2)
    found.push(...seen.ids)
    scan = seen.scan
  }
  assert.deepEqual(found, [id])
  assert.deepEqual(
    (await findJobsPastRetention(run.sql, 14 * day, 10, [], scan, 2)).scan,
    startOfJobScan,
    'then it begins again',
  )
})
