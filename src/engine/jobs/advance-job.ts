/**
 * Advances a job under its lock: asks the kernel for the next action, performs it, and repeats until there is none.
 * Actions on many tasks are done in batches, each in a transaction of its own. If the process dies between two batches,
 * the babysitter continues (`pawl.errand`).
 *
 * Locks are taken in the order that ARCHITECTURE.md states. A settle locks only tasks and advances the job afterwards, so
 * the two cannot deadlock.
 */
import { isFinal } from '../../kernel/lifecycle.ts'
import { ignoring } from '../../kernel/problem.ts'
import { tolerated } from '../../kernel/rollup.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
import { findLimitedQueues } from '../../store/flow/lanes.ts'
import { readStageCounts, type StageCount, setErrand } from '../../store/jobs/jobs.ts'
import { type Context, logCorrelated } from '../context.ts'
import { retryWhileLocked, shortLockWait, splitOnFailure } from '../retry.ts'
import { ActionRunner } from './action-runner.ts'
import type { JobToAdvance } from './dependency-graph.ts'
import { ConditionBudget, type TurnResult } from './evaluate-conditions.ts'
import { LockedJob } from './locked-job.ts'

/** Maximum number of tasks that one transaction touches. */
const tasksPerTransaction = 1000
/** Maximum number of batches before the caller gets its answer. The rest is done afterwards. */
const batchesAwaited = 20

/**
 * Applies `change` to a job and advances it, in transactions of its own. Returns when everything is done or, if very
 * many tasks are affected, when the outcome is decided and the work has started.
 */
export async function advanceJob<T = void>(
  context: Context,
  jobId: string,
  actor: string,
  change?: (locked: LockedJob, tx: Sql) => Promise<T> | T,
): Promise<T> {
  const { result, after } = await advanceInOwnTransaction(context, jobId, actor, change)
  await runAfterCommit(context, after)
  context.ends.notify([jobId])
  return result
}

/** Advances a job in one transaction of its own. */
function advanceInOwnTransaction<T>(
  context: Context,
  jobId: string,
  actor: string,
  change?: (locked: LockedJob, tx: Sql) => Promise<T> | T,
): Promise<{ result: T; after: AfterCommit }> {
  return retryWhileLocked(context, async bounds => {
    const after = new AfterCommit()
    const advance = (tx: Sql) =>
      advanceInTransaction(context, tx, after, jobId, actor, change, context.conditionTurns.budgetFor(jobId))
    return { result: await context.sql.begin(advance, bounds), after }
  })
}

/** Does everything that follows a commit: notifies workers and the babysitter, and advances jobs. */
export async function runAfterCommit(context: Context, after: AfterCommit, batches = batchesAwaited): Promise<void> {
  context.wake.notify([...after.queues])
  if (after.hasFiles) context.fileSignal.notify()
  for (const jobId of after.postponedJobs) context.conditionTurns.enqueue(jobId, () => takeTurn(context, jobId))
  for (const jobId of after.unfinishedJobs) await continueJob(context, jobId, batches)
  await advanceJobsOfStages(context, [...after.stages])
}

async function takeTurn(context: Context, jobId: string): Promise<TurnResult> {
  const budget = ConditionBudget.forTurn()
  try {
    const after = new AfterCommit()
    await context.sql.begin(
      tx => advanceInTransaction(context, tx, after, jobId, 'engine', undefined, budget),
      shortLockWait,
    )
    await runAfterCommit(context, after, 0)
    return { steps: budget.spent, needsAnother: after.postponedJobs.has(jobId) }
  } catch (error) {
    // The pending work is stored. Unless the job has been deleted, the babysitter continues it.
    await logFailure(context, jobId, error)
    return { steps: budget.spent, needsAnother: false }
  }
}

const continuing = new Set<string>()

/** Runs one batch after another until the job has no pending work. */
async function continueJob(context: Context, jobId: string, batches: number): Promise<void> {
  for (let batch = 0; batch < batches; batch++) {
    const { after } = await advanceInOwnTransaction(context, jobId, 'engine')
    const isUnfinished = after.unfinishedJobs.delete(jobId)
    await runAfterCommit(context, after)
    if (!isUnfinished) return
  }
  // Nobody waits for these batches. The babysitter retries if they fail. One loop per job is enough.
  if (continuing.has(jobId)) return
  continuing.add(jobId)
  void continueJob(context, jobId, Number.POSITIVE_INFINITY)
    .catch(error => logFailure(context, jobId, error))
    .finally(() => continuing.delete(jobId))
}

function logFailure(context: Context, jobId: string, error: unknown): Promise<void> {
  return logCorrelated(context, 'errand.failed', { entity: 'job', id: jobId }, { jobId, error: String(error) })
}

/** Advances a job as far as one transaction allows, and adds the work that follows the commit to `after`. */
export async function advanceInTransaction<T = void>(
  context: Pick<Context, 'types'>,
  tx: Sql,
  after: AfterCommit,
  jobId: string,
  actor: string,
  change: ((locked: LockedJob, tx: Sql) => Promise<T> | T) | undefined,
  budget = new ConditionBudget(),
): Promise<T> {
  const locked = await LockedJob.lock(tx, jobId, actor)
  const result = (await change?.(locked, tx)) as T
  await new ActionRunner(context, tx, locked, actor, tasksPerTransaction, budget).runAll()
  after.addQueues(await LockedJob.writeAll(tx, [locked]))
  if (locked.startsListing) after.hasFiles = true
  if (locked.postponed.size > 0) after.postponedJobs.add(jobId)
  if (await savePendingWork(tx, locked)) after.unfinishedJobs.add(jobId)
  return result
}

