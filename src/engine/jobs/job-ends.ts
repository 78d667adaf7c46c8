/** What is done with a job that has ended: it is tried again as a new one, or deleted. */
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { ignoring, Problem } from '../../kernel/problem.ts'
import { controlFields, retryJobFields } from '../../protocol/fields.ts'
import type { JobView } from '../../protocol/jobs/jobs.ts'
import { removeJob } from '../../store/jobs/job-ends.ts'
import { getJob } from '../../store/jobs/read-jobs.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { once } from '../once.ts'
import { type ControlCall, demandState } from '../tasks/control.ts'
import { cloneJob } from './clone.ts'
import * as jobControl from './job-control.ts'
import { readJob } from './read-jobs.ts'

/** Does again what did not succeed: in place, in the next round; or as a new job of just those tasks. */
export async function retryJob(context: Context, id: string, call: jobControl.RetryCall = {}): Promise<JobView> {
  checkOptions(call, retryJobFields, 'retry')
  const { clone = false, name, ...rest } = call
  if (clone) return cloneJob(context, id, name, rest)
  if (name !== undefined) {
    throw new Problem('OPTION_INVALID', { at: 'retry', option: 'name', must: 'be said of a clone only' })
  }
  return jobControl.retry(context, id, rest)
}

/** Deletes a job that has ended, with its stages, tasks and events. One that is stopping is made to end first. */
export async function deleteJob(context: Context, id: string, call: ControlCall = {}): Promise<void> {
  checkOptions(call, controlFields, 'delete')
  const sql = context.within(call.tx)
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const { idempotencyKey: _, ifState: _state, ...rest } = call
  const found = await getJob(sql, jobId)
  if (found !== undefined) demandState(call, found.state, { job: jobId })
  if (found?.state === 'stopping') {
    // It may have ended by itself since it was looked at.
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
