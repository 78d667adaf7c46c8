/** Submits a job: one that stands alone as a task, one of a DAG as a stage of one task in the job of that id. */

import { newId } from '../../kernel/id.ts'
import { Problem } from '../../kernel/problem.ts'
import { year } from '../../schema/fields.ts'
import type { Answer, Ask, Call } from '../dialect.ts'
import { idOf } from './ids.ts'
import { readSubmission, type Submission } from './submission.ts'
import { type Kept, workInfos } from './work-info.ts'

/** How long the record of a job is kept that does not say so. */
const keepSeconds = 2 * 86_400

export async function invoke(ask: Ask): Promise<Answer> {
  const { engine, body } = ask
  const job = readSubmission(body)
  const id = await (job.dagId === undefined ? queueAlone(ask, job) : addToDag(ask, job, job.dagId))
  const [result] = await workInfos(engine, [await engine.task(id).catch(usedUp)])
  const { id: jobId } = result!
  const parameters = { status: 'submitted', msg: `job submitted with id ${jobId}`, job_id: jobId }
  return { status: 200, body: { status: 'OK', result, header: {}, parameters, data: null } }
}

/** It was submitted before, and has been deleted since. */
function usedUp(error: unknown): never {
  throw error instanceof Problem && error.code === 'TASK_NOT_FOUND' ? new Problem('ID_TAKEN', error.details) : error
}

async function queueAlone({ engine, call, body }: Ask, job: Submission): Promise<string> {
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
    repeatable(call, job, body),
  )
  return queued!.id
}

async function addToDag({ engine, call, body }: Ask, job: Submission, dagId: string): Promise<string> {
  const { id = newId() } = job
  const under = repeatable(call, job, body)
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
    under,
  )
  // Sent again, it is the one that was added first.
  return idOf('job', under.idempotencyKey === undefined ? id : dag.stages.at(-1)!.name)
}

/** A job that has an id of its own is the same when it is sent again, though moments are further away by then. */
function repeatable(call: Call, { id }: Submission, asked: unknown): Call & { asked: unknown } {
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

/** Its moments as spans from now on; what has passed is overdue at once. */
async function deadlinesOf({ softSla, hardSla }: Submission, engine: Ask['engine']) {
  if (softSla === undefined && hardSla === undefined) return {}
  const now = await engine.clock()
  const from = (moment: Date) => Math.min(Math.max((moment.getTime() - now) / 1000, 0.001), 10 * year)
  return {
    ...(softSla !== undefined && { softDeadlineSeconds: from(softSla) }),
    ...(hardSla !== undefined && { hardDeadlineSeconds: from(hardSla) }),
  }
}

function keptOf(job: Submission): Kept {
  return {
    id: job.id ?? null,
    dag_id: job.dagId ?? null,
    dependencies: job.dependencies,
    retry_limit: job.retryLimit,
    retry_delay: job.retryDelay,
    retry_backoff: job.retryBackoff,
    expire_in_seconds: job.expireInSeconds,
    soft_sla: job.softSla?.toISOString() ?? null,
    hard_sla: job.hardSla?.toISOString() ?? null,
  }
}
