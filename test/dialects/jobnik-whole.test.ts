/** Runs a whole job with a client written from Jobnik's document alone: a producer, and workers with concurrency. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { rescue } from '../../src/babysitter/rescue.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually, latch } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { startProgram } from '../harness/program.ts'
import {
  type Jobnik,
  type JobnikJob,
  type JobnikTask,
  type JobnikWorker,
  jobnikClient,
  startJobnikWorker,
} from './jobnik-client.ts'
import { jobnikServed } from './jobnik-in.ts'

const bounded = { timeout: 600_000 }
const types = ['fetch', 'resize', 'publish']
const concurrency = 3

/** A job of three stages with this number of tasks each. */
async function produce(jobnik: Jobnik, tasks: number): Promise<JobnikJob> {
  const job = await jobnik.createJob({ userMetadata: { owner: 'ada' } })
  for (const type of types) {
    const stage = await jobnik.createStage(job.id, type)
    const wanted = Array.from({ length: tasks }, (_, n) => ({ data: { type, n }, maxAttempts: 2 }))
    assert.equal((await jobnik.createTasks(stage.id, wanted)).length, tasks)
  }
  return job
}

test('a producer, a consumer and workers with concurrency do a whole job, stage by stage, failures and all', async t => {
  const { jobnik } = await jobnikServed(t)
  const job = await produce(jobnik, 6)
  const began: string[] = []
  const crowd = latch()
  let atOnce = 0
  let most = 0
  const handler = async ({ data, attempts }: JobnikTask) => {
    began.push(String(data.type))
    atOnce += 1
    most = Math.max(most, atOnce)
    if (most === concurrency) crowd.open()
    await crowd.opened
    atOnce -= 1
    // The first attempt of every third task fails.
    if (Number(data.n) % 3 === 0 && attempts === 0) throw new Error('not yet')
  }
  const workers = types.map(type => startJobnikWorker(jobnik, type, handler, { concurrency }))
  const done = await eventually('it is done', async () => {
    const now = await jobnik.job(job.id)
    return now.status === 'COMPLETED' && now
  })
  await Promise.all(workers.map(worker => worker.stop()))
  assert.deepEqual([done.percentage, done.userMetadata], [100, { owner: 'ada' }])
  assert.deepEqual(
    done.stages!.map(({ status, percentage, summary }) => [status, percentage, summary.completed, summary.total]),
    types.map(() => ['COMPLETED', 100, 6, 6]),
  )
  assert.deepEqual(
    began,
    types.flatMap(type => Array.from({ length: 8 }, () => type)),
    'no stage began before the one before it was done',
  )
  assert.equal(most, concurrency)
  const { body: tasks } = await jobnik.ask<JobnikTask[]>('GET', '/v1/tasks?stage_type=resize')
  assert.deepEqual(
    tasks.map(({ attempts }) => attempts),
    [1, 0, 0, 1, 0, 0],
  )
})

test('the server may be killed again and again in the middle: the same client ends the whole job', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const story = await fresh(t)
  const port = await freePort()
  let server = await serverOn(t, story, port)
  const jobnik = jobnikClient(`http://127.0.0.1:${port}/dialects/jobnik`, { patienceSeconds: 60 })
  const job = await produce(jobnik, 8)
  const ran = new Map<string, number>()
  const handler = async (task: JobnikTask) => {
    ran.set(task.id, (ran.get(task.id) ?? 0) + 1)
    await nextTurn()
  }
  const workers = types.map(type => startJobnikWorker(jobnik, type, handler, { concurrency }))
  // In the middle of each stage, with held tasks and reports in flight.
  for (const after of [3, 11, 19]) {
    await eventually(`${after} have begun`, async () => {
      if (ran.size >= after) return true
      await giveUpLost(story, workers)
      return false
    })
    server.signal('SIGKILL')
    await server.ended
    server = await serverOn(t, story, port)
  }
  const isDone = async () => (await jobnik.job(job.id)).status === 'COMPLETED'
  await eventually('it is done', async () => (await isDone()) || void (await giveUpLost(story, workers)))
  await Promise.all(workers.map(worker => worker.stop()))

  const done = await jobnik.job(job.id)
  assert.deepEqual(
    done.stages!.map(({ status, summary }) => [status, summary.completed, summary.total]),
    types.map(() => ['COMPLETED', 8, 8]),
  )
  assert.equal(ran.size, 24)
  const { items } = await story.engine.jobTasks(job.id, { limit: 100 })
  assert.deepEqual(new Set(items.map(({ failures }) => failures)), new Set([0]), 'no good work was marked as failed')
})

async function serverOn(t: TestContext, { url, schema }: Fresh, port: number) {
  const ask = { database: url!, schema, port }
  const program = startProgram(t, 'faults/programs/server.js', ask, line => line)
  await program.printed('it is there', () => true)
  return program
}

/**
 * A dequeue whose answer was lost leaves a task without a worker until its lease ends. If a task is held although all
 * workers are idle and have found the queue empty since, it is such a task: the clock advances by a day.
 */
async function giveUpLost({ engine, advance }: Fresh, workers: readonly JobnikWorker[]): Promise<void> {
  const held = async () => (await engine.tasks({ state: ['assigned', 'running'] })).items.map(({ id }) => id)
  const isIdle = () => workers.every(({ running }) => running === 0)
  const before = await held()
  if (before.length === 0 || !isIdle()) return
  const asked = workers.map(({ emptyPolls }) => emptyPolls)
  await eventually('each has asked again', () =>
    workers.every(({ emptyPolls, running }, n) => emptyPolls > asked[n]! || running > 0),
  )
  const now = await held()
  if (!isIdle() || !before.every(id => now.includes(id))) return
  await advance(86_401)
  await rescue({ beginsBlind: false }).run(engine.context)
}