/** Tallies are added up at this number of rows even if the job has nothing else to do. */
const maxAppended = 50
/** Batches of jobs to advance, and how many such transactions run concurrently. */
const jobsPerTransaction = 50
const concurrentTransactions = 4

/**
 * Advances the jobs of these stages if they have something to do. Each settle calls this after its own commit, so if
 * two transactions settle the last two tasks concurrently, the later one sees both. If the process dies before this
 * call, the babysitter finds the tallies.
 */
export async function advanceJobsOfStages(context: Context, stageIds: readonly string[]): Promise<void> {
  if (stageIds.length === 0) return
  const { sql, wake } = context
  const counts = await readStageCounts(sql, stageIds)
  // A concurrency slot of a limited stage has become free.
  const limited = counts.filter(({ isLimited }) => isLimited).map(({ id }) => id)
  if (limited.length > 0) wake.notify(await findLimitedQueues(sql, limited))
  const stagesOf = new Map<string, string[]>()
  for (const { id, jobId } of counts.filter(needsAdvance)) {
    stagesOf.set(jobId, [...(stagesOf.get(jobId) ?? []), id])
  }
  const jobsToAdvance = [...stagesOf].map(([jobId, stageIds]) => ({ jobId, stageIds }))
  // Several transactions at once share the wait for the disk.
  for (let from = 0; from < jobsToAdvance.length; from += concurrentTransactions * jobsPerTransaction) {
    const starts = Array.from({ length: concurrentTransactions }, (_, n) => from + n * jobsPerTransaction)
    await Promise.all(starts.map(start => advanceJobs(context, jobsToAdvance.slice(start, start + jobsPerTransaction))))
  }
  context.ends.notify(stagesOf.keys())
}

function needsAdvance(stage: StageCount): boolean {
  if (stage.appended > maxAppended || stage.beginsJob) return true
  if (isFinal(stageLifecycle, stage.state as StageState)) return stage.appended > 0
  const left = stage.total - stage.good - stage.bad
  if (left === 0 || (stage.state === 'pending' && stage.begun)) return true
  return stage.failFast && stage.bad - stage.badBefore > tolerated(stage.tolerate, stage.total)
}

/**
 * Advances several jobs in one transaction, with the same statements for all. Jobs that another transaction has locked,
 * and jobs that exceed the shared budget, are advanced one by one afterwards.
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
  for (const { after } of results) await runAfterCommit(context, after)
  for (const jobId of results.flatMap(({ unfinished }) => unfinished)) {
    await advanceJob(context, jobId, 'engine').catch(error => {
      // The settle is already recorded. The babysitter advances the job once its row is unlocked.
      if (storeFault(error) === 'locked') return void context.log('job.busy', { jobId })
      // The job was deleted meanwhile.
      ignoring('JOB_NOT_FOUND')(error)
    })
  }
}

async function advanceUnlocked(context: Context, tx: Sql, jobsToAdvance: readonly JobToAdvance[]) {
  const lockedJobs = await LockedJob.lockAvailable(tx, jobsToAdvance, 'engine')
  let taskBudget = tasksPerTransaction
  const shared = context.conditionTurns.newBudget()
  for (const locked of lockedJobs) {
    const budget = context.conditionTurns.budgetFor(locked.job.id, shared)
    taskBudget = await new ActionRunner(context, tx, locked, 'engine', taskBudget, budget).runAll()
  }
  const after = new AfterCommit()
  after.addQueues(await LockedJob.writeAll(tx, lockedJobs))
  after.hasFiles = lockedJobs.some(({ startsListing }) => startsListing)
  const unfinished = new Set(jobsToAdvance.map(({ jobId }) => jobId))
  for (const locked of lockedJobs) {
    const isUnfinished = await savePendingWork(tx, locked)
    if (!isUnfinished && locked.postponed.size === 0) unfinished.delete(locked.job.id)
  }
  return { after, unfinished: [...unfinished] }
}

/**
 * Stores whether the job has pending work, so that the babysitter can find it. Returns whether work on tasks is left.
 */
async function savePendingWork(tx: Sql, locked: LockedJob): Promise<boolean> {
  const { job, stages, postponed } = locked
  const isUnfinished = stages.some(stage => stage.busy && !postponed.has(stage))
  const isKept = isUnfinished || postponed.size > 0
  if (isKept || job.hasErrand) await setErrand(tx, job.id, isKept)
  return isUnfinished
}

/**
 * Collects the work to do after a transaction commits. Correctness does not depend on it: if the process dies first,
 * polling workers and the babysitter find the same work a few seconds later.
 */
export class AfterCommit {
  /** Queues with new work. Their waiting workers are woken. */
  readonly queues = new Set<string>()
  /** Stages whose counts have changed. Their jobs may have to advance. */
  readonly stages = new Set<string>()
  /** Jobs whose pending work on tasks does not fit into one transaction. */
  readonly unfinishedJobs = new Set<string>()
  /** Jobs that wait for a turn to evaluate their conditions. */
  readonly postponedJobs = new Set<string>()
  /** There are inputs to list or files to promote. */
  hasFiles = false

  addQueues(queues: Iterable<string>): void {
    for (const queue of queues) this.queues.add(queue)
  }

  addStages(stageIds: Iterable<string>): void {
    for (const id of stageIds) this.stages.add(id)
  }

  add(other: AfterCommit): void {
    this.addQueues(other.queues)
    this.addStages(other.stages)
    for (const id of other.unfinishedJobs) this.unfinishedJobs.add(id)
    for (const id of other.postponedJobs) this.postponedJobs.add(id)
    if (other.hasFiles) this.hasFiles = true
  }
}
