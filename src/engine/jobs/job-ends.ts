/** Requests on finished jobs: retry and delete. */
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { ignoring, Problem } from '../../kernel/problem.ts'
import { controlFields, retryJobFields } from '../../protocol/call-options.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { removeJob } from '../../store/jobs/job-ends.ts'
import { getJob } from '../../store/jobs/read-jobs.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { once } from '../once.ts'
import { type ControlCall, requireState } from '../tasks/control.ts'
import { cloneJob } from './clone.ts'
import * as jobControl from './job-control.ts'
import { readJob } from './read-jobs.ts'

/**
 * Retries everything that did not succeed: in place, as the next round, or as a new job that contains only those tasks.
 */
export async function retryJob(context: Context, id: string, call: jobControl.RetryCall = {}): Promise<JobView> {
  checkOptions(call, retryJobFields, 'retry')
  const { clone = false, name, ...rest } = call
  if (clone) return cloneJob(context, id, name, rest)
  if (name !== undefined) {
    throw new Problem('OPTION_INVALID', { at: 'retry', option: 'name', must: 'be used only with `clone`' })
  }
  return jobControl.retry(context, id, rest)
}

/** Deletes a finished job with its stages, tasks and events. A job that is stopping is first cancelled hard. */
export async function deleteJob(context: Context, id: string, call: ControlCall = {}): Promise<void> {
  checkOptions(call, controlFields, 'delete')
  const sql = context.sqlFor(call.tx)
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const { idempotencyKey: _, ifState: _state, ...rest } = call
  const found = await getJob(sql, jobId)
  if (found !== undefined) requireState(call, found.state, { job: jobId })
  if (found?.state === 'stopping') {
    // The job may have ended since it was read.
    await jobControl.cancel(context, jobId, { ...rest, mode: 'hard' }).catch(ignoring('MOVE_REFUSED'))
  }
  await once(sql, call, ['delete', jobId], async outer => {
    const job = await readJob({ sql: outer }, jobId)
    if (!isFinal(jobLifecycle, job.state)) throw notEnded(job)
    if ((await removeJob(outer, jobId)) === 'not ended') throw notEnded(await readJob({ sql: outer }, jobId))
    return null
  })
}

function notEnded({ id, state }: JobView): Problem {
  const possible = movesOpenTo(jobLifecycle, state, 'operator')
  return new Problem('MOVE_REFUSED', { job: id, state, move: 'delete', possible })
}
