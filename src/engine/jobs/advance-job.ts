/**
 * Drives a job: asks the kernel what comes next, does it, and asks again until there is nothing. All of it under the
 * job's lock. What concerns many tasks is done in batches, each a transaction of its own; if whoever drives dies
 * between two, the babysitter goes on (`pawl.errand`).
 *
 * Locks are taken in the order job, task; a settle takes tasks only, and drives the job afterwards. So the two cannot
 * wait for each other.
 */
import { isFinal } from '../../kernel/lifecycle.ts'
import { unless } from '../../kernel/problem.ts'
import { tolerated } from '../../kernel/rollup.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
import { limitedQueues } from '../../store/flow/lanes.ts'
import { keepErrand } from '../../store/jobs/jobs.ts'
import { countsNow, type StageCount } from '../../store/jobs/tally.ts'
import { AfterCommit } from '../after-commit.ts'
import type { Context } from '../context.ts'
import { logCorrelated } from '../log-correlated.ts'
import { retryWhileLocked, shortLockWait, splitOnFailure } from '../retry.ts'
import { ActionRunner } from './action-runner.ts'
import { ConditionBudget, type TurnResult } from './condition-budget.ts'
import { type JobToAdvance, LockedJob } from './locked-job.ts'

/** Most tasks that one transaction touches. */
const tasksPerTransaction = 1000
/** Most batches that a caller waits for; the rest is done after its answer. */
const batchesAwaited = 20

/**
 * Drives a job in transactions of its own, after `change` has been made to it. Answers when all is done, or, where very
 * many tasks are concerned, when it is decided and under way.
 */
export async function advanceJob<T = void>(
  context: Context,
  jobId: string,
  actor: string,
  change?: (locked: LockedJob, tx: Sql) => Promise<T> | T,
): Promise<T> {
  const { result, after } = await advanceAlone(context, jobId, actor, change)
  await runFollowUps(context, after)
  return result
}

/** One transaction's worth, in a transaction of its own. */
function advanceAlone<T>(
  context: Context,
  jobId: string,
  actor: string,
  change?: (locked: LockedJob, tx: Sql) => Promise<T> | T,
): Promise<{ result: T; after: AfterCommit }> {
  return retryWhileLocked(context, async bounds => {
    const after = new AfterCommit()
    const advance = (tx: Sql) => advanceOnce(tx, after, jobId, actor, change, budgetOf(context, jobId))
    return { result: await context.sql.begin(advance, bounds), after }
  })
}

/** A job that waits for a turn to evaluate its conditions has found out that they are costly. */
function budgetOf({ conditionTurns }: Context, jobId: string): ConditionBudget {
  if (conditionTurns.isWaiting(jobId)) return ConditionBudget.none()
  return conditionTurns.isFull ? ConditionBudget.whileFull() : ConditionBudget.normal()
}

/** Notifies workers and the babysitter after a commit, and continues with jobs that have more to do. */
export async function runFollowUps(context: Context, after: AfterCommit, batches = batchesAwaited): Promise<void> {
  context.wake.notify([...after.queues])
  if (after.hasFiles) context.fileSignal.notify()
  for (const jobId of after.postponedJobs) context.conditionTurns.enqueue(jobId, () => takeTurn(context, jobId))
  for (const jobId of after.unfinishedJobs) await continueJob(context, jobId, batches)
}

async function takeTurn(context: Context, jobId: string): Promise<TurnResult> {
  const budget = ConditionBudget.forTurn()
  try {
    const after = new AfterCommit()
    await context.sql.begin(tx => advanceOnce(tx, after, jobId, 'engine', undefined, budget), shortLockWait)
    await runFollowUps(context, after, 0)
    return { steps: budget.spent, needsAnother: after.postponedJobs.has(jobId) }
  } catch (error) {
    // The errand is kept. Unless the job has been deleted, the babysitter goes on with it.
    await logFailure(context, jobId, error)
    return { steps: budget.spent, needsAnother: false }
  }
}

const continuing = new Set<string>()

/** One more batch and one more, until the job has no errand left. */
async function continueJob(context: Context, jobId: string, batches: number): Promise<void> {
  for (let batch = 0; batch < batches; batch++) {
    const { after } = await advanceAlone(context, jobId, 'engine')
    const isUnfinished = after.unfinishedJobs.delete(jobId)
    await runFollowUps(context, after)
    if (!isUnfinished) return
  }
  // Nobody waits for these; what fails is taken up by the babysitter. One loop is enough for a job.
  if (continuing.has(jobId)) return
  continuing.add(jobId)
  void continueJob(context, jobId, Number.POSITIVE_INFINITY)
    .catch(error => logFailure(context, jobId, error))
    .finally(() => continuing.delete(jobId))
}

function logFailure(context: Context, jobId: string, error: unknown): Promise<void> {
  return logCorrelated(context, 'errand.failed', { entity: 'job', id: jobId }, { jobId, error: String(error) })
}

