import type { JobState } from '../../kernel/job.ts'
import type { AddedStage, JobView } from '../../protocol/jobs/jobs.ts'
import type { ValueOf } from '../../schema/check.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import { type Call, type DialectRequest, type DialectRoute, good, route } from '../dialect.ts'
import type { DialectEngine } from '../dialect-engine.ts'
import { unlessProblem } from '../kit/refusals.ts'
import { bodies, bodyOf, doneSchema, idIn, illegal, metadataRoute, queries, queryOf, refused } from './requests.ts'
import { jobBody, jobSchema, listed, listedSchema, sliced, stageBodies, stageSchema, workOf } from './views.ts'
import { jobWord, numberFor, priorityFor, rangeOf } from './words.ts'

const modified = { code: 'JOB_MODIFIED_SUCCESSFULLY' }
const deleted = { code: 'JOB_DELETED_SUCCESSFULLY' }

/**
 * An open job: it ends when it has at least one stage and all of them have ended. Jobnik's document gives MEDIUM as the
 * default priority, in a place that its validator ignores, so the default of its database counts.
 */
function jobSpec({
  name,
  data,
  priority = 'VERY_LOW',
  userMetadata = {},
  ...rest
}: ValueOf<typeof bodies.newJob>): JobSpec {
  return { name, input: data, priority: numberFor(priority), metadata: userMetadata, open: 'untilDone', ...rest }
}

/** Jobnik's workers send no heartbeats. A worker that is silent for `leaseSeconds` is presumed dead. */
function stageSpec(stage: ValueOf<typeof bodies.newStage>, leaseSeconds: number, call: Call): AddedStage {
  const { type, data, userMetadata = {}, startAsWaiting = false, traceparent = call.traceparent } = stage
  return {
    queue: type,
    data,
    metadata: userMetadata,
    open: 'untilDone',
    ...(startAsWaiting && { gate: true }),
    ...(traceparent !== undefined && { traceparent }),
    leaseSeconds,
    heartbeatSeconds: null,
    // A held task can always be reported, so an abort waits for it as long as its lease can last.
    graceSeconds: leaseSeconds,
    onFailure: 'failAtOnce',
    deadLetter: 'never',
    retry: { attempts: 1, delaySeconds: 0, jitter: false },
  }
}

type Act = (
  engine: DialectEngine,
  id: string,
  call: Call & { readonly ifState: readonly JobState[] },
) => Promise<unknown>

const abort: Act = (engine, id, call) => engine.cancelJob(id, call)
const pause: Act = (engine, id, call) => engine.pauseJob(id, call)

/** The moves that a user may make, by the wanted status and the job's state. All others are illegal. */
const moves: Readonly<Record<string, Partial<Record<JobState, Act>>>> = {
  PENDING: {
    created: (engine, id, call) => engine.startJob(id, call),
    paused: (engine, id, call) => engine.resumeJob(id, call),
  },
  PAUSED: { pending: pause, running: pause },
  ABORTED: { created: abort, pending: abort, running: abort, paused: abort, compensating: abort },
}

/** Stages are read with their job in any case, but their tasks are counted only if the stages are wanted. */
async function jobBodies(engine: DialectEngine, jobs: readonly JobView[], withStages = false) {
  if (!withStages) return jobs.map(job => jobBody(job))
  const work = jobs.map(workOf)
  const stages = await stageBodies(engine, work.flat())
  let from = 0
  return jobs.map((job, index) => {
    const mine = stages.slice(from, from + work[index]!.length)
    from += mine.length
    return jobBody(job, mine)
  })
}

async function findJobs({ engine, query }: DialectRequest) {
  const asked = queryOf(query, queries.jobs)
  const filter = {
    order: 'oldest' as const,
    ...(asked.job_name !== undefined && { name: asked.job_name }),
    ...(asked.from_date !== undefined && { createdFrom: asked.from_date }),
    ...(asked.end_date !== undefined && { createdTo: asked.end_date }),
    ...(asked.priority !== undefined && rangeOf(asked.priority)),
  }
  return listed(
    asked,
    paging => engine.jobs({ ...filter, ...paging }),
    jobs => jobBodies(engine, jobs, asked.should_return_stages),
  )
}

/** The move is limited to the states from which it means the same, because the state may change in between. */
async function setStatus(request: DialectRequest) {
  const { engine, call } = request
  const { status } = bodyOf(request, bodies.jobStatus)
  const id = idIn(request)
  const job = await engine.job(id)
  const from = moves[status]!
  const act = from[job.state]
  if (act === undefined) return illegal('JOB', jobWord(job), status)
  const ifState = (Object.keys(from) as JobState[]).filter(state => from[state] === act)
  return unlessProblem(
    ['MOVE_REFUSED'],
    async () => {
      await act(engine, id, { ...call, ifState })
      return good(modified)
    },
    async () => illegal('JOB', jobWord(await engine.job(id)), status),
  )
}

