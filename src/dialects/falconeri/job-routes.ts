import { ownQueueOf } from '../../kernel/datum.ts'
import { Problem } from '../../kernel/problem.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { list, orNull, view } from '../../protocol/shapes.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { isObject } from '../../schema/check.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { jobOfPipeline, nameOfPipeline, type PipelineSpec, pipelineIn } from '../../spec/pipeline.ts'
import { type DialectRequest, type DialectRoute, good, someBody } from '../dialect.ts'
import { jsonObject } from '../kit/fields.ts'
import { longestPage } from '../kit/pages.ts'
import { readBody } from '../kit/read.ts'
import { statesWithWord, wordFor } from '../words.ts'
import { idFrom, tagFor } from './ids.ts'
import { nodeName, podName, workerOf } from './pods.ts'
import {
  countShape,
  datumNow,
  datumShape,
  inputFileShape,
  jobShape,
  reasonsOf,
  type Status,
  statuses,
  statusOf,
  toDatum,
  toInputFiles,
  toJob,
} from './views.ts'
import { words } from './words.ts'

/** How long a request waits for the datums of a new job. The original creates them with the job. */
const listingSeconds = 10

const one = view<{ job: object }>({ job: jobShape })

/** Jobs that were not made from a pipeline can only be read. */
function pipelineOf({ id, input }: JobView): PipelineSpec {
  const spec = pipelineIn(input)
  if (spec === undefined) throw new Problem('JOB_NOT_FOUND', { id, why: 'it was not made from a pipeline spec' })
  return spec
}

async function answerWith({ engine, signal }: DialectRequest, id: string) {
  await engine.inputsFound(id, listingSeconds, signal)
  return good({ job: toJob(await engine.job(id)) })
}

async function create(request: DialectRequest) {
  const { job } = readBody(request.body, { job: jsonObject }, { required: ['job'] })
  const { id } = await request.engine.submit(
    jobFor(job, tagFor(request.call), request.settings.falconeriLeaseSeconds),
    request.call,
  )
  return answerWith(request, id)
}

async function retry(request: DialectRequest) {
  const { engine, call } = request
  const job = await engine.job(request.params.id!)
  const status = wordFor(words.job, job, 0)
  const name = `${nameOfPipeline(pipelineOf(job))}-${tagFor(call)}`
  if (status !== 'error') throw new Problem('MOVE_REFUSED', { job: job.id, status, move: 'retry', from: ['error'] })
  const { id } = await engine.cloneJob(job.id, { ...call, name })
  return answerWith(request, id)
}

async function describe({ engine, params }: DialectRequest) {
  const job = await engine.job(params.id!)
  const now = await engine.clock()
  const tasks = async (...state: TaskView['state'][]) =>
    (await engine.jobTasks(job.id, { state, limit: longestPage })).items
  const bad = await tasks(...statesWithWord(words.task!, 'error'))
  const retrying = (await tasks('retrying')).filter(task => statusOf(task, now) === 'error')
  const shown = (found: readonly TaskView[]) =>
    found.map(task => toDatum(task, job, now)).sort((one, other) => (one.updated_at < other.updated_at ? -1 : 1))
  return good({
    job: toJob(job),
    datum_status_counts: await countsOf(engine.countTasks(job.id), now),
    running_datums: shown(await tasks(...statesWithWord(words.task!, 'running'))),
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

const podFields = { node_name: nodeName, pod_name: podName }

async function reserve(request: DialectRequest) {
  const { node_name, pod_name } = readBody(request.body, podFields, { required: ['node_name', 'pod_name'] })
  const { engine, call, signal } = request
  const job = await engine.job(request.params.id!)
  pipelineOf(job)
  const worker = workerOf(node_name, pod_name)
  // A pod with the same name under another key is another pod.
  const session = idFrom('pod', job.id, pod_name, ...(call.holder === undefined ? [] : [call.holder]))
  // Only the queues that hold nothing but this job's datums.
  const queues = job.stages.flatMap(({ id, queue }) => (queue === ownQueueOf(id) ? [queue] : []))
  const [task] = await engine.take({ worker, session, queues, unlessHolding: true }, {}, signal)
  if (task === undefined) return good(null)
  return good({ datum: await datumNow(engine, task, job), input_files: toInputFiles(task) })
}

export const jobRoutes: readonly DialectRoute[] = [
  {
    method: 'POST',
    path: '/jobs',
    needs: 'produce',
    summary: 'Run a pipeline as a job.',
    takes: someBody,
    answers: one,
    handle: create,
  },
  {
    method: 'GET',
    path: '/jobs',
    needs: 'read',
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
  },
  {
    method: 'GET',
    path: '/jobs/list',
    needs: 'read',
    summary: 'List jobs, newest first.',
    answers: view<{ jobs: object[] }>({ jobs: list(jobShape) }),
    async handle({ engine }) {
      const { items } = await engine.jobs({ limit: longestPage })
      return good({ jobs: items.map(toJob) })
    },
  },
  {
    method: 'GET',
    path: '/jobs/{id}',
    needs: 'read',
    summary: 'Get a job.',
    answers: one,
    handle: async ({ engine, params }) => good({ job: toJob(await engine.job(params.id!)) }),
  },
  {
    method: 'GET',
    path: '/jobs/{id}/describe',
    needs: 'read',
    summary: 'Get a job, its number of datums by status, and the datums that are running or in error.',
    answers: view<Record<'job' | 'datum_status_counts' | 'running_datums' | 'error_datums', object>>({
      job: jobShape,
      datum_status_counts: list(countShape),
      running_datums: list(datumShape),
      error_datums: list(datumShape),
    }),
    handle: describe,
  },
  {
    method: 'POST',
    path: '/jobs/{id}/retry',
    needs: 'produce',
    summary: 'Run the datums that did not succeed again, as a new job.',
    answers: one,
    handle: retry,
  },
  {
    method: 'POST',
    path: '/jobs/{id}/reserve_next_datum',
    needs: 'work',
    also: 'read',
    summary: 'Reserve the next datum, or return the one that the pod already holds. `null` if there is none now.',
    takes: someBody,
    answers: orNull(
      view<{ datum: object; input_files: object[] }>({ datum: datumShape, input_files: list(inputFileShape) }),
    ),
    handle: reserve,
  },
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
