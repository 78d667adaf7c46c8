/** Jobs that need somebody: whose driver died, whose time has come, or which nobody will ever finish. */
import type { Context } from '../engine/context.ts'
import { driveJob } from '../engine/jobs/drive.ts'
import type { JobBook } from '../engine/jobs/locked-job.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { isFinal } from '../kernel/lifecycle.ts'
import { Problem } from '../kernel/problem.ts'
import { defaultSettings } from '../kernel/settings.ts'
import {
  findAbandonedSubmissions,
  findExpiredGates,
  findJobsPastDeadline,
  findJobsPastRetention,
  findStaleJobs,
  findUndrivenJobs,
  type JobScan,
} from '../store/jobs/job-chores.ts'
import { removeJob } from '../store/jobs/job-ends.ts'
import type { Chore } from './chore.ts'
import { tellUnruly } from './tell-unruly.ts'
import { type Turn, takingTurns } from './turns.ts'

const batch = 100
/** How far each engine has scanned its ended jobs. */
const scans = new WeakMap<Context, JobScan>()
const staleWords = 'Job timed out or was orphaned'

/** Goes on with jobs whose driver died, with the same function as everybody else; and with removals that were cut off. */
export function driveOn(olderThanSeconds = 3): Chore {
  const each = takingTurns(batch)
  return {
    name: 'drive-on',
    everySeconds: 1,
    async run(context) {
      const turn = await each(
        context,
        (limit, except) => findUndrivenJobs(context.sql, olderThanSeconds, limit, except),
        id => driveOrRemove(context, id),
      )
      return count('driven', turn, await tell(context, turn))
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

const eachDeadline = takingTurns(batch)
const eachGate = takingTurns(batch)

/** Ends jobs whose deadline has passed, and gates that nobody passed in time. */
export const jobDeadlines: Chore = {
  name: 'job-deadlines',
  everySeconds: 1,
  async run(context) {
    const { sql } = context
    const expired = await eachDeadline(
      context,
      (limit, except) => findJobsPastDeadline(sql, limit, except),
      id => end(context, id, 'expired', 'deadline'),
    )
    const closed = await eachGate(
      context,
      (limit, except) => findExpiredGates(sql, limit, except),
      ({ id, jobId }) => driveJob(context, jobId, 'babysitter', book => closeGate(book, id)),
    )
    const failed = (await tell(context, expired)) + (await tell(context, closed))
    return { expired: expired.done, gates: closed.done, failed }
  },
}

function closeGate(book: JobBook, stageId: string): void {
  const stage = book.stages.find(({ id }) => id === stageId)
  if (stage?.state !== 'waiting' || stage.endsAs !== null) return
  book.intendStage(stage, 'failed', 'gate_timed_out', { error: { message: 'Nobody passed its gate in time.' } })
}

const eachStale = takingTurns(batch)

/** Fails jobs that have come to a halt: no progress, nothing in hand, and nobody to wait for. */
export const failStale: Chore = {
  name: 'stale-jobs',
  everySeconds: 30,
  async run(context) {
    const turn = await eachStale(
      context,
      (limit, except) => findStaleJobs(context.sql, limit, except),
      id => end(context, id, 'failed', staleWords),
    )
    return count('stale', turn, await tell(context, turn))
  },
}

const eachCutOff = takingTurns(batch)
const eachOld = takingTurns(batch)

/** Removes submissions that were cut off, and jobs that have been kept for long enough. */
export const jobRetention: Chore = {
  name: 'job-retention',
  everySeconds: 10,
  async run(context) {
    const { sql } = context
    const dropped = await eachCutOff(
      context,
      (limit, except) => findAbandonedSubmissions(sql, 600, limit, except),
      id => end(context, id, 'cancelled', 'its submission was cut off'),
    )
    const removed = await eachOld(
      context,
      async (limit, except) => {
        const { ids, scan } = await findJobsPastRetention(
          sql,
          defaultSettings.keepSeconds,
          limit,
          except,
          scans.get(context),
        )
        scans.set(context, scan)
        return ids
      },
      id => removeJob(sql, id),
    )
    const failed = (await tell(context, dropped)) + (await tell(context, removed))
    return { cutOff: dropped.done, removed: removed.done, failed }
  },
}

/** Decides how a job ends, unless that is decided; the rest follows. */
function end(context: Context, id: string, endsAs: 'expired' | 'failed' | 'cancelled', cause: string): Promise<void> {
  return driveJob(context, id, 'babysitter', book => {
    if (book.job.endsAs !== null || isFinal(jobLifecycle, book.job.state)) return
    book.setJob({ endsAs, endsCause: cause })
  })
}

/** Tells of those that could not be helped; answers with how many. */
async function tell(context: Context, { failures }: Turn<string | { readonly jobId: string }>): Promise<number> {
  const unruly = failures.map(({ item, error }) => ({ id: typeof item === 'string' ? item : item.jobId, error }))
  await tellUnruly(context, 'job', unruly)
  return unruly.length
}

function count(name: string, { done, isFull }: Turn<string>, failed: number) {
  return { [name]: done, failed, more: isFull && done > 0 }
}
