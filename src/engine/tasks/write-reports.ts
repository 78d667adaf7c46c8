/**
 * What workers report, batch by batch; a batch may be of several. Nothing here throws for an item: it is refused, and
 * says why.
 */
import { type Report, settle, type TaskFacts } from '../../kernel/decide.ts'
import { Problem, type ProblemCode, problems, willPass } from '../../kernel/problem.ts'
import { type HeldTask, leaseOf, type Refusal, type SettledTask, type StartedTask } from '../../protocol/tasks/sync.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
import { findUnfinishedFiles } from '../../store/files/artifacts.ts'
import { findJobOf } from '../../store/jobs/read-jobs.ts'
import { findEndEvents, startTasks, succeedTasks } from '../../store/tasks/settle.ts'
import {
  findLockedTasks,
  lockTasks,
  stagesOfUpdates,
  type TaskUpdate,
  writeTaskUpdates,
} from '../../store/tasks/task-updates.ts'
import type { Context } from '../context.ts'
import { driveJob, driveOnce } from '../jobs/drive.ts'
import type { JobBook } from '../jobs/locked-job.ts'
import { rollUp } from '../jobs/roll-up.ts'
import { splitting } from '../split.ts'
import { transact } from '../unit-of-work.ts'
import { spawnInto } from './spawn.ts'

/**
 * Settles. Most tasks are short and succeed, which is one statement; what that did not find, and everything else, the
 * kernel decides. One that was settled before with the same outcome is as good as settled now: its answer was lost.
 * What their ends make of stages and jobs is done before the answer.
 */
export async function reportSettled(
  context: Context,
  items: readonly SettledTask[],
  speakerOf: SpeakerOf,
): Promise<Refused[]> {
  const stageIds = new Set<string>()
  const refused = await inTurn(items, turn => settleOnce(context, turn, speakerOf, stageIds))
  await rollUp(context, [...stageIds])
  return refused
}

/** Who says something, and the queues that its key is for; null: all of them. */
export interface Speaker {
  readonly worker: string
  readonly queues: readonly string[] | null
}

export type SpeakerOf = (item: HeldTask) => Speaker

export interface Refused {
  readonly item: HeldTask
  readonly refusal: Refusal
}

async function settleOnce(
  context: Context,
  items: readonly SettledTask[],
  speakerOf: SpeakerOf,
  stageIds: Set<string>,
): Promise<Refused[]> {
  const { sql } = context
  const rest = items.filter(item => !isPlain(item))
  const quick = rest.length === 0 ? items : items.filter(isPlain)
  const held = heldAmong(sql)
  const left = await splitting<SettledTask, Miss>(quick, batch => succeed(sql, batch, stageIds), bad, held)
  const slow = [...rest.filter(item => !spawns(item)), ...left.flatMap(miss => ('refusal' in miss ? [] : [miss.item]))]
  const missed = await splitting<SettledTask, Miss>(
    slow,
    batch => decideAndWrite(context, batch, speakerOf, stageIds),
    bad,
    held,
  )
  for (const item of rest.filter(spawns)) missed.push(...(await settleAndSpawn(context, item, speakerOf(item))))
  const refused = [...left, ...missed].filter(miss => 'refusal' in miss)
  const unknown = missed.flatMap(miss => ('refusal' in miss ? [] : [miss.item]))
  return [...refused, ...(await settledBefore(sql, unknown, stageIds))]
}

/** The items whose tasks another transaction holds. */
const heldAmong =
  (sql: Sql) =>
  async <Item extends HeldTask>(items: readonly Item[]): Promise<ReadonlySet<Item>> => {
    const locked = await findLockedTasks(
      sql,
      items.map(({ id }) => id),
    )
    return new Set(items.filter(({ id }) => locked.has(id)))
  }

const spawns = ({ spawn }: SettledTask) => spawn !== undefined && spawn.length > 0
const isPlain = (item: SettledTask) => item.outcome === 'succeeded' && item.partial !== true && !spawns(item)

/** An item that a statement did not find held, or that the database cannot take. */
type Miss = { readonly item: SettledTask } | Refused

