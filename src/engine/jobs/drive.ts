/**
 * Drives a job: asks the kernel what comes next, does it, and asks again until there is nothing. All of it under the
 * job's lock. What concerns many tasks is done in batches, each a transaction of its own; if whoever drives dies
 * between two, the babysitter goes on (`pawl.errand`).
 *
 * Locks are taken in the order job, task; a settle takes tasks only, and drives the job afterwards. So the two cannot
 * wait for each other.
 */
import { unless } from '../../kernel/problem.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
import { setErrand } from '../../store/jobs/jobs.ts'
import { AfterCommit } from '../after-commit.ts'
import type { Context } from '../context.ts'
import { logCorrelated } from '../log-correlated.ts'
import { briefly, patiently, splitting } from '../split.ts'
import { Allowance, type Turn } from './condition-budget.ts'
import type { JobToDrive } from './job-patch.ts'
import { JobRun } from './job-run.ts'
import { JobBook } from './locked-job.ts'

/** Most tasks that one transaction touches. */
const errandSize = 1000
/** Most batches that a caller waits for; the rest is done after its answer. */
const batchesAwaited = 20

/**
 * Drives a job in transactions of its own, after `change` has been made to it. Answers when all is done, or, where very
 * many tasks are concerned, when it is decided and under way.
 */
export async function driveJob<T = void>(
  context: Context,
  jobId: string,
  actor: string,
  change?: (book: JobBook, tx: Sql) => Promise<T> | T,
): Promise<T> {
  const { result, after } = await driveAlone(context, jobId, actor, change)
  await followUp(context, after)
  return result
}

/** One transaction's worth, in a transaction of its own. */
function driveAlone<T>(
  context: Context,
  jobId: string,
  actor: string,
  change?: (book: JobBook, tx: Sql) => Promise<T> | T,
): Promise<{ result: T; after: AfterCommit }> {
  return patiently(context, async bounds => {
    const after = new AfterCommit()
    const drive = (tx: Sql) => driveOnce(tx, after, jobId, actor, change, allowanceOf(context, jobId))
    return { result: await context.sql.begin(drive, bounds), after }
  })
}

/** A job that waits for a turn to evaluate its conditions has found out that they are costly. */
function allowanceOf({ conditionTurns }: Context, jobId: string): Allowance {
  if (conditionTurns.isWaiting(jobId)) return Allowance.none()
  return conditionTurns.isFull ? Allowance.whileFull() : Allowance.usual()
}

/** Notifies workers and the babysitter after a commit, and continues with jobs that have more to do. */
export async function followUp(context: Context, after: AfterCommit, batches = batchesAwaited): Promise<void> {
  context.wake.tell([...after.queues])
  if (after.hasFiles) context.fileBell.ring()
  for (const jobId of after.postponedJobs) context.conditionTurns.wait(jobId, () => takeTurn(context, jobId))
  for (const jobId of after.unfinishedJobs) await goOn(context, jobId, batches)
}

async function takeTurn(context: Context, jobId: string): Promise<Turn> {
  const allowance = Allowance.turn()
  try {
    const after = new AfterCommit()
    await context.sql.begin(tx => driveOnce(tx, after, jobId, 'engine', undefined, allowance), briefly)
    await followUp(context, after, 0)
    return { steps: allowance.spent, again: after.postponedJobs.has(jobId) }
  } catch (error) {
    // The errand is kept. Unless the job has been deleted, the babysitter goes on with it.
    await tellFailure(context, jobId, error)
    return { steps: allowance.spent, again: false }
  }
}

const goingOn = new Set<string>()

