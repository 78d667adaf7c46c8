/** What the end of a task makes of its stage and job: done right after it, and before its answer. */
import { isFinal } from '../../kernel/lifecycle.ts'
import { tolerated } from '../../kernel/rollup.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import { findLimitedQueues } from '../../store/flow/lanes.ts'
import { readStageCounts, type StageCount } from '../../store/jobs/tally.ts'
import type { Context } from '../context.ts'
import { driveJobs } from './drive.ts'

/** So many appended counts are added up, even if nothing else is to be done. */
const mostAppended = 50
/** So many jobs share a transaction, and so many transactions run at once. */
const drivenTogether = 50
const drivenAtOnce = 4

/**
 * Drives the jobs of these stages on, where there is something to do. Whoever settles looks after its own commit; of
 * two that settle the last two tasks at once, the later one sees both. If it dies before it looks, the babysitter
 * finds what it appended.
 */
export async function rollUp(context: Context, stageIds: readonly string[]): Promise<void> {
  if (stageIds.length === 0) return
  const { sql, wake } = context
  const counts = await readStageCounts(sql, stageIds)
  // A place among those that a stage may hold at once has become free.
  const limited = counts.filter(({ isLimited }) => isLimited).map(({ id }) => id)
  if (limited.length > 0) wake.tell(await findLimitedQueues(sql, limited))
  const stagesOf = new Map<string, string[]>()
  for (const { id, jobId } of counts.filter(isWorthDriving)) {
    stagesOf.set(jobId, [...(stagesOf.get(jobId) ?? []), id])
  }
  const asks = [...stagesOf].map(([jobId, stageIds]) => ({ jobId, stageIds }))
  // Several at once, so that they share the waiting for the disk.
  for (let from = 0; from < asks.length; from += drivenAtOnce * drivenTogether) {
    const starts = Array.from({ length: drivenAtOnce }, (_, n) => from + n * drivenTogether)
    await Promise.all(starts.map(start => driveJobs(context, asks.slice(start, start + drivenTogether))))
  }
}

function isWorthDriving(stage: StageCount): boolean {
  if (stage.appended > mostAppended || stage.beginsJob) return true
  if (isFinal(stageLifecycle, stage.state as StageState)) return stage.appended > 0
  const left = stage.total - stage.good - stage.bad
  if (left === 0 || (stage.state === 'pending' && stage.begun)) return true
  return stage.failFast && stage.bad - stage.badBefore > tolerated(stage.tolerate, stage.total)
}