async function succeed(sql: Sql, batch: readonly SettledTask[], touched: Set<string>): Promise<Miss[]> {
  // In the order of their ids, as everyone locks tasks.
  const { missed, stageIds } = await succeedTasks(sql, batch.toSorted(byId))
  for (const id of stageIds) touched.add(id)
  return missed.map(item => ({ item }))
}

const byId = (one: HeldTask, other: HeldTask) => (one.id < other.id ? -1 : 1)

/** Failures and the rest: the kernel decides what becomes of each. Returns those that are not held any more. */
async function decideAndWrite(
  context: Context,
  batch: readonly SettledTask[],
  speakerOf: SpeakerOf,
  touched: Set<string>,
): Promise<Miss[]> {
  const { missed, rulings } = await context.sql.begin(tx => ruleOn(tx, batch, speakerOf))
  for (const id of stagesOfUpdates(rulings)) touched.add(id)
  if (rulings.some(({ task }) => task.files)) context.fileBell.ring()
  return missed
}

async function ruleOn(tx: Sql, batch: readonly SettledTask[], speakerOf: SpeakerOf) {
  const ids = batch.map(({ id }) => id)
  const locked = new Map((await lockTasks(tx, ids)).map(task => [task.id, task]))
  const missed: Miss[] = []
  const rulings: TaskUpdate[] = []
  const withFiles = batch.filter(({ id, outcome }) => outcome === 'succeeded' && locked.get(id)?.files === true)
  const unfinished = await findUnfinishedFiles(tx, withFiles)
  for (const item of batch) {
    const task = locked.get(item.id)
    const file = unfinished.get(item.id)
    if (task === undefined || task.epoch !== item.epoch || !isHeld(task)) missed.push({ item })
    else if (file !== undefined) missed.push({ item, refusal: unfinishedFile(item, file) })
    else {
      const verdict = settle(task, toReport(item), Math.random())
      const actor = `worker:${speakerOf(item).worker}`
      if (verdict.ok) rulings.push({ task, steps: verdict.steps, patch: verdict.patch, actor })
    }
    // A second word on the same task in one batch finds it settled.
    locked.delete(item.id)
  }
  await writeTaskUpdates(tx, rulings, 'worker')
  return { missed, rulings }
}

/** A task that makes more tasks: both or neither, under the fence. The job is locked first, as everywhere. */
async function settleAndSpawn(context: Context, item: SettledTask, speaker: Speaker): Promise<Miss[]> {
  const jobId = await findJobOf(context.sql, 'task', item.id)
  if (jobId === undefined) return [{ item }]
  try {
    if (jobId === null) throw new Problem('SPAWN_REFUSED', { id: item.id, why: 'it belongs to no job' })
    return await driveJob(context, jobId, `worker:${speaker.worker}`, (book, tx) =>
      ruleAndSpawn(context, tx, book, item, speaker),
    )
  } catch (error) {
    if (!(error instanceof Problem) || willPass(error)) throw error
    return [{ item, refusal: { ...refusal(item, error.code), message: error.message } }]
  }
}

async function ruleAndSpawn(
  context: Context,
  tx: Sql,
  book: JobBook,
  item: SettledTask,
  speaker: Speaker,
): Promise<Miss[]> {
  const { spawn: spawned = [], ...report } = item
  const { missed, rulings } = await ruleOn(tx, [report], () => speaker)
  if (missed.length > 0) return missed.map(miss => ({ ...miss, item }))
  await spawnInto(context, tx, book, { ownId: rulings[0]!.task.stageId!, spawned, within: speaker.queues })
  await book.recount(tx)
  return []
}

/** It says that all went well, but has registered a file and not uploaded it. */
function unfinishedFile(item: HeldTask, name: string): Refusal {
  const { code, message } = new Problem('FILES_UNFINISHED', { id: item.id, file: name })
  return { ...refusal(item, code), message }
}

const isHeld = ({ state }: TaskFacts) => state === 'assigned' || state === 'running'

function toReport(item: SettledTask): Report {
  const { id: _id, epoch: _epoch, ranMs: _ranMs, spawn: _spawn, logs: _logs, ...report } = item
  return report
}