/** One more batch and one more, until the job has no errand left. */
async function goOn(context: Context, jobId: string, batches: number): Promise<void> {
  for (let batch = 0; batch < batches; batch++) {
    const { after } = await driveAlone(context, jobId, 'engine')
    const isUnfinished = after.unfinishedJobs.delete(jobId)
    await followUp(context, after)
    if (!isUnfinished) return
  }
  // Nobody waits for these; what fails is taken up by the babysitter. One loop is enough for a job.
  if (goingOn.has(jobId)) return
  goingOn.add(jobId)
  void goOn(context, jobId, Number.POSITIVE_INFINITY)
    .catch(error => tellFailure(context, jobId, error))
    .finally(() => goingOn.delete(jobId))
}

function tellFailure(context: Context, jobId: string, error: unknown): Promise<void> {
  return logCorrelated(context, 'errand.failed', { entity: 'job', id: jobId }, { jobId, error: String(error) })
}

/** One transaction's worth. What follows its commit is added to `after`. */
export async function driveOnce<T = void>(
  tx: Sql,
  after: AfterCommit,
  jobId: string,
  actor: string,
  change: ((book: JobBook, tx: Sql) => Promise<T> | T) | undefined,
  allowance = Allowance.usual(),
): Promise<T> {
  const book = await JobBook.open(tx, jobId, actor)
  const result = (await change?.(book, tx)) as T
  await new JobRun(tx, book, actor, errandSize, allowance).toTheEnd()
  after.wake(await JobBook.close(tx, [book]))
  if (book.lists) after.hasFiles = true
  if (book.postponed.size > 0) after.postponedJobs.add(jobId)
  if (await keepErrandOf(tx, book)) after.unfinishedJobs.add(jobId)
  return result
}

/**
 * Drives several jobs, in one transaction and with the statements of one. Those that somebody else holds, and those
 * that have more to do than the rest of them together may, are gone on with one by one.
 */
export async function driveJobs(context: Context, asks: readonly JobToDrive[]): Promise<void> {
  const drive = async (some: readonly JobToDrive[]) => [
    await context.sql.begin(tx => driveFree(context, tx, some), briefly),
  ]
  const alone = ({ jobId }: JobToDrive, error: unknown) => {
    if (storeFault(error) !== 'locked') throw error
    return { after: new AfterCommit(), unfinished: [jobId] }
  }
  const driven = await splitting(asks, drive, alone)
  for (const { after } of driven) await followUp(context, after)
  for (const jobId of driven.flatMap(({ unfinished }) => unfinished)) {
    await driveJob(context, jobId, 'engine').catch(error => {
      // The settle is already recorded. The babysitter drives the job once its row is free.
      if (storeFault(error) === 'locked') return void context.log('job.busy', { jobId })
      // A job that was deleted meanwhile needs no driving.
      unless('JOB_NOT_FOUND')(error)
    })
  }
}

async function driveFree({ conditionTurns }: Context, tx: Sql, asks: readonly JobToDrive[]) {
  const books = await JobBook.openFree(tx, asks, 'engine')
  let room = errandSize
  const shared = conditionTurns.isFull ? Allowance.whileFull() : Allowance.usual()
  for (const book of books) {
    const allowance = conditionTurns.isWaiting(book.job.id) ? Allowance.none() : shared
    room = await new JobRun(tx, book, 'engine', room, allowance).toTheEnd()
  }
  const after = new AfterCommit()
  after.wake(await JobBook.close(tx, books))
  after.hasFiles = books.some(({ lists }) => lists)
  const unfinished = new Set(asks.map(({ jobId }) => jobId))
  for (const book of books) {
    const isUnfinished = await keepErrandOf(tx, book)
    if (!isUnfinished && book.postponed.size === 0) unfinished.delete(book.job.id)
  }
  return { after, unfinished: [...unfinished] }
}

/** Whether there is something left to do to tasks. What is left is kept where the babysitter finds it. */
async function keepErrandOf(tx: Sql, book: JobBook): Promise<boolean> {
  const { job, stages, postponed } = book
  const isUnfinished = stages.some(stage => stage.busy && !postponed.has(stage))
  const isKept = isUnfinished || postponed.size > 0
  if (isKept || job.hasErrand) await setErrand(tx, job.id, isKept)
  return isUnfinished
}
