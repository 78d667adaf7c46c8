/** Jobs that need attention: their process died, a deadline has passed, or they can never finish. */
import type { Context } from '../engine/context.ts'
import { driveJob } from '../engine/jobs/drive.ts'
import type { JobBook } from '../engine/jobs/locked-job.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { isFinal } from '../kernel/lifecycle.ts'
import { Problem } from '../kernel/problem.ts'
import { defaultSettings } from '../kernel/settings.ts'
import {
  cutOffJobs,
  type JobWalk,
  leftBehind,
  oldJobs,
  overdueGates,
  overdueJobs,
  staleJobs,
} from '../store/jobs/job-chores.ts'
import { removeJob } from '../store/jobs/job-ends.ts'
import type { Chore } from './chore.ts'
import { type BatchResult, fairBatches } from './fair-batches.ts'
import { logFailures } from './log-failures.ts'

const batch = 100
/** How far each engine has come in its scan of ended jobs. */
const walks = new WeakMap<Context, JobWalk>()
const staleWords = 'Job timed out or was orphaned'

/**
 * Continues jobs whose process died, with the same function that drives every job, and removals that were interrupted.
 */
export function continueJobs(olderThanSeconds = 3): Chore {
  const each = fairBatches(batch)
  return {
    name: 'drive-on',
    everySeconds: 1,
    async run(context) {
      const turn = await each(
        context,
        (limit, except) => leftBehind(context.sql, olderThanSeconds, limit, except),
        id => driveOrRemove(context, id),
      )
      return summarize('driven', turn, await logFailedJobs(context, turn))
    },
  }
}

async function driveOrRemove(context: Context, id: string): Promise<void> {
  try {
    await driveJob(context, id, 'babysitter')
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'JOB_NOT_FOUND')) throw error
    await removeJob(context.sql, id)
  }
}

const eachDeadline = fairBatches(batch)
const eachGate = fairBatches(batch)

/** Ends jobs whose deadline has passed, and gates that timed out. */
export const jobDeadlines: Chore = {
  name: 'job-deadlines',
  everySeconds: 1,
  async run(context) {
    const { sql } = context
    const expired = await eachDeadline(
      context,
      (limit, except) => overdueJobs(sql, limit, except),
      id => end(context, id, 'expired', 'deadline'),
    )
    const closed = await eachGate(
      context,
      (limit, except) => overdueGates(sql, limit, except),
      ({ id, jobId }) => driveJob(context, jobId, 'babysitter', book => closeGate(book, id)),
    )
    const failed = (await logFailedJobs(context, expired)) + (await logFailedJobs(context, closed))
    return { expired: expired.done, gates: closed.done, failed }
  },
}

function closeGate(book: JobBook, stageId: string): void {
  const stage = book.stages.find(({ id }) => id === stageId)
  if (stage?.state !== 'waiting' || stage.endsAs !== null) return
  book.intendStage(stage, 'failed', 'gate_timed_out', {
    error: { message: 'The gate timed out without enough approvals.' },
  })
}

const eachStale = fairBatches(batch)

/** Fails jobs that have stalled: no progress, no running work, and nothing to wait for. */
export const failStale: Chore = {
  name: 'stale-jobs',
  everySeconds: 30,
  async run(context) {
    const turn = await eachStale(
      context,
      (limit, except) => staleJobs(context.sql, limit, except),
      id => end(context, id, 'failed', staleWords),
    )
    return summarize('stale', turn, await logFailedJobs(context, turn))
  },
}

const eachCutOff = fairBatches(batch)
const eachOld = fairBatches(batch)

/** Removes interrupted submissions, and jobs whose retention period has passed. */
export const jobRetention: Chore = {
  name: 'job-retention',
  everySeconds: 10,
  async run(context) {
    const { sql } = context
    const dropped = await eachCutOff(
      context,
      (limit, except) => cutOffJobs(sql, 600, limit, except),
      id => end(context, id, 'cancelled', 'its submission was cut off'),
    )
    const removed = await eachOld(
      context,
      async (limit, except) => {
        const { ids, walk } = await oldJobs(sql, defaultSettings.keepSeconds, limit, except, walks.get(context))
        walks.set(context, walk)
        return ids
      },
      id => removeJob(sql, id),
    )
    const failed = (await logFailedJobs(context, dropped)) + (await logFailedJobs(context, removed))
    return { cutOff: dropped.done, removed: removed.done, failed }
  },
}

/** Decides how a job ends, unless that is already decided. Driving the job does the rest. */
function end(context: Context, id: string, endsAs: 'expired' | 'failed' | 'cancelled', cause: string): Promise<void> {
  return driveJob(context, id, 'babysitter', book => {
    if (book.job.endsAs !== null || isFinal(jobLifecycle, book.job.state)) return
    book.setJob({ endsAs, endsCause: cause })
  })
}

/** Logs the failures and returns their number. */
async function logFailedJobs(
  context: Context,
  { failures }: BatchResult<string | { readonly jobId: string }>,
): Promise<number> {
  const failed = failures.map(({ item, error }) => ({ id: typeof item === 'string' ? item : item.jobId, error }))
  await logFailures(context, 'job', failed)
  return failed.length
}

function summarize(name: string, { done, isFull }: BatchResult<string>, failed: number) {
  return { [name]: done, failed, more: isFull && done > 0 }
}
