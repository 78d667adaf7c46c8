import type { JobState } from '../../kernel/job.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import type { AskersEngine } from '../askers-engine.ts'
import { type Ask, type Call, type DialectRoute, good } from '../dialect.ts'
import { jobBody, jobWord, workOf } from './bodies.ts'
import { listed, sliced, stageBodies } from './lists.ts'
import { numberFor, type Priority, priorityFor, rangeOf } from './priorities.ts'
import { illegal, refused, unless } from './refusals.ts'
import { bodyOf, bodySchemas, idIn, type NewJob, type NewStage, queries, queryOf } from './requests.ts'
import * as shapes from './shapes.ts'
import { jobSpec, stageSpec } from './specs.ts'

const modified = { code: 'JOB_MODIFIED_SUCCESSFULLY' }
const deleted = { code: 'JOB_DELETED_SUCCESSFULLY' }

type Act = (
  engine: AskersEngine,
  id: string,
  call: Call & { readonly ifState: readonly JobState[] },
) => Promise<unknown>

const abort: Act = (engine, id, call) => engine.cancelJob(id, call)
const pause: Act = (engine, id, call) => engine.pauseJob(id, call)

/** What a user may make of a job in each state. What is not here is illegal. */
const moves: Readonly<Record<string, Partial<Record<JobState, Act>>>> = {
  PENDING: {
    created: (engine, id, call) => engine.startJob(id, call),
    paused: (engine, id, call) => engine.resumeJob(id, call),
  },
  PAUSED: { pending: pause, running: pause },
  ABORTED: { created: abort, pending: abort, running: abort, paused: abort, compensating: abort },
}

/** The stages of a job are read with it anyway; what they hold is counted only if it is wanted. */
async function bodies(engine: AskersEngine, jobs: readonly JobView[], withStages = false) {
  if (!withStages) return jobs.map(job => jobBody(job))
  const stages = await stageBodies(engine, jobs.flatMap(workOf))
  return jobs.map(job =>
    jobBody(
      job,
      stages.filter(({ jobId }) => jobId === job.id),
    ),
  )
}

async function findJobs({ engine, query }: Ask) {
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
    jobs => bodies(engine, jobs, asked.should_return_stages),
  )
}

/** Asked only in states from which the same is meant: what it has become meanwhile may be none of them. */
async function setStatus(ask: Ask) {
  const { engine, call } = ask
  const { status } = bodyOf<{ status: string }>(ask, 'jobStatus')
  const id = idIn(ask)
  const job = await engine.job(id)
  const from = moves[status]!
  const act = from[job.state]
  if (act === undefined) return illegal('JOB', jobWord(job), status)
  const ifState = (Object.keys(from) as JobState[]).filter(state => from[state] === act)
  return unless(
    ['MOVE_REFUSED'],
    async () => {
      await act(engine, id, { ...call, ifState })
      return good(modified)
    },
    async () => illegal('JOB', jobWord(await engine.job(id)), status),
  )
}

async function setPriority(ask: Ask) {
  const { engine, call } = ask
  const { priority } = bodyOf<{ priority: Priority }>(ask, 'priority')
  const id = idIn(ask)
  if (priorityFor((await engine.job(id)).priority) === priority) {
    return { status: 204, headers: { Reason: 'PRIORITY_CANNOT_BE_UPDATED_TO_SAME_VALUE' } }
  }
  await engine.setJobPriority(id, numberFor(priority), call)
  return good(modified)
}

async function addStage(ask: Ask) {
  const { engine, call, settings } = ask
  const stage = bodyOf<NewStage>(ask, 'newStage')
  const id = idIn(ask)
  return unless(
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
  {
    method: 'GET',
    path: '/v1/jobs',
    needs: 'read',
    says: 'Jobs, oldest first; with a page, `{total, items}`.',
    query: Object.keys(queries.jobs),
    answers: shapes.listed(shapes.job),
    handle: findJobs,
  },
  {
    method: 'POST',
    path: '/v1/jobs',
    needs: 'produce',
    says: 'Create a job. It has no stages yet.',
    status: 201,
    takes: bodySchemas.newJob,
    answers: shapes.job,
    async handle(ask) {
      const job = await ask.engine.submit(jobSpec(bodyOf<NewJob>(ask, 'newJob')), ask.call)
      return good(jobBody(job), 201)
    },
  },
  {
    method: 'GET',
    path: '/v1/jobs/{id}',
    needs: 'read',
    says: 'A job, with its stages if they are asked for.',
    query: Object.keys(queries.withStages),
    answers: shapes.job,
    async handle(ask) {
      const { should_return_stages: withStages } = queryOf(ask.query, queries.withStages)
      const [body] = await bodies(ask.engine, [await ask.engine.job(idIn(ask))], withStages)
      return good(body)
    },
  },
  {
    method: 'DELETE',
    path: '/v1/jobs/{id}',
    needs: 'operate',
    says: 'Delete a job that is COMPLETED, FAILED or ABORTED, with all that belongs to it.',
    answers: shapes.done(deleted.code),
    async handle(ask) {
      queryOf(ask.query, queries.none)
      return unless(
        ['MOVE_REFUSED'],
        async () => {
          await ask.engine.deleteJob(idIn(ask), ask.call)
          return good(deleted)
        },
        () => refused(400, 'JOB_NOT_IN_FINITE_STATE'),
      )
    },
  },
  {
    method: 'PATCH',
    path: '/v1/jobs/{id}/user-metadata',
    needs: ['operate', 'produce'],
    says: 'Replace the metadata of a job.',
    takes: bodySchemas.metadata,
    answers: shapes.done(modified.code),
    async handle(ask) {
      const metadata = bodyOf<Record<string, unknown>>(ask, 'metadata')
      await ask.engine.replaceJobMetadata(idIn(ask), metadata, ask.call)
      return good(modified)
    },
  },
  {
    method: 'PATCH',
    path: '/v1/jobs/{id}/priority',
    needs: 'operate',
    says: 'Change the priority of a job. 204, with the header Reason: it has that priority.',
    takes: bodySchemas.priority,
    answers: shapes.done(modified.code),
    handle: setPriority,
  },
  {
    method: 'PUT',
    path: '/v1/jobs/{id}/status',
    needs: 'operate',
    says: 'PAUSED, PENDING (it goes on) or ABORTED.',
    takes: bodySchemas.jobStatus,
    answers: shapes.done(modified.code),
    handle: setStatus,
  },
  {
    method: 'GET',
    path: '/v1/jobs/{id}/stages',
    needs: 'read',
    says: 'The stages of a job by their order, with their tasks if they are asked for.',
    query: Object.keys(queries.jobStages),
    answers: shapes.listed(shapes.stage),
    async handle(ask) {
      const { should_return_tasks: withTasks = false, ...asked } = queryOf(ask.query, queries.jobStages)
      const stages = workOf(await ask.engine.job(idIn(ask)))
      return sliced(asked, stages, some => stageBodies(ask.engine, some, { withTasks }))
    },
  },
  {
    method: 'POST',
    path: '/v1/jobs/{id}/stage',
    needs: 'produce',
    says: 'Add a stage behind the last one.',
    status: 201,
    takes: bodySchemas.newStage,
    answers: shapes.stage,
    handle: addStage,
  },
]
