import { randomBytes } from 'node:crypto'
import type { JobState } from '../../kernel/job.ts'
import { Problem } from '../../kernel/problem.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { tracer } from '../../protocol/tracing.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import type { NamedJob } from '../../spec/named-job.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Answer, type Ask, type Dialect, good, someBody } from '../dialect.ts'
import { statesCalled } from '../words.ts'
import { config, defaultName, defaultPipeline, switches } from './default-pipeline.ts'
import { keys, limits } from './limits.ts'
import { oneOf, readBody, readSaid, whole } from './reading.ts'
import { faults, invalid, refuse } from './refusals.ts'
import { answers, jobShape, type Look, statuses, statusOf, traceId } from './shapes.ts'
import { hasSeenAll, notFound, streamOf } from './stream.ts'
import { words } from './words.ts'

const listing = { limit: whole(10, { from: 1, to: 1000 }), status: oneOf(statuses) }

export const pipeline: Dialect = {
  name: 'pipeline',
  of: 'the async pipeline',
  words,
  keyHeader: 'x-api-key',
  links: true,
  routes: [
    {
      method: 'POST',
      path: '/v1/pipeline/scheduled-run-async',
      needs: 'produce',
      says: 'Start a run of the pipeline that is named, or of the default one.',
      status: 202,
      takes: someBody,
      answers: answers.started,
      handle: start,
    },
    {
      method: 'GET',
      path: '/v1/pipeline/jobs',
      needs: 'read',
      says: 'Jobs, newest first.',
      query: Object.keys(listing),
      answers: answers.jobs,
      handle: jobs,
    },
    {
      method: 'GET',
      path: '/v1/pipeline/jobs/{id}',
      needs: 'read',
      says: 'How far a job is, stage by stage.',
      answers: answers.job,
      handle: async ({ engine, params }) => good(jobShape(await lookAt(engine, params.id!))),
    },
    {
      method: 'GET',
      path: '/v1/pipeline/jobs/{id}/stream',
      needs: 'read',
      says: 'The same as Server-Sent Events, until the job has ended.',
      mediaType: 'text/event-stream',
      answers: null,
      handle: stream,
    },
    {
      method: 'POST',
      path: '/v1/pipeline/jobs/{id}/cancel',
      needs: 'operate',
      says: 'Call a job off: no stage begins any more, and the one that runs is told.',
      answers: answers.cancelled,
      handle: cancel,
    },
  ],
  refuse,
  faults,
  keys,
  limits,
}

async function start({ engine, body, call, root }: Ask): Promise<Answer> {
  const said = readBody(body)
  if ('details' in said) return invalid(said.details)
  const { pipeline: name = defaultName, ...rest } = said.values
  if (typeof name !== 'string')
    return invalid([{ type: 'string_type', loc: ['body', 'pipeline'], msg: 'It must be a text.', input: name }])
  const isOwn = name === defaultName && !engine.hasPipeline(defaultName)
  const read = readSaid(rest, isOwn ? config : switches, 'body')
  if ('details' in read) return invalid(read.details)
  const spec = { ...(isOwn ? defaultPipeline : { pipeline: name }), input: read.values } as JobSpec | NamedJob
  const job = await engine.submit(spec, { ...traced(), ...call })
  const status_url = `${root}/v1/pipeline/jobs/${job.id}`
  const begun = { job_id: job.id, trace_id: traceId(job), status: statusOf(job, 0) }
  return good({ ...begun, status_url, stream_url: `${status_url}/stream` }, 202)
}

/** Where nobody traces, every run still has a trace of its own, by which its parts are found. */
function traced(): { readonly traceparent?: string } {
  if (tracer() !== undefined) return {}
  return { traceparent: `00-${randomBytes(16).toString('hex')}-${randomBytes(8).toString('hex')}-01` }
}

async function jobs({ engine, query }: Ask): Promise<Answer> {
  const read = readSaid(query, listing, 'query')
  if ('details' in read) return invalid(read.details)
  const { limit, status } = read.values as { limit: number; status: string | undefined }
  const inState = (word: string) => ({ state: statesCalled<JobState>(words.job!, word) })
  const page = await engine.jobs({ limit, total: true, ...(status !== undefined && inState(status)) })
  const running = await engine.jobs({ limit: 1, total: true, ...inState('running') })
  const now = await engine.clock()
  const shown: unknown[] = []
  for (const job of page.items) shown.push(jobShape({ job, tasks: await tasksOf(engine, job), now }))
  return good({ jobs: shown, total: page.total, running_count: running.total })
}

async function cancel({ engine, params, call }: Ask): Promise<Answer> {
  try {
    await engine.cancelJob(params.id!, call)
    return good({ cancelled: true, message: 'Cancellation requested' })
  } catch (error) {
    if (!(error instanceof Problem) || error.code !== 'MOVE_REFUSED') throw error
    const state = error.details.state as JobState
    return good({ cancelled: false, reason: `Job is already ${words.job![state]}` })
  }
}

async function stream({ engine, params, signal, heartbeatSeconds, lastEventId }: Ask): Promise<Answer> {
  const headers = { 'content-type': 'text/event-stream', 'cache-control': 'no-cache', 'x-accel-buffering': 'no' }
  // Before the look: whatever comes after it is behind this end.
  const { next } = await engine.events({ latest: 0 })
  const look = () => lookAt(engine, params.id!)
  const first = await look().catch(error => {
    if (error instanceof Problem && error.code === 'JOB_NOT_FOUND') return undefined
    throw error
  })
  if (first === undefined) return { status: 200, headers, body: notFound }
  // A client that comes back after the end is told so, and then stays away.
  if (hasSeenAll(first, lastEventId)) return { status: 204 }
  const streaming = { engine, signal, heartbeatSeconds, look }
  return { status: 200, headers, stream: streamOf(streaming, first, next, lastEventId) }
}

async function lookAt(engine: AskersEngine, id: string): Promise<Look> {
  const job = await engine.job(id)
  return { job, tasks: await tasksOf(engine, job), now: await engine.clock() }
}

/** As many as a pipeline has, if each stage has one. */
const mostTasks = 200

const tasksOf = async (engine: AskersEngine, { id }: JobView) =>
  (await engine.tasks({ jobId: id, limit: mostTasks })).items
