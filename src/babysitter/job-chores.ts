/** Jobs that need attention: their process died, a deadline has passed, or they can never finish. */
import type { Context } from '../engine/context.ts'
import { advanceJob } from '../engine/jobs/advance-job.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { isFinal } from '../kernel/lifecycle.ts'
import { Problem } from '../kernel/problem.ts'
import { defaultSettings } from '../kernel/settings.ts'
import type { Sql } from '../store/driver/sql.ts'
import {
  findAbandonedJobs,
  findAbandonedSubmissions,
  findExpiredGates,
  findJobsPastDeadline,
  findJobsPastRetention,
  findStaleJobs,
  type JobScan,
} from '../store/jobs/job-chores.ts'
import { removeJob } from '../store/jobs/job-ends.ts'
import { type Chore, fairBatches, logFailure } from './chore.ts'

/** Applies `work` to up to 100 jobs or gates per run. Failures are logged under their job. */
function eachOf<Item extends string | { readonly id: string; readonly jobId: string }>(
  find: (sql: Sql, limit: number, except: readonly string[]) => Promise<Item[]>,
  work: (context: Context, item: Item) => Promise<unknown>,
) {
  return fairBatches(100, find, work, (context, item, error) =>
    logFailure(context, 'job', typeof item === 'string' ? item : item.jobId, error),
  )
}

/**
 * Advances jobs whose process died before it did so, with the same function that advances every job, and continues
 * removals that were interrupted.
 */
export function continueJobs(olderThanSeconds = 3): Chore {
  const continueEach = eachOf(
    (sql, limit, except) => findAbandonedJobs(sql, olderThanSeconds, limit, except),
    advanceOrRemove,
  )
  return {
    name: 'continue-jobs',
    everySeconds: 1,
    async run(context) {
      const { done, failed, isFull } = await continueEach(context)
      return { continued: done, failed, more: isFull && done > 0 }
    },
  }
}

async function advanceOrRemove(context: Context, id: string): Promise<void> {
  try {
    await advanceJob(context, id, 'babysitter')
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'JOB_NOT_FOUND')) throw error
    await removeJob(context.sql, id)
  }
}

const expireEach = eachOf(findJobsPastDeadline, (context, id) => end(context, id, 'expired', 'deadline'))

const closeEachGate = eachOf(findExpiredGates, (context, { id, jobId }) =>
  advanceJob(context, jobId, 'babysitter', locked => {
    const stage = locked.stages.find(stage => stage.id === id)
    if (stage?.state !== 'waiting' || stage.endsAs !== null) return
    const error = { message: 'The gate timed out without enough approvals.' }
    locked.decideStageEnd(stage, 'failed', 'gate_timed_out', { error })
  }),
)

/** Ends jobs whose deadline has passed, and gates that timed out. */
export const jobDeadlines: Chore = {
  name: 'job-deadlines',
  everySeconds: 1,
  async run(context) {
    const jobs = await expireEach(context)
    const gates = await closeEachGate(context)
    return { expired: jobs.done, gates: gates.done, failed: jobs.failed + gates.failed }
  },
}

const failEach = eachOf(findStaleJobs, (context, id) => end(context, id, 'failed', 'Job timed out or was orphaned'))

/** Fails jobs that have stalled: no progress, no running work, and nothing to wait for. */
export const failStale: Chore = {
  name: 'stale-jobs',
  everySeconds: 30,
  async run(context) {
    const { done, failed, isFull } = await failEach(context)
    return { stale: done, failed, more: isFull && done > 0 }
  },
}

const dropEach = eachOf(
  (sql, limit, except) => findAbandonedSubmissions(sql, 600, limit, except),
  (context, id) => end(context, id, 'cancelled', 'its submission was cut off'),
)

/** How far each engine has come in its scan of ended jobs. */
const scans = new WeakMap<Sql, JobScan>()

const removeEach = eachOf(
  async (sql, limit, except) => {
    const { ids, scan } = await findJobsPastRetention(sql, defaultSettings.keepSeconds, limit, except, scans.get(sql))
    scans.set(sql, scan)
    return ids
  },
  ({ sql }, id) => removeJob(sql, id),
)

/** Removes interrupted submissions, and jobs whose retention period has passed. */
export const jobRetention: Chore = {
  name: 'job-retention',
  everySeconds: 10,
  async run(context) {
    const dropped = await dropEach(context)
    const removed = await removeEach(context)
    return { cutOff: dropped.done, removed: removed.done, failed: dropped.failed + removed.failed }
  },
}

/** Decides how a job ends, unless that is already decided. Advancing the job does the rest. */
function end(context: Context, id: string, endsAs: 'expired' | 'failed' | 'cancelled', cause: string): Promise<void> {
  return advanceJob(context, id, 'babysitter', locked => {
    if (locked.job.endsAs !== null || isFinal(jobLifecycle, locked.job.state)) return
    locked.setJob({ endsAs, endsCause: cause })
  })
}