async function setPriority(request: DialectRequest) {
  const { engine, call } = request
  const { priority } = bodyOf(request, bodies.priority)
  const id = idIn(request)
  if (priorityFor((await engine.job(id)).priority) === priority) {
    return { status: 204, headers: { Reason: 'PRIORITY_CANNOT_BE_UPDATED_TO_SAME_VALUE' } }
  }
  await engine.setJobPriority(id, numberFor(priority), call)
  return good(modified)
}

async function addStage(request: DialectRequest) {
  const { engine, call, settings } = request
  const stage = bodyOf(request, bodies.newStage)
  const id = idIn(request)
  return unlessProblem(
    ['MOVE_REFUSED', 'SEALED'],
    async () => {
      const { leaseSeconds } = await engine.job(id)
      const spec = stageSpec(stage, leaseSeconds ?? settings.jobnikLeaseSeconds, call)
      const job = await engine.addStages(id, [spec], call)
      const added = job.stages.filter(each => job.added.includes(each.id))
      const [body] = await stageBodies(engine, added)
      return good(body, 201)
    },
    () => refused(400, 'JOB_IN_FINITE_STATE', 'JOB_ALREADY_FINISHED_STAGES_ERROR'),
  )
}

export const jobRoutes: readonly DialectRoute[] = [
  route('GET /v1/jobs', 'read', {
    summary: 'List jobs, oldest first. With a page: `{total, items}`.',
    query: Object.keys(queries.jobs),
    answers: listedSchema(jobSchema),
    handle: findJobs,
  }),
  route('POST /v1/jobs', 'produce', {
    summary: 'Create a job without stages.',
    status: 201,
    takes: bodies.newJob,
    answers: jobSchema,
    async handle(request) {
      const job = await request.engine.submit(jobSpec(bodyOf(request, bodies.newJob)), request.call)
      return good(jobBody(job), 201)
    },
  }),
  route('GET /v1/jobs/{id}', 'read', {
    summary: 'Get a job, with its stages on request.',
    query: Object.keys(queries.withStages),
    answers: jobSchema,
    async handle(request) {
      const { should_return_stages: withStages } = queryOf(request.query, queries.withStages)
      const [body] = await jobBodies(request.engine, [await request.engine.job(idIn(request))], withStages)
      return good(body)
    },
  }),
  route('DELETE /v1/jobs/{id}', 'operate', {
    summary: 'Delete a job that is COMPLETED, FAILED or ABORTED, with its stages and tasks.',
    answers: doneSchema(deleted.code),
    async handle(request) {
      queryOf(request.query, queries.none)
      return unlessProblem(
        ['MOVE_REFUSED'],
        async () => {
          await request.engine.deleteJob(idIn(request), request.call)
          return good(deleted)
        },
        () => refused(400, 'JOB_NOT_IN_FINITE_STATE'),
      )
    },
  }),
  metadataRoute('job', 'produce', 'Replace the metadata of a job.', 'replaceJobMetadata'),
  route('PATCH /v1/jobs/{id}/priority', 'operate', {
    summary: 'Change the priority of a job. 204 with the header Reason if the job already has that priority.',
    takes: bodies.priority,
    answers: doneSchema(modified.code),
    handle: setPriority,
  }),
  route('PUT /v1/jobs/{id}/status', 'operate', {
    summary: 'Pause (PAUSED), resume (PENDING) or abort (ABORTED) a job.',
    takes: bodies.jobStatus,
    answers: doneSchema(modified.code),
    handle: setStatus,
  }),
  route('GET /v1/jobs/{id}/stages', 'read', {
    summary: 'List the stages of a job in order, with their tasks on request.',
    query: Object.keys(queries.jobStages),
    answers: listedSchema(stageSchema),
    async handle(request) {
      const { should_return_tasks: withTasks = false, ...asked } = queryOf(request.query, queries.jobStages)
      const stages = workOf(await request.engine.job(idIn(request)))
      return sliced(asked, stages, some => stageBodies(request.engine, some, { withTasks }))
    },
  }),
  route('POST /v1/jobs/{id}/stage', 'produce', {
    summary: 'Add a stage after the last one.',
    status: 201,
    takes: bodies.newStage,
    answers: stageSchema,
    handle: addStage,
  }),
]
