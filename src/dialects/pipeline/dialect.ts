import { randomBytes } from 'node:crypto'
import type { JobState } from '../../kernel/job.ts'
import { ignoring } from '../../kernel/problem.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { tracer } from '../../protocol/tracing.ts'
import { isObject } from '../../schema/check.ts'
import type { JobSpec, StageSpec } from '../../spec/job-spec.ts'
import type { NamedJob } from '../../spec/parse-job-spec.ts'
import { type Answer, type Dialect, type DialectRequest, good, route, someBody } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { answerLimit, type CountBytes, wholePage } from '../kit/pages.ts'
import { unlessProblem } from '../kit/refusals.ts'
import { statesWithWord } from '../words.ts'
import { config, defaultName, faultSchema, invalid, listing, readAll, refuse, switches } from './requests.ts'
import { hasSeenAll, mostStreamed, notFound, streamOf, tooManyStages } from './stream.ts'
import {
  answers,
  byStage,
  jobShape,
  type Snapshot,
  shownStages,
  statusOf,
  type TaskFacts,
  type TasksByStage,
  taskFacts,
  traceId,
} from './views.ts'
import { words } from './words.ts'

export const pipeline: Dialect = {
  name: 'pipeline',
  system: 'the async pipeline',
  words,
  keyHeader: 'x-api-key',
  links: true,
  routes: [
    route('POST /v1/pipeline/scheduled-run-async', 'produce', {
      summary: 'Start a run of the named pipeline, or of the default one.',
      status: 202,
      takes: someBody,
      answers: answers.started,
      handle: start,
    }),
    route('GET /v1/pipeline/jobs', 'read', {
      summary: 'List jobs, newest first.',
      query: Object.keys(listing),
      answers: answers.jobs,
      handle: jobs,
    }),
    route('GET /v1/pipeline/jobs/{id}', 'read', {
      summary: 'Get the progress of a job, stage by stage.',
      answers: answers.job,
      handle: async ({ engine, params }) => good(jobShape(await readSnapshot(engine, params.id!))),
    }),
    route('GET /v1/pipeline/jobs/{id}/stream', 'read', {
      summary: 'Follow the progress of a job as server-sent events, until it ends.',
      mediaType: 'text/event-stream',
      answers: null,
      handle: stream,
    }),
    route('POST /v1/pipeline/jobs/{id}/cancel', 'operate', {
      summary: 'Cancel a job: no further stage starts, and the running one is asked to stop.',
      answers: answers.cancelled,
      handle: cancel,
    }),
  ],
  refuse,
  faults: faultSchema,
}

/** A stage that throws has failed without a retry. The stages after it still run. */
const stageDefaults = { onFailure: 'continue', retry: { attempts: 1 } } as const

const work = (name: string, payload = '{"config": input}'): StageSpec => ({
  name,
  task: name,
  forEach: `[${payload}]`,
  ...stageDefaults,
})

const before = ['ingest', 'classify', 'neutralize', 'brief'] as const

/** The state and the output of each stage before the summary. */
const results = before.map(name => `"${name}": {"state": stages.${name}.state, "results": stages.${name}.output}`)

export const defaultPipeline: JobSpec = {
  name: 'pipeline',
  // Counts from the submission, so it also ends a run that no worker has started.
  deadlineSeconds: 7200,
  stages: [
    ...before.map(name => work(name)),
    { name: 'summary', gives: `{${results.join(', ')}}` },
    {
      ...work('evaluation', '{"config": input, "summary": stages.summary.output}'),
      // Needs brief too: the summary's value stays as it is when brief is run again.
      needs: ['brief', 'summary'],
      when: 'has(input.enable_evaluation) && input.enable_evaluation',
    },
    {
      ...work('optimization', '{"config": input, "evaluation": stages.evaluation.output[0]}'),
      when: 'has(input.enable_auto_optimize) && input.enable_auto_optimize && stages.evaluation.state != "skipped"',
    },
  ],
}

