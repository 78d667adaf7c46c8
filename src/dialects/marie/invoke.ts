/** Submits a job. A standalone job becomes a task; a job of a DAG becomes a stage with one task, in the DAG's Pawl job. */
import { newId } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import { year } from '../../schema/fields.ts'
import type { Answer, Call, DialectRequest } from '../dialect.ts'
import { workInfos } from './jobs.ts'
import { idOf, keptOf, readSubmission, type Submission } from './submission.ts'

/** How long the record of a job without `keep_until` is kept. */
const keepSeconds = 2 * 86_400

export async function invoke(request: DialectRequest): Promise<Answer> {
  const { engine, body } = request
  const job = readSubmission(body)
  const id = await (job.dagId === undefined ? queueAlone(request, job) : addToDag(request, job, job.dagId))
  const [result] = await workInfos(engine, [await engine.task(id).catch(deletedBefore)])
  const { id: jobId } = result!
  const parameters = { status: 'submitted', msg: `job submitted with id ${jobId}`, job_id: jobId }
  return { status: 200, body: { status: 'OK', result, header: {}, parameters, data: null } }
}

/** The job was submitted before, and has since been deleted. */
function deletedBefore(error: unknown): never {
  throw error instanceof Problem && error.code === 'TASK_NOT_FOUND' ? new Problem('ID_TAKEN', error.details) : error
}

async function queueAlone({ engine, call, body }: DialectRequest, job: Submission): Promise<string> {
  const [queued] = await engine.enqueueMany(
    [
      {
        ...(job.id !== undefined && { id: idOf('job', job.id) }),
        type: job.name,
        queue: job.queue,
        priority: job.priority,
        payload: job.data,
        metadata: { ...job.metadata, marie: keptOf(job) },
        ...flattenSettings(job),
        ...(await deadlinesOf(job, engine)),
        ...(job.startAfter !== undefined && { runAt: job.startAfter }),
        ...(job.keepUntil === undefined ? { keepSeconds } : { keepUntil: job.keepUntil }),
      },
    ],
    idempotent(call, job, body),
  )
  return queued!.id
}

async function addToDag({ engine, call, body }: DialectRequest, job: Submission, dagId: string): Promise<string> {
  const { id = newId() } = job
  const dagCall = idempotent(call, job, body)
  const dag = await engine.submit(
    {
      id: idOf('dag', dagId),
      ifThere: 'add',
      open: 'untilDone',
      name: dagId,
      correlationId: dagId,
      priority: job.priority,
      ...(await deadlinesOf(job, engine)),
      stages: [
        {
          name: id,
          task: job.name,
          queue: job.queue,
          needs: job.dependencies,
          join: 'taken',
          payload: job.data,
          taskId: idOf('job', id),
          taskMetadata: { ...job.metadata, marie: keptOf({ ...job, id }) },
          ...flattenSettings(job),
          ...(job.startAfter !== undefined && { runAt: job.startAfter }),
        },
      ],
    },
    dagCall,
  )
  // A repeated request gets the job that was added first.
  return idOf('job', dagCall.idempotencyKey === undefined ? id : dag.stages.at(-1)!.name)
}

/** A job with an id is idempotent: sent again, it is the same job, although its deadlines are nearer by then. */
function idempotent(call: Call, { id }: Submission, asked: unknown): Call & { asked: unknown } {
  return { ...(id !== undefined && { idempotencyKey: `marie ${id}` }), ...call, asked }
}

function flattenSettings(job: Submission) {
  return {
    retry: {
      attempts: job.retryLimit + 1,
      delaySeconds: job.retryDelay,
      factor: job.retryBackoff ? 2 : 1,
      maxSeconds: year,
      jitter: false,
    },
    timeoutSeconds: job.runTtlSeconds,
    expireInSeconds: job.expireInSeconds === 0 ? null : job.expireInSeconds,
    deadLetter: 'never',
  } as const
}

/** Converts the SLA's timestamps to seconds from now. A timestamp in the past is overdue at once. */
async function deadlinesOf({ softSla, hardSla }: Submission, engine: DialectRequest['engine']) {
  if (softSla === undefined && hardSla === undefined) return {}
  const now = await engine.clock()
  const secondsUntil = (moment: Date) => Math.min(Math.max((moment.getTime() - now) / 1000, 0.001), 10 * year)
  return {
    ...(softSla !== undefined && { softDeadlineSeconds: secondsUntil(softSla) }),
    ...(hardSla !== undefined && { hardDeadlineSeconds: secondsUntil(hardSla) }),
  }
}
