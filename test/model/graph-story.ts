/**
 * Random graphs of stages, processed concurrently: each worker, operator and babysitter has an engine and connections of
 * its own. How a job ends cannot be predicted. But whenever nothing is in progress, the stored states and counts must
 * follow from the tasks, and once no obstacle is left, every job must end.
 *
 * The same seed gives the same jobs, and the same random numbers to each actor. Their timing is not repeated exactly.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { continueJobs } from '../../src/babysitter/job-chores.ts'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { jobLifecycle } from '../../src/kernel/job.ts'
import { isFinal } from '../../src/kernel/lifecycle.ts'
import { Problem } from '../../src/kernel/problem.ts'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import { movableClock } from '../../src/store/driver/clock.ts'
import { dice, seed } from '../harness/dice.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { retryingWhenBusy } from '../harness/retrying.ts'
import { babysit, type Crowd, chores, operate, work } from './graph-crowd.ts'
import { jobFaults, openJobs } from './job-rules.ts'
import { randomJob } from './random-job.ts'

const jobsEachTime = 30
const workers = 4
const operators = 2
const requestsEach = 90

/** Submits random jobs, runs all actors, and checks the roll-up whenever nothing is in progress; `times` times. */
export async function workRandomGraphs(t: TestContext, times: number): Promise<void> {
  const world = await fresh(t)
  const engines = await openEngines(world, workers + operators + 1)
  try {
    await tell(t, world, engines, times)
  } finally {
    await Promise.all(engines.map(engine => engine.close()))
  }
}

async function tell(t: TestContext, { engine, sql }: Fresh, engines: readonly Engine[], times: number): Promise<void> {
  const advance = await movableClock(sql)
  const crowd: Crowd = { dice: dice(seed), jobs: [], paused: new Map(), requests: new Map(), advance }
  let claimed = 0
  for (let time = 0; time < times; time++) {
    await submitJobs(withDice(crowd, 1000 * time), engine)
    claimed += await livelyTime(crowd, engines, 1000 * time)
    assert.deepEqual(await jobFaults(sql), [], `at rest after ${time + 1} times; seed ${seed}`)
  }
  const { ends, worked } = await untilAllHaveEnded(crowd, engine, engines)
  assert.deepEqual(await jobFaults(sql), [], `at the end; seed ${seed}`)
  t.diagnostic(
    `${claimed + worked} attempts; ${crowd.jobs.length} jobs and their clones ended: ${JSON.stringify(ends)}`,
  )
}

function openEngines({ url, schema }: Fresh, count: number): Promise<Engine[]> {
  const open = async () =>
    retryingWhenBusy(await openEngine({ database: url!, schema, connections: 2, migrate: false }))
  return Promise.all(Array.from({ length: count }, open))
}

/** Every actor has random numbers of its own, which do not depend on the timing of the others. */
const withDice = (crowd: Crowd, n: number): Crowd => ({ ...crowd, dice: dice(seed + n) })

async function submitJobs(crowd: Crowd, engine: Engine): Promise<void> {
  for (let n = 0; n < jobsEachTime; n++) {
    const number = crowd.jobs.length
    const { id } = await engine.submit(randomJob(crowd.dice, number, number === 0 || number === 50 ? 'large' : 'small'))
    crowd.jobs.push(id)
  }
}

/** Runs workers and a babysitter until the operators have sent all their requests. Returns the number of attempts. */
async function livelyTime(crowd: Crowd, engines: readonly Engine[], die: number): Promise<number> {
  const ending = new AbortController()
  const { signal } = ending
  const [sitter, ...rest] = engines
  const working = rest
    .slice(0, workers)
    .map((engine, n) => work(withDice(crowd, die + 1 + n), engine, `worker-${n}`, signal))
  const operating = rest
    .slice(workers)
    .map((engine, n) => operate(withDice(crowd, die + 100 + n), engine, requestsEach))
  const background = Promise.all([Promise.all(working), babysit(withDice(crowd, die + 200), sitter!, signal)])
  try {
    await Promise.race([Promise.all(operating), background])
  } finally {
    ending.abort()
    await Promise.allSettled(operating)
  }
  const [attempts] = await background
  return attempts.reduce((sum, each) => sum + each, 0)
}

/** The number of rounds without progress after which a story fails. */
const patience = 10

/** Removes all obstacles: jobs are started, resumed, approved and sealed, and workers no longer die. */
async function untilAllHaveEnded(crowd: Crowd, engine: Engine, engines: readonly Engine[]) {
  const runChores = chores([continueJobs(0)])
  const ends: Record<string, number> = {}
  let worked = 0
  crowd.paused.clear()
  let [before, idle] = ['', 0]
  for (;;) {
    const open = (await allJobs(engine)).filter(({ state }) => !isFinal(jobLifecycle, state))
    if (open.length === 0) break
    const now = (await openJobs(engine.context.sql)).join('\n')
    idle = now === before ? idle + 1 : 0
    before = now
    assert.ok(idle < patience, `these do not end; seed ${seed}\n${now}`)
    for (const job of open) await helpOn(engine, job)
    const ending = new AbortController()
    const working = engines.slice(1, 1 + workers).map((each, n) => work(crowd, each, `helper-${n}`, ending.signal))
    await Promise.race([
      Promise.all(working),
      engine.sync({ worker: 'nobody', queues: ['none'], claim: 1, waitSeconds: 0.5 }),
    ])
    ending.abort()
    worked += (await Promise.all(working)).reduce((sum, each) => sum + each, 0)
    await crowd.advance(100)
    await runChores(engine)
  }
  for (const { state } of await allJobs(engine)) ends[state] = (ends[state] ?? 0) + 1
  return { ends, worked }
}

async function allJobs(engine: Engine): Promise<JobView[]> {
  const { items, next } = await engine.jobs({ limit: 1000 })
  assert.equal(next, null)
  return items
}

async function helpOn(engine: Engine, job: JobView): Promise<void> {
  const bear = (error: unknown) => {
    if (!(error instanceof Problem) || error.code !== 'MOVE_REFUSED') throw error
  }
  if (job.state === 'created') await engine.startJob(job.id).catch(bear)
  if (job.state === 'paused') await engine.resumeJob(job.id).catch(bear)
  if (job.open !== 'sealed') await engine.sealJob(job.id)
  for (const stage of job.stages) {
    if (stage.open !== 'sealed') await engine.sealStage(stage.id)
    for (const actor of ['ann', 'bob']) {
      if (stage.state === 'waiting') await engine.approve(stage.id, { actor }).catch(bear)
    }
  }
}