/** The event of (task, epoch) tells a settle that is sent again from one that comes too late. */
async function settledBefore(sql: Sql, items: readonly SettledTask[], touched?: Set<string>): Promise<Refused[]> {
  if (items.length === 0) return []
  const ends = await findEndEvents(sql, items)
  const saidBy = new Map(ends.map(end => [leaseOf(end), end]))
  return items.flatMap(item => {
    const end = saidBy.get(leaseOf(item))
    const same = end?.cause === `reported_${item.outcome}` && end.actor.startsWith('worker:')
    // Whoever settled it may have died before it looked at the stage, or could not: it was in a caller's transaction.
    if (same && end.stageId !== null) touched?.add(end.stageId)
    return same ? [] : [{ item, refusal: refusal(item, 'LEASE_LOST') }]
  })
}

/**
 * Settles one task in a caller's transaction, under the same fence. Its stage and job follow after the commit, for a job
 * is never locked after a task: when the worker reports it as always, or by the babysitter, which finds the counts
 * that were appended. With tasks to spawn the job is locked first, and driven on in the transaction.
 */
export function settleIn(context: Context, sql: Sql, item: SettledTask, worker: string): Promise<Refused[]> {
  const speaker = { worker, queues: null }
  return transact(context, { tx: sql }, undefined, async (tx, after) => {
    if (spawns(item)) {
      const jobId = await findJobOf(tx, 'task', item.id)
      if (jobId === null) throw new Problem('SPAWN_REFUSED', { id: item.id, why: 'it belongs to no job' })
      if (jobId === undefined) return [{ item, refusal: refusal(item, 'LEASE_LOST') }]
      const drive = (book: JobBook, inner: Sql) => ruleAndSpawn(context, inner, book, item, speaker)
      const result = await driveOnce(tx, after, jobId, `worker:${worker}`, drive)
      const refused = result.filter(miss => 'refusal' in miss)
      return result.length === refused.length ? refused : settledBefore(tx, [item])
    }
    const { missed } = isPlain(item) ? await succeedTasks(tx, [item]) : { missed: [item] }
    if (missed.length === 0) return []
    const ruled = await ruleOn(tx, missed, () => speaker)
    const refused = ruled.missed.filter(miss => 'refusal' in miss)
    return ruled.missed.length === refused.length ? refused : settledBefore(tx, [item])
  })
}

export async function reportStarts(
  context: Context,
  items: readonly StartedTask[],
  speakerOf: SpeakerOf,
): Promise<Refused[]> {
  const touched = new Set<string>()
  const run = async (batch: readonly StartedTask[]) => {
    const { started, stageIds } = await startTasks(
      context.sql,
      batch,
      batch.map(item => speakerOf(item).worker),
    )
    for (const id of stageIds) touched.add(id)
    return batch.flatMap(item => (started.has(item.id) ? [] : [{ item, refusal: refusal(item, 'LEASE_LOST') }]))
  }
  const refused = await inTurn(items, turn => splitting(turn, run, unfit, heldAmong(context.sql)))
  await rollUp(context, [...touched])
  return refused
}

/**
 * Statements tell tasks apart by their id. A batch that names one twice, as a worker does that lost a task and has
 * claimed it again, is taken in turns that each name it once.
 */
export async function inTurn<Item extends HeldTask>(
  items: readonly Item[],
  run: (turn: readonly Item[]) => Promise<Refused[]>,
): Promise<Refused[]> {
  if (items.length === 0) return []
  const named = new Set(items.map(({ id }) => id))
  if (named.size === items.length) return run(items)
  const turn: Item[] = []
  const later: Item[] = []
  for (const item of items) (named.delete(item.id) ? turn : later).push(item)
  const refused = await run(turn)
  return [...refused, ...(await inTurn(later, run))]
}

export function refusal({ id, epoch }: HeldTask, code: ProblemCode): Refusal {
  return { id, epoch, code, message: `${problems[code].means} ${problems[code].hint}` }
}

/** A row that somebody holds is free later; a value that the database cannot take stays as it is. */
export function unfit(item: HeldTask, error: unknown): Refused {
  if (storeFault(error) === 'locked') return { item, refusal: refusal(item, 'TASK_BUSY') }
  return { item, refusal: { ...refusal(item, 'PAYLOAD_INVALID'), message: (error as Error).message } }
}

const bad: (item: SettledTask, error: unknown) => Miss = unfit
