/** Brings jobs, stages and tasks into a status with Jobnik's own requests, and runs the tables of seed 001. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Served, type ServedOptions, served } from '../harness/served.ts'
import { type Jobnik, type JobnikStage, type JobnikTask, jobnikClient } from './jobnik-client.ts'

/** A server with this dialect, and a client of it. */
export async function jobnikServed(t: TestContext, options?: ServedOptions): Promise<Served & { jobnik: Jobnik }> {
  const run = await served(t, options)
  return { ...run, jobnik: jobnikClient(`${run.server.url}/dialects/jobnik`) }
}

let made = 0
/** A stage type that no other test in this process uses. */
export const someType = () => `type-${++made}`

export interface Made {
  readonly jobId: string
  readonly type: string
  readonly stage: JobnikStage
  readonly tasks: readonly JobnikTask[]
}

/** A job with one stage and these tasks. */
export async function oneStage(
  jobnik: Jobnik,
  tasks: readonly object[] = [{ data: {} }],
  job: object = {},
): Promise<Made> {
  const { id: jobId } = await jobnik.createJob(job)
  const type = someType()
  const stage = await jobnik.createStage(jobId, type)
  return { jobId, type, stage, tasks: await jobnik.createTasks(stage.id, tasks) }
}

export async function begin(jobnik: Jobnik, type: string): Promise<JobnikTask> {
  const task = await jobnik.dequeue(type)
  assert.ok(task !== null, `something of ${type} is to be done`)
  return task
}

export async function work(jobnik: Jobnik, type: string, status = 'COMPLETED'): Promise<JobnikTask> {
  const task = await begin(jobnik, type)
  const answer = await jobnik.report(task.id, status)
  assert.equal(answer.status, 200)
  return answer.body
}

async function must(answer: Promise<{ readonly status: number }>): Promise<void> {
  assert.equal((await answer).status, 200)
}

export const jobStatuses = ['PENDING', 'IN_PROGRESS', 'PAUSED', 'COMPLETED', 'FAILED', 'ABORTED'] as const

export async function jobIn(jobnik: Jobnik, status: (typeof jobStatuses)[number]): Promise<Made> {
  const job = await oneStage(jobnik)
  const { jobId, type } = job
  const ways: Record<typeof status, () => Promise<unknown>> = {
    PENDING: async () => {},
    IN_PROGRESS: () => begin(jobnik, type),
    PAUSED: () => must(jobnik.setJob(jobId, 'PAUSED')),
    COMPLETED: () => work(jobnik, type),
    FAILED: () => work(jobnik, type, 'FAILED'),
    ABORTED: () => must(jobnik.setJob(jobId, 'ABORTED')),
  }
  await ways[status]()
  assert.equal((await jobnik.job(jobId)).status, status)
  return job
}

export const stageStatuses = ['CREATED', 'WAITING', 'PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED'] as const

/** The second stage of a job. The first one is completed, except for CREATED and ABORTED. */
export async function stageIn(jobnik: Jobnik, status: (typeof stageStatuses)[number]): Promise<Made> {
  const { jobId, type: before } = await oneStage(jobnik)
  const type = someType()
  const stage = await jobnik.createStage(jobId, type, { startAsWaiting: status === 'WAITING' })
  const tasks = await jobnik.createTasks(stage.id, [{ data: {} }])
  if (status !== 'CREATED' && status !== 'ABORTED') await work(jobnik, before)
  const ways: Partial<Record<typeof status, () => Promise<unknown>>> = {
    IN_PROGRESS: () => begin(jobnik, type),
    COMPLETED: () => work(jobnik, type),
    FAILED: () => work(jobnik, type, 'FAILED'),
    ABORTED: () => must(jobnik.setJob(jobId, 'ABORTED')),
  }
  await ways[status]?.()
  assert.equal((await jobnik.stage(stage.id)).status, status)
  return { jobId, type, stage, tasks }
}

export const taskStatuses = ['PENDING', 'IN_PROGRESS', 'RETRIED', 'COMPLETED', 'FAILED'] as const

export async function taskIn(jobnik: Jobnik, status: (typeof taskStatuses)[number]): Promise<JobnikTask> {
  const maxAttempts = status === 'RETRIED' ? 2 : 1
  const { type, tasks } = await oneStage(jobnik, [{ data: {}, maxAttempts }])
  const ways: Partial<Record<typeof status, () => Promise<unknown>>> = {
    IN_PROGRESS: () => begin(jobnik, type),
    RETRIED: () => work(jobnik, type, 'FAILED'),
    COMPLETED: () => work(jobnik, type),
    FAILED: () => work(jobnik, type, 'FAILED'),
  }
  await ways[status]?.()
  const task = await jobnik.task(tasks[0]!.id)
  assert.equal(task.status, status)
  return task
}

export type Rows = Record<string, (jobnik: Jobnik, run: Served) => Promise<void>>

/** Runs the rows one after the other against one server. */
export function table(title: string, rows: Rows): void {
  test(title, async (t: TestContext) => {
    const run = await jobnikServed(t)
    for (const [row, tell] of Object.entries(rows)) await t.test(row, () => tell(run.jobnik, run))
  })
}

export const illegal = (entity: 'JOB' | 'STAGE' | 'TASK', from: string, to: string) => ({
  message: `Illegal status transition from ${from} to ${to}`,
  code: `ILLEGAL_${entity}_STATUS_TRANSITION`,
})
