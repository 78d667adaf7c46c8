import { randomInt } from 'node:crypto'
import { Problem } from '../../kernel/problem.ts'
import { list, view } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject, object } from '../../schema/check.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { jobOfPipeline, nameOfPipeline } from '../../spec/pipeline.ts'
import { type DialectRequest, type DialectRoute, good, route, someBody } from '../dialect.ts'
import { longestPage, wholePage } from '../kit/pages.ts'
import { openBody, readBody } from '../kit/requests.ts'
import { statesWithWord } from '../words.ts'
import {
  countShape,
  datumShape,
  digest,
  factsOf,
  jobShape,
  pipelineOf,
  reasonsOf,
  type Status,
  statuses,
  statusOf,
  toDatum,
  toJob,
} from './views.ts'
import { words } from './words.ts'

/** How long a request waits for the datums of a new job. The original creates them with the job. */
const listingSeconds = 10

const one = view<{ job: object }>({ job: jobShape })

async function answerWith({ engine, signal }: DialectRequest, id: string) {
  await engine.inputsFound(id, listingSeconds, signal)
  return good({ job: toJob(await engine.job(id)) })
}

const newJob = openBody({ job: object }, ['job'])

async function create(request: DialectRequest) {
  const { job } = readBody(request.body, newJob)
  const { id } = await request.engine.submit(
    jobFor(job, tagFor(request.call), request.settings.falconeriLeaseSeconds),
    request.call,
  )
  return answerWith(request, id)
}

async function retry(request: DialectRequest) {
  const { engine, call } = request
  const job = await engine.job(request.params.id!)
  const status = words.job[job.state]
  const name = `${nameOfPipeline(pipelineOf(job))}-${tagFor(call)}`
  if (status !== 'error') throw new Problem('MOVE_REFUSED', { job: job.id, status, move: 'retry', from: ['error'] })
  const { id } = await engine.cloneJob(job.id, { ...call, name })
  return answerWith(request, id)
}

async function describe({ engine, params }: DialectRequest) {
  const job = await engine.job(params.id!)
  const facts = factsOf(job)
  const now = await engine.clock()
  const tasks = async (...state: TaskView['state'][]) =>
    (await wholePage(paging => engine.jobTasks(job.id, { state, ...paging }), { limit: longestPage })).items
  const bad = await tasks(...statesWithWord(words.task, 'error'))
  const retrying = (await tasks('retrying')).filter(task => statusOf(task, now) === 'error')
  const shown = (found: readonly TaskView[]) =>
    found.map(task => toDatum(task, facts, now)).sort((one, other) => (one.updated_at < other.updated_at ? -1 : 1))
  return good({
    job: toJob(job),
    datum_status_counts: await countsOf(engine.countTasks(job.id), now),
    running_datums: shown(await tasks(...statesWithWord(words.task, 'running'))),
    error_datums: [...reasonsOf(job), ...shown([...bad, ...retrying])],
  })
}

async function countsOf(counting: ReturnType<DialectRequest['engine']['countTasks']>, now: number) {
  const counts = (await counting).map(({ state, due, count }) => {
    const runAt = new Date(due ? now : now + 1).toISOString()
    return { status: statusOf({ state, runAt }, now), isRetried: state === 'retrying', count }
  })
  const sum = (some: typeof counts) => some.reduce((total, { count }) => total + count, 0)
  return statuses
    .map((status: Status) => {
      const mine = counts.filter(each => each.status === status)
      const rerunable = status === 'error' ? mine.filter(({ isRetried }) => isRetried) : []
      return { status, count: sum(mine), rerunable_count: sum(rerunable) }
    })
    .filter(({ count }) => count > 0)
}

export const jobRoutes: readonly DialectRoute[] = [
  route('POST /jobs', 'produce', {
    summary: 'Run a pipeline as a job.',
    takes: someBody,
    answers: one,
    handle: create,
  }),
  route('GET /jobs', 'read', {
    summary: 'Get the job with a name: `?job_name=`.',
    query: ['job_name'],
    answers: one,
    async handle({ engine, query }) {
      const [name = ''] = [query.job_name ?? ''].flat()
      if (name === '') throw new Problem('OPTION_INVALID', { option: 'job_name', must: 'be given' })
      const [job] = (await engine.jobs({ name, limit: 1 })).items
      if (job === undefined) throw new Problem('JOB_NOT_FOUND', { name })
      return good({ job: toJob(job) })
    },
  }),
  route('GET /jobs/list', 'read', {
    summary: 'List jobs, newest first.',
    answers: view<{ jobs: object[] }>({ jobs: list(jobShape) }),
    async handle({ engine }) {
      const { items } = await wholePage(paging => engine.jobs(paging), { limit: longestPage })
      return good({ jobs: items.map(toJob) })
    },
  }),
  route('GET /jobs/{id}', 'read', {
    summary: 'Get a job.',
    answers: one,
    handle: async ({ engine, params }) => good({ job: toJob(await engine.job(params.id!)) }),
  }),
  route('GET /jobs/{id}/describe', 'read', {
    summary: 'Get a job, its number of datums by status, and the datums that are running or in error.',
    answers: view<Record<'job' | 'datum_status_counts' | 'running_datums' | 'error_datums', object>>({
      job: jobShape,
      datum_status_counts: list(countShape),
      running_datums: list(datumShape),
      error_datums: list(datumShape),
    }),
    handle: describe,
  }),
  route('POST /jobs/{id}/retry', 'produce', {
    summary: 'Run the datums that did not succeed again, as a new job.',
    answers: one,
    handle: retry,
  }),
]

/**
 * The job of a pipeline, for workers without heartbeats. Every start of a datum counts as a try. Kubernetes starts as many
 * pods as the spec says, but any number of pods may reserve, so a dead pod does not block the job.
 */
function jobFor(pipeline: Record<string, unknown>, tag: string, leaseSeconds: number): JobSpec {
  const job = jobOfPipeline(pipeline)
  const [stage] = job.stages!
  const { parallelism, runner, retry, ...rest } = stage!
  const kubernetes = isObject(runner) ? runner.kubernetes : undefined
  return {
    ...job,
    name: `${job.name}-${tag}`,
    input: pipeline,
    stages: [
      {
        ...rest,
        retry: { ...retry, losses: null },
        deadLetter: 'never',
        heartbeatSeconds: null,
        leaseSeconds,
        runner: { kubernetes: { ...kubernetes!, pods: parallelism! } },
      },
    ],
  }
}

const letters = '0123456789abcdefghijklmnopqrstuvwxyz'
const tagLength = 10

/** Makes a name unique. A request that is repeated under its idempotency key gets the same tag. */
function tagFor({ holder = '', idempotencyKey }: { holder?: string; idempotencyKey?: string }): string {
  const bytes = idempotencyKey === undefined ? undefined : digest([holder, idempotencyKey])
  const letter = (index: number) =>
    letters[bytes === undefined ? randomInt(letters.length) : bytes[index]! % letters.length]
  return Array.from({ length: tagLength }, (_, index) => letter(index)).join('')
}