async function start({ engine, body, call, root }: DialectRequest): Promise<Answer> {
  const fields = body ?? {}
  if (!isObject(fields)) {
    return invalid([{ type: 'model_attributes_type', loc: ['body'], msg: 'It must be an object.', input: body }])
  }
  const { pipeline: name = defaultName, ...rest } = fields
  if (typeof name !== 'string') {
    return invalid([{ type: 'string_type', loc: ['body', 'pipeline'], msg: 'It must be a string.', input: name }])
  }
  const isOwn = name === defaultName && !engine.hasPipeline(defaultName)
  const { values: input, details } = readAll(rest, isOwn ? config : switches, 'body')
  if (details !== undefined) return invalid(details)
  const spec = { ...(isOwn ? defaultPipeline : { pipeline: name }), input } as JobSpec | NamedJob
  const job = await engine.submit(spec, { ...traced(), ...call })
  const status_url = `${root}/v1/pipeline/jobs/${job.id}`
  const started = { job_id: job.id, trace_id: traceId(job), status: statusOf(job, 0) }
  return good({ ...started, status_url, stream_url: `${status_url}/stream` }, 202)
}

/** Without a tracer, every run still gets a trace id, by which its parts can be found. */
function traced(): { readonly traceparent?: string } {
  if (tracer() !== undefined) return {}
  return { traceparent: `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01` }
}

async function jobs({ engine, query }: DialectRequest): Promise<Answer> {
  const { values, details } = readAll(query, listing, 'query')
  if (details !== undefined) return invalid(details)
  const { limit, status } = values as { limit: number; status: string | undefined }
  const inState = (word: string) => ({ state: statesWithWord<JobState>(words.job, word) })
  const filter = status === undefined ? {} : inState(status)
  const page = await wholePage(paging => engine.jobs({ ...filter, ...paging }), { limit, total: true })
  const running = await engine.jobs({ limit: 1, total: true, ...inState('running') })
  const now = await engine.clock()
  const shown: unknown[] = []
  const count = answerLimit()
  for (const job of page.items) shown.push(jobShape({ job, tasks: await tasksOf(engine, job, count), now }))
  return good({ jobs: shown, total: page.total, running_count: running.total })
}

async function cancel({ engine, params, call }: DialectRequest): Promise<Answer> {
  return unlessProblem(
    ['MOVE_REFUSED'],
    async () => {
      await engine.cancelJob(params.id!, call)
      return good({ cancelled: true, message: 'Cancellation requested' })
    },
    ({ details }) => good({ cancelled: false, reason: `Job is already ${words.job[details.state as JobState]}` }),
  )
}

async function stream({ engine, params, signal, heartbeatSeconds, lastEventId }: DialectRequest): Promise<Answer> {
  const id = params.id!
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }
  // The end of the feed is read before the job, so no later change is missed.
  const { next } = await engine.events({ latest: 0 })
  const read = () => readSnapshot(engine, id)
  const first = await read().catch(ignoring('JOB_NOT_FOUND'))
  if (first === undefined) return { status: 200, headers, body: notFound }
  if (shownStages(first.job).length > mostStreamed) throw tooManyStages(first.job.id)
  // A client that reconnects after the end is told so, and does not reconnect again.
  if (hasSeenAll(first, lastEventId)) return { status: 204 }
  const streaming = { engine, id, signal, heartbeatSeconds, read }
  return { status: 200, headers, stream: streamOf(streaming, next, lastEventId) }
}

async function readSnapshot(engine: DialectEngine, id: string): Promise<Snapshot> {
  const job = await engine.job(id)
  return { job, tasks: await tasksOf(engine, job), now: await engine.clock() }
}

/** Enough for a pipeline with one task per stage. */
export const mostTasks = 200
/** The engine cuts pages of large tasks. Older tasks are left out. */
const mostPages = 4
/** Maximum length of what is shown of the tasks of a job, as JSON. */
export const mostTaskBytes = 4 * 2 ** 20

/**
 * Facts of the latest tasks of a job. Payloads and outputs may be long, and are not kept in memory. `count`: the limit of
 * an answer about several jobs.
 */
async function tasksOf(engine: DialectEngine, { id: jobId }: JobView, count?: CountBytes): Promise<TasksByStage> {
  const found: TaskFacts[] = []
  let bytes = 0
  let cursor: string | null | undefined
  for (let page = 0; page < mostPages && cursor !== null && found.length < mostTasks; page++) {
    const paging = { limit: mostTasks - found.length, ...(cursor !== undefined && { cursor }) }
    const { items, next } = await engine.tasks({ jobId, ...paging })
    count?.(items)
    for (const facts of items.map(taskFacts)) {
      bytes += JSON.stringify(facts).length
      if (bytes <= mostTaskBytes || found.length === 0) found.push(facts)
    }
    cursor = bytes > mostTaskBytes ? null : next
  }
  return byStage(found.reverse())
}
