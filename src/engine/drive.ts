/**
 * Drives a job: asks the kernel what comes next, does it, and asks again until there is nothing. All of it under the
 * job's lock. What concerns many tasks is done in batches, each a transaction of its own; if whoever drives dies
 * between two, the babysitter goes on (`pawl.errand`).
 *
 * Locks are taken in the order job, task; a settle takes tasks only, and drives the job afterwards. So the two cannot
 * wait for each other.
 */
import { unless } from '../kernel/problem.ts'
import { hasErrand, keepErrand } from '../store/jobs.ts'
import type { Sql } from '../store/sql.ts'
import { storeFault } from '../store/store-fault.ts'
import { Allowance, type Turn } from './condition-budget.ts'
import type { Context } from './context.ts'
import { logCorrelated } from './correlated.ts'
import { type Ask, JobBook } from './job-book.ts'
import { JobRun } from './job-run.ts'
import { briefly, patiently, splitting } from './split.ts'

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
  const first = await patiently(context, bounds =>
    context.sql.begin(tx => driveOnce(tx, jobId, actor, change, allowanceOf(context, jobId)), bounds),
  )
  tellOf(context, jobId, first)
  if (first.isUnfinished) await goOn(context, jobId, batchesAwaited)
  return first.result
}

/** A job that waits for a turn to evaluate its conditions has found out that they are costly. */
function allowanceOf({ conditionTurns }: Context, jobId: string): Allowance {
  if (conditionTurns.isWaiting(jobId)) return Allowance.none()
  return conditionTurns.isFull ? Allowance.whileFull() : Allowance.usual()
}

/** Tells those who wait for what a transaction has done or left to do. */
function tellOf(context: Context, jobId: string, { queues, lists, isPostponed }: Driven<unknown>): void {
  context.wake.tell(queues)
  if (lists) context.fileBell.ring()
  if (isPostponed) context.conditionTurns.wait(jobId, () => takeTurn(context, jobId))
}

async function takeTurn(context: Context, jobId: string): Promise<Turn> {
  const allowance = Allowance.turn()
  try {
    const driven = await context.sql.begin(tx => driveOnce<void>(tx, jobId, 'engine', undefined, allowance), briefly)
    tellOf(context, jobId, driven)
    if (driven.isUnfinished) await goOn(context, jobId, 0)
    return { steps: allowance.spent, again: driven.isPostponed }
  } catch (error) {
    // The errand is kept. Unless the job has been deleted, the babysitter goes on with it.
    await tellFailure(context, jobId, error)
    return { steps: allowance.spent, again: false }
  }
}

/** Goes on with what a transaction of its own has left to do. */
export async function finishErrands(context: Context, jobId: string): Promise<void> {
  if (await hasErrand(context.sql, jobId)) await goOn(context, jobId, batchesAwaited)
}

const goingOn = new Set<string>()

/** One more batch and one more, until the job has no errand left. */
async function goOn(context: Context, jobId: string, batches: number): Promise<void> {
  for (let batch = 0; batch < batches; batch++) {
    const driven = await patiently(context, bounds =>
      context.sql.begin(tx => driveOnce<void>(tx, jobId, 'engine', undefined, allowanceOf(context, jobId)), bounds),
    )
    tellOf(context, jobId, driven)
    if (!driven.isUnfinished) return
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

export interface Driven<T> {
  readonly result: T
  readonly queues: string[]
  readonly isUnfinished: boolean
  /** Conditions are left to a turn of the job. */
  readonly isPostponed: boolean
  /** The inputs of a stage are to be found. */
  readonly lists: boolean
}

/** One transaction's worth. */
export async function driveOnce<T>(
  tx: Sql,
  jobId: string,
  actor: string,
  change: ((book: JobBook, tx: Sql) => Promise<T> | T) | undefined,
  allowance = Allowance.usual(),
): Promise<Driven<T>> {
  const book = await JobBook.open(tx, jobId, actor)
  const result = (await change?.(book, tx)) as T
  await new JobRun(tx, book, actor, errandSize, allowance).toTheEnd()
  const queues = await JobBook.close(tx, [book])
  return {
    result,
    queues,
    isUnfinished: await keepErrandOf(tx, book),
    isPostponed: book.postponed.size > 0,
    lists: book.lists,
  }
}

/**
 * Drives several jobs, in one transaction and with the statements of one. Those that somebody else holds, and those
 * that have more to do than the rest of them together may, are gone on with one by one.
 */
export async function driveJobs(context: Context, asks: readonly Ask[]): Promise<void> {
  const drive = async (some: readonly Ask[]) => [await context.sql.begin(tx => driveFree(context, tx, some), briefly)]
  const alone = ({ jobId }: Ask, error: unknown) => {
    if (storeFault(error) !== 'locked') throw error
    return { queues: [], unfinished: [jobId], lists: false }
  }
  const driven = await splitting(asks, drive, alone)
  context.wake.tell(driven.flatMap(({ queues }) => queues))
  if (driven.some(({ lists }) => lists)) context.fileBell.ring()
  for (const jobId of driven.flatMap(({ unfinished }) => unfinished)) {
    await driveJob(context, jobId, 'engine').catch(error => {
      // The settle is already recorded. The babysitter drives the job once its row is free.
      if (storeFault(error) === 'locked') return void context.log('job.busy', { jobId })
      // A job that was deleted meanwhile needs no driving.
      unless('JOB_NOT_FOUND')(error)
    })
  }
}

async function driveFree({ conditionTurns }: Context, tx: Sql, asks: readonly Ask[]) {
  const books = await JobBook.openFree(tx, asks, 'engine')
  let room = errandSize
  const shared = conditionTurns.isFull ? Allowance.whileFull() : Allowance.usual()
  for (const book of books) {
    const allowance = conditionTurns.isWaiting(book.job.id) ? Allowance.none() : shared
    room = await new JobRun(tx, book, 'engine', room, allowance).toTheEnd()
  }
  const queues = await JobBook.close(tx, books)
  const unfinished = new Set(asks.map(({ jobId }) => jobId))
  for (const book of books) {
    const isUnfinished = await keepErrandOf(tx, book)
    if (!isUnfinished && book.postponed.size === 0) unfinished.delete(book.job.id)
  }
  return { queues, unfinished: [...unfinished], lists: books.some(({ lists }) => lists) }
}

/** Whether there is something left to do to tasks. What is left is kept where the babysitter finds it. */
async function keepErrandOf(tx: Sql, book: JobBook): Promise<boolean> {
  const { job, stages, postponed } = book
  const isUnfinished = stages.some(stage => stage.busy && !postponed.has(stage))
  const isKept = isUnfinished || postponed.size > 0
  if (isKept || job.hasErrand) await keepErrand(tx, job.id, isKept)
  return isUnfinished
}
