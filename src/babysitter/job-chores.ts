/** Jobs that need somebody: whose driver died, whose time has come, or which nobody will ever finish. */
import type { Context } from '../engine/context.ts'
import { driveJob } from '../engine/drive.ts'
import type { JobBook } from '../engine/job-book.ts'
import { jobLifecycle } from '../kernel/job.ts'
import { isFinal } from '../kernel/lifecycle.ts'
import { Problem } from '../kernel/problem.ts'
import { defaultSettings } from '../kernel/settings.ts'
import { cutOffJobs, leftBehind, oldJobs, overdueGates, overdueJobs, staleJobs } from '../store/job-chores.ts'
import { removeJob } from '../store/job-ends.ts'
import type { Chore } from './chore.ts'
import { tellUnruly, type Unruly } from './tell-unruly.ts'

const batch = 100
const staleWords = 'Job timed out or was orphaned'

/** Goes on with jobs whose driver died, with the same function as everybody else; and with removals that were cut off. */
export function driveOn(olderThanSeconds = 3): Chore {
  return {
    name: 'drive-on',
    everySeconds: 1,
    async run(context) {
      const ids = await leftBehind(context.sql, olderThanSeconds, batch)
      return count('driven', await each(context, ids, id => driveOrRemove(context, id)), ids)
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

/** Ends jobs whose deadline has passed, and gates that nobody passed in time. */
export const jobDeadlines: Chore = {
  name: 'job-deadlines',
  everySeconds: 1,
  async run(context) {
    const jobs = await overdueJobs(context.sql, batch)
    const expired = await each(context, jobs, id => end(context, id, 'expired', 'deadline'))
    const gates = await overdueGates(context.sql, batch)
    const closed = await each(context, gates, ({ id, jobId }) =>
      driveJob(context, jobId, 'babysitter', book => closeGate(book, id)),
    )
    return { expired: expired.done, gates: closed.done, failed: expired.failed + closed.failed }
  },
}

function closeGate(book: JobBook, stageId: string): void {
  const stage = book.stages.find(({ id }) => id === stageId)
  if (stage?.state !== 'waiting' || stage.endsAs !== null) return
  book.intendStage(stage, 'failed', 'gate_timed_out', { error: { message: 'Nobody passed its gate in time.' } })
}

/** Fails jobs that have come to a halt: no progress, nothing in hand, and nobody to wait for. */
export const failStale: Chore = {
  name: 'stale-jobs',
  everySeconds: 30,
  async run(context) {
    const ids = await staleJobs(context.sql, batch)
    return count('stale', await each(context, ids, id => end(context, id, 'failed', staleWords)), ids)
  },
}

/** Removes submissions that were cut off, and jobs that have been kept for long enough. */
export const jobRetention: Chore = {
  name: 'job-retention',
  everySeconds: 10,
  async run(context) {
    const { sql } = context
    const cutOff = await cutOffJobs(sql, 600, batch)
    const dropped = await each(context, cutOff, id => end(context, id, 'cancelled', 'its submission was cut off'))
    const ids = await oldJobs(sql, defaultSettings.keepSeconds, batch)
    const removed = await each(context, ids, id => removeJob(sql, id))
    return { cutOff: dropped.done, removed: removed.done, failed: dropped.failed + removed.failed }
  },
}

/** Decides how a job ends, unless that is decided; the rest follows. */
function end(context: Context, id: string, endsAs: 'expired' | 'failed' | 'cancelled', cause: string): Promise<void> {
  return driveJob(context, id, 'babysitter', book => {
    if (book.job.endsAs !== null || isFinal(jobLifecycle, book.job.state)) return
    book.setJob({ endsAs, endsCause: cause })
  })
}

/** One that cannot be helped is counted, and never keeps the others from it. */
async function each<Item extends string | { jobId: string }>(
  context: Context,
  items: readonly Item[],
  work: (item: Item) => Promise<unknown>,
) {
  let done = 0
  const unruly: Unruly[] = []
  for (const item of items) {
    try {
      await work(item)
      done += 1
    } catch (error) {
      unruly.push({ id: typeof item === 'string' ? item : item.jobId, error })
    }
  }
  await tellUnruly(context, 'job', unruly)
  return { done, failed: unruly.length }
}

function count(name: string, { done, failed }: { done: number; failed: number }, of: readonly unknown[]) {
  return { [name]: done, failed, more: of.length === batch && done > 0 }
}