/** One transaction's worth. What follows its commit is added to `after`. */
export async function advanceOnce<T = void>(
  tx: Sql,
  after: AfterCommit,
  jobId: string,
  actor: string,
  change: ((locked: LockedJob, tx: Sql) => Promise<T> | T) | undefined,
  budget = ConditionBudget.normal(),
): Promise<T> {
  const locked = await LockedJob.lock(tx, jobId, actor)
  const result = (await change?.(locked, tx)) as T
  await new ActionRunner(tx, locked, actor, tasksPerTransaction, budget).runAll()
  after.wake(await LockedJob.writeAll(tx, [locked]))
  if (locked.startsListing) after.hasFiles = true
  if (locked.postponed.size > 0) after.postponedJobs.add(jobId)
  if (await savePendingWork(tx, locked)) after.unfinishedJobs.add(jobId)
  return result
}

/** So many appended counts are added up, even if nothing else is to be done. */
const maxAppended = 50
/** So many jobs share a transaction, and so many transactions run at once. */
const jobsPerTransaction = 50
const concurrentTransactions = 4

/**
 * Drives the jobs of these stages on, where there is something to do. Whoever settles looks after its own commit; of
 * two that settle the last two tasks at once, the later one sees both. If it dies before it looks, the babysitter
 * finds what it appended.
 */
export async function rollUp(context: Context, stageIds: readonly string[]): Promise<void> {
  if (stageIds.length === 0) return
  const { sql, wake } = context
  const counts = await countsNow(sql, stageIds)
  // A place among those that a stage may hold at once has become free.
  const limited = counts.filter(({ isLimited }) => isLimited).map(({ id }) => id)
  if (limited.length > 0) wake.notify(await limitedQueues(sql, limited))
  const stagesOf = new Map<string, string[]>()
  for (const { id, jobId } of counts.filter(needsAdvance)) {
    stagesOf.set(jobId, [...(stagesOf.get(jobId) ?? []), id])
  }
  const jobsToAdvance = [...stagesOf].map(([jobId, stageIds]) => ({ jobId, stageIds }))
  // Several at once, so that they share the waiting for the disk.
  for (let from = 0; from < jobsToAdvance.length; from += concurrentTransactions * jobsPerTransaction) {
    const starts = Array.from({ length: concurrentTransactions }, (_, n) => from + n * jobsPerTransaction)
    await Promise.all(starts.map(start => advanceJobs(context, jobsToAdvance.slice(start, start + jobsPerTransaction))))
  }
}

function needsAdvance(stage: StageCount): boolean {
  if (stage.appended > maxAppended || stage.beginsJob) return true
  if (isFinal(stageLifecycle, stage.state as StageState)) return stage.appended > 0
  const left = stage.total - stage.good - stage.bad
  if (left === 0 || (stage.state === 'pending' && stage.begun)) return true
  return stage.failFast && stage.bad - stage.badBefore > tolerated(stage.tolerate, stage.total)
}

/**
 * Drives several jobs, in one transaction and with the statements of one. Those that somebody else holds, and those
 * that have more to do than the rest of them together may, are gone on with one by one.
 */
async function advanceJobs(context: Context, jobsToAdvance: readonly JobToAdvance[]): Promise<void> {
  const advance = async (some: readonly JobToAdvance[]) => [
    await context.sql.begin(tx => advanceUnlocked(context, tx, some), shortLockWait),
  ]
  const alone = ({ jobId }: JobToAdvance, error: unknown) => {
    if (storeFault(error) !== 'locked') throw error
    return { after: new AfterCommit(), unfinished: [jobId] }
  }
  const results = await splitOnFailure(jobsToAdvance, advance, alone)
  for (const { after } of results) await runFollowUps(context, after)
  for (const jobId of results.flatMap(({ unfinished }) => unfinished)) {
    await advanceJob(context, jobId, 'engine').catch(error => {
      // The settle is already recorded. The babysitter drives the job once its row is free.
      if (storeFault(error) === 'locked') return void context.log('job.busy', { jobId })
      // A job that was deleted meanwhile needs no driving.
      unless('JOB_NOT_FOUND')(error)
    })
  }
}

async function advanceUnlocked({ conditionTurns }: Context, tx: Sql, jobsToAdvance: readonly JobToAdvance[]) {
  const lockedJobs = await LockedJob.lockAvailable(tx, jobsToAdvance, 'engine')
  let taskBudget = tasksPerTransaction
  const shared = conditionTurns.isFull ? ConditionBudget.whileFull() : ConditionBudget.normal()
  for (const locked of lockedJobs) {
    const budget = conditionTurns.isWaiting(locked.job.id) ? ConditionBudget.none() : shared
    taskBudget = await new ActionRunner(tx, locked, 'engine', taskBudget, budget).runAll()
  }
  const after = new AfterCommit()
  after.wake(await LockedJob.writeAll(tx, lockedJobs))
  after.hasFiles = lockedJobs.some(({ startsListing }) => startsListing)
  const unfinished = new Set(jobsToAdvance.map(({ jobId }) => jobId))
  for (const locked of lockedJobs) {
    const isUnfinished = await savePendingWork(tx, locked)
    if (!isUnfinished && locked.postponed.size === 0) unfinished.delete(locked.job.id)
  }
  return { after, unfinished: [...unfinished] }
}

/** Whether there is something left to do to tasks. What is left is kept where the babysitter finds it. */
async function savePendingWork(tx: Sql, locked: LockedJob): Promise<boolean> {
  const { job, stages, postponed } = locked
  const isUnfinished = stages.some(stage => stage.busy && !postponed.has(stage))
  const isKept = isUnfinished || postponed.size > 0
  if (isKept || job.hasErrand) await keepErrand(tx, job.id, isKept)
  return isUnfinished
}
