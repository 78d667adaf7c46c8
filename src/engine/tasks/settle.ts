/**
 * Writes the results of tasks, in batches that may come from several workers. No item makes a batch throw: it is
 * refused with a reason.
 */
import { type Report, settle, type TaskError, type TaskFacts } from '../../kernel/decide.ts'
import { causeLimits, causesOf } from '../../kernel/error-cause.ts'
import { isTransient, Problem } from '../../kernel/problem.ts'
import { type HeldTask, leaseOf, type Refusal, type SettledTask } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { findUnfinishedFiles } from '../../store/files/artifacts.ts'
import { succeedWithFiles } from '../../store/files/succeed-with-files.ts'
import { findJobOf } from '../../store/jobs/read-jobs.ts'
import { findEndEvents, succeedTasks } from '../../store/tasks/settle.ts'
import { lockTasks, stagesOfUpdates, type TaskUpdate, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import type { Context } from '../context.ts'
import { advanceInTransaction, advanceJob, advanceJobsOfStages } from '../jobs/advance-job.ts'
import type { LockedJob } from '../jobs/locked-job.ts'
import {
  findLocked,
  type Refused,
  type Reporter,
  type ReporterOf,
  refusal,
  refuseItem,
  splitOnFailure,
  withUniqueTasks,
} from '../retry.ts'
import { transact } from '../unit-of-work.ts'
import { addSpawned, checkSpawned } from './spawn.ts'

/**
 * Settles tasks. Most tasks are short and succeed, which takes one statement. The kernel decides everything else, and
 * the tasks that this statement did not find. If a task was already settled with the same outcome, the item is
 * accepted, because only the answer was lost. Stages and jobs advance before the answer.
 */
export async function reportSettled(
  context: Context,
  items: readonly SettledTask[],
  reporterOf: ReporterOf,
): Promise<Refused[]> {
  const stageIds = new Set<string>()
  const refused = await withUniqueTasks(items, turn => settleBatch(context, turn, reporterOf, stageIds))
  context.ends.notify(items.map(({ id }) => id))
  await advanceJobsOfStages(context, [...stageIds])
  return refused
}

async function settleBatch(
  context: Context,
  items: readonly SettledTask[],
  reporterOf: ReporterOf,
  stageIds: Set<string>,
): Promise<Refused[]> {
  const { sql } = context
  const write = (some: readonly SettledTask[], run: (batch: readonly SettledTask[]) => Promise<Unsettled[]>) =>
    splitOnFailure<SettledTask, Unsettled>(some, run, refuseItem, findLocked(sql))
  const others = items.filter(item => !isPlain(item))
  const plain = others.length === 0 ? items : items.filter(isPlain)
  const unsettled = await write(plain, batch => succeed(context, batch, stageIds))
  const toDecide = [
    ...others.filter(item => !spawns(item)),
    ...unsettled.flatMap(miss => ('refusal' in miss ? [] : [miss.item])),
  ]
  const missed = await write(toDecide, batch => decideAndWrite(context, batch, reporterOf, stageIds))
  for (const item of others.filter(spawns)) missed.push(...(await settleAndSpawn(context, item, reporterOf(item))))
  const refused = [...unsettled, ...missed].filter(miss => 'refusal' in miss)
  const unknown = missed.flatMap(miss => ('refusal' in miss ? [] : [miss.item]))
  const [late, maybeRepeated] = [true, false].map(isLate =>
    unknown.filter(item => (reporterOf(item).onlyFirst === true) === isLate),
  )
  const refusedLate = late!.map(item => ({ item, refusal: refusal(item, 'LEASE_LOST') }))
  return [...refused, ...refusedLate, ...(await refuseUnlessSettled(sql, maybeRepeated!, stageIds))]
}

const spawns = ({ spawn }: SettledTask) => spawn !== undefined && spawn.length > 0
const isPlain = (item: SettledTask) => item.outcome === 'succeeded' && item.partial !== true && !spawns(item)

/** An item whose task is not held, or that the database cannot store. */
type Unsettled = { readonly item: SettledTask } | Refused

async function succeed(context: Context, batch: readonly SettledTask[], touched: Set<string>): Promise<Unsettled[]> {
  // Tasks are always locked in the order of their ids.
  const { missed, stageIds } = await succeedTasks(context.sql, batch.toSorted(byId))
  for (const id of stageIds) touched.add(id)
  if (missed.length === 0) return []
  const others = await succeedWithFiles(context.sql, missed)
  for (const id of others.stageIds) touched.add(id)
  if (others.isStaged) context.fileSignal.notify()
  return others.missed.map(item => ({ item }))
}

const byId = (one: HeldTask, other: HeldTask) => (one.id < other.id ? -1 : 1)

/** Lets the kernel decide the outcome of each item. Returns those whose tasks are no longer held. */
async function decideAndWrite(
  context: Context,
  batch: readonly SettledTask[],
  reporterOf: ReporterOf,
  touched: Set<string>,
): Promise<Unsettled[]> {
  const { missed, rulings } = await context.sql.begin(tx => decideBatch(tx, batch, reporterOf))
  for (const id of stagesOfUpdates(rulings)) touched.add(id)
  if (rulings.some(({ task }) => task.files)) context.fileSignal.notify()
  tellFailures(batch, rulings, reporterOf)
  return missed
}

/** A worker cannot know what becomes of a failed task, because its settings and its earlier failures are here. */
function tellFailures(batch: readonly SettledTask[], rulings: readonly TaskUpdate[], reporterOf: ReporterOf): void {
  const failed = batch.filter(({ outcome }) => outcome === 'failed' || outcome === 'dead_lettered')
  if (failed.length === 0) return
  const rulingOf = new Map(rulings.map(ruling => [ruling.task.id, ruling]))
  for (const item of failed) {
    const ruling = rulingOf.get(item.id)
    if (ruling === undefined || ruling.task.epoch !== item.epoch) continue
    const { task, patch, steps } = ruling
    const state = steps.at(-1)!.to
    reporterOf(item).onFailed?.({
      id: item.id,
      epoch: item.epoch,
      state,
      attempts: task.settings.attempts + (task.settings.losses === null ? 0 : task.losses),
      retryInSeconds: state === 'retrying' ? (patch.runInSeconds ?? 0) : null,
    })
  }
}

async function decideBatch(tx: Sql, batch: readonly SettledTask[], reporterOf: ReporterOf) {
  const ids = batch.map(({ id }) => id)
  const locked = new Map((await lockTasks(tx, ids)).map(task => [task.id, task]))
  const missed: Unsettled[] = []
  const rulings: TaskUpdate[] = []
  const withFiles = batch.filter(({ id, outcome }) => outcome === 'succeeded' && locked.get(id)?.files === true)
  const unfinished = await findUnfinishedFiles(tx, withFiles)
  for (const item of batch) {
    const task = locked.get(item.id)
    const file = unfinished.get(item.id)
    if (task === undefined || task.epoch !== item.epoch || !isHeld(task)) missed.push({ item })
    else if (file !== undefined) missed.push({ item, refusal: unfinishedFile(item, file) })
    else {
      const report = task.historyBytes > longHistoryBytes ? shortened(toReport(item)) : toReport(item)
      const verdict = settle(task, report, Math.random())
      const { worker } = reporterOf(item)
      const actor = worker === null ? null : `worker:${worker}`
      if (verdict.ok) rulings.push({ task, steps: verdict.steps, patch: verdict.patch, actor })
    }
    // A second item for the same task in this batch finds it settled.
    locked.delete(item.id)
  }
  await writeTaskUpdates(tx, rulings, 'worker')
  return { missed, rulings }
}

/**
 * Settles a task and adds its spawned tasks, both or neither, under the fence. The job is locked first, as everywhere.
 */
async function settleAndSpawn(context: Context, item: SettledTask, reporter: Reporter): Promise<Unsettled[]> {
  const jobId = await findJobOf(context.sql, 'task', item.id)
  if (jobId === undefined) return [{ item }]
  try {
    if (jobId === null) throw new Problem('SPAWN_REFUSED', { id: item.id, why: 'it belongs to no job' })
    await checkSpawned(context, context.sql, item)
    return await advanceJob(context, jobId, `worker:${reporter.worker ?? 'unknown'}`, (locked, tx) =>
      settleAndSpawnIn(context, tx, locked, item, reporter),
    )
  } catch (error) {
    if (!(error instanceof Problem) || isTransient(error)) throw error
    return [{ item, refusal: refusal(item, error.code, error.message) }]
  }
}

async function settleAndSpawnIn(
  context: Context,
  tx: Sql,
  locked: LockedJob,
  item: SettledTask,
  reporter: Reporter,
): Promise<Unsettled[]> {
  const { spawn: spawned = [], ...report } = item
  const { missed, rulings } = await decideBatch(tx, [report], () => reporter)
  if (missed.length > 0) return missed.map(miss => ({ ...miss, item }))
  await addSpawned(context, tx, locked, { ownId: rulings[0]!.task.stageId!, spawned, allowedQueues: reporter.queues })
  await locked.recount(tx)
  return []
}

/** The task reported success but has registered a file without uploading it. */
function unfinishedFile(item: HeldTask, name: string): Refusal {
  const { code, message } = new Problem('FILES_UNFINISHED', { id: item.id, file: name })
  return refusal(item, code, message)
}

const isHeld = ({ state }: TaskFacts) => state === 'assigned' || state === 'running'

function toReport(item: SettledTask): Report {
  const { id: _id, epoch: _epoch, ranMs: _ranMs, spawn: _spawn, logs: _logs, ...report } = item
  return report
}

/**
 * Events are kept in the row of their task, so each attempt rewrites those before it. Beyond this size, further errors
 * and reasons are cut: a thousand attempts with a megabyte each would be more than the store can write.
 */
export const longHistoryBytes = 2 ** 20
export const shortTextLength = 1000

function shortened({ error, reason, ...report }: Report): Report {
  const cut = (value: unknown) =>
    (typeof value === 'string' ? value : JSON.stringify(value)).slice(0, shortTextLength).toWellFormed()
  const isLong = (name: string, value: unknown) => /^(message|stack|output)$/.test(name) && (value ?? null) !== null
  const cutError = ({ cause, errors, ...whole }: TaskError) =>
    ({
      ...Object.fromEntries(
        Object.entries(whole).map(([name, value]) => [name, isLong(name, value) ? cut(value) : value]),
      ),
      ...causesOf({ cause, errors }, { ...causeLimits, characters: shortTextLength }),
    }) as TaskError
  return {
    ...report,
    ...(reason !== undefined && { reason: cut(reason) }),
    ...(error !== undefined && { error: cutError(error) }),
  }
}

/** The event of (task, epoch) distinguishes a repeated settle from a late one. */
async function refuseUnlessSettled(sql: Sql, items: readonly SettledTask[], touched?: Set<string>): Promise<Refused[]> {
  if (items.length === 0) return []
  const ends = await findEndEvents(sql, items)
  const endByLease = new Map(ends.map(end => [leaseOf(end), end]))
  return items.flatMap(item => {
    const end = endByLease.get(leaseOf(item))
    const same = end?.cause === `reported_${item.outcome}` && end.actor.startsWith('worker:')
    // The process that settled it may have died before it advanced the stage, or settled it in a caller's transaction.
    if (same && end.stageId !== null) touched?.add(end.stageId)
    return same ? [] : [{ item, refusal: refusal(item, 'LEASE_LOST') }]
  })
}

/**
 * Settles one task in a caller's transaction, under the same fence. Its stage and job advance after the commit, because
 * a job is never locked after a task: either when the worker reports the task as usual, or by the babysitter, which
 * finds the tally. If the task spawns others, the job is locked first and advances in the transaction.
 */
export function settleIn(context: Context, sql: Sql, item: SettledTask, worker: string): Promise<Refused[]> {
  const reporter = { worker, queues: null }
  return transact(context, { tx: sql }, undefined, async (tx, after) => {
    if (spawns(item)) {
      const jobId = await findJobOf(tx, 'task', item.id)
      if (jobId === null) throw new Problem('SPAWN_REFUSED', { id: item.id, why: 'it belongs to no job' })
      if (jobId === undefined) return [{ item, refusal: refusal(item, 'LEASE_LOST') }]
      await checkSpawned(context, tx, item)
      const settleLocked = (locked: LockedJob, inner: Sql) => settleAndSpawnIn(context, inner, locked, item, reporter)
      const result = await advanceInTransaction(context, tx, after, jobId, `worker:${worker}`, settleLocked)
      const refused = result.filter(miss => 'refusal' in miss)
      return result.length === refused.length ? refused : refuseUnlessSettled(tx, [item])
    }
    const { missed } = isPlain(item) ? await succeedTasks(tx, [item]) : { missed: [item] }
    if (missed.length === 0) return []
    const ruled = await decideBatch(tx, missed, () => reporter)
    const refused = ruled.missed.filter(miss => 'refusal' in miss)
    return ruled.missed.length === refused.length ? refused : refuseUnlessSettled(tx, [item])
  })
}
