/**
 * Gives dead letters another round. Which ones is decided when it is asked for; they are taken oldest first, in batches
 * that are transactions of their own, and each writes down how far it has come. So whoever dies leaves a redrive that
 * another goes on with, and no letter is taken twice.
 *
 * A batch holds letters of one job at most, for a job is locked before its tasks: two jobs in one transaction could
 * wait for another that has them in the other order.
 */
import { revive } from '../../kernel/decide.ts'
import { newId } from '../../kernel/id.ts'
import { Problem, type Refused, willPass } from '../../kernel/problem.ts'
import { controlFields, mostRedriven, redriveFields } from '../../protocol/fields.ts'
import type { RedriveAnswer, RedriveProgress, RedriveRequest } from '../../protocol/tasks/dead-letters.ts'
import { faultsIn, payloadMeter } from '../../spec/payload-schema.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { storeFault } from '../../store/driver/store-fault.ts'
import { typesOf } from '../../store/tasks/read-tasks.ts'
import {
  findDeadLetters,
  getRedrive,
  insertRedrive,
  type LockedRedrive,
  lockRedrive,
  nextDeadLetter,
  recordRedriven,
} from '../../store/tasks/redrive.ts'
import { lockTasks, type TaskUpdate, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import type { AfterCommit } from '../after-commit.ts'
import { checkedJson, checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import type { JobBook } from '../jobs/locked-job.ts'
import { logCorrelated } from '../log-correlated.ts'
import { keepFuller, once } from '../once.ts'
import { isWorthRepeating } from '../split.ts'
import { transact } from '../unit-of-work.ts'
import { type ControlCall, rule } from './control.ts'
import { placed, withJob } from './task-of-job.ts'

/** Most letters that a transaction brings back, and that a caller waits for; the rest is done after its answer. */
const batchSize = 500
const awaited = 1000

/**
 * Redrives dead letters: by ids or by filter, all at once or at a rate, with another payload if asked. It is taken
 * whole, and once per key; then its letters come back in batches, the first thousand before the answer. In a caller's
 * transaction they come back with it or not at all.
 *
 * The key's transaction only writes down what was chosen. Were the letters brought back in it too, it would hold the
 * jobs of all of them, in an order that another redrive may have them in the other way round.
 */
export async function redrive(
  context: Context,
  request: RedriveRequest,
  call: ControlCall = {},
): Promise<RedriveAnswer> {
  checkOptions(request, redriveFields, 'redrive')
  checkOptions(call, controlFields, 'call')
  const payload = 'payload' in request ? checkedJson(request.payload, context.maxPayloadBytes, 'payload') : null
  const ids = request.ids?.map(id => checkId(id))
  const sql = context.within(call.tx)
  const take = async (inner: Sql): Promise<Taken> => {
    const chosen = ids ?? (await findDeadLetters(inner, filterOf(request)))
    if (payload !== null) await checkAgainstTypes(context, inner, chosen, request.payload)
    const id = newId()
    const { reason = call.reason ?? null, ratePerSecond: rate = null } = request
    await insertRedrive(inner, { id, actor: call.actor ?? 'operator', reason, rate, payload, ids: chosen })
    const state = chosen.length === 0 ? 'done' : 'running'
    return { id, dryRun: false, state, total: chosen.length, redriven: [], refused: [] }
  }
  if (request.dryRun === true) {
    const tried = await undone(context, sql, async tx => begin(context, tx, await take(tx)))
    return { ...tried, id: null, dryRun: true, state: 'done' }
  }
  const ask = (inner: Sql) => takeOnce(context, inner, call, ['redrive', request], take)
  return sql.isTransaction ? sql.begin(ask) : ask(sql)
}

/** Another payload must fit what the workers of these letters have said that they take, and name only files that it may. */
async function checkAgainstTypes(context: Context, sql: Sql, ids: readonly string[], payload: unknown): Promise<void> {
  const meter = payloadMeter()
  for (const { type, payloadSchema } of await typesOf(sql, ids)) {
    checkCommandFiles(context, type, payload, 'payload')
    const issues = payloadSchema === null ? [] : faultsIn(payloadSchema, payload, meter)
    if (issues.length > 0) throw new Problem('PAYLOAD_REFUSED', { at: 'payload', type, issues })
  }
}

type Taken = RedriveAnswer & { readonly id: string }

/**
 * Only whoever took it goes on with it, so that its answer names what was done; if it dies, the babysitter does. Asked
 * again in between, the answer is that it is running, under the same id; after the first answer, that one.
 */
async function takeOnce(
  context: Context,
  sql: Sql,
  call: ControlCall,
  request: unknown,
  take: (sql: Sql) => Promise<Taken>,
): Promise<RedriveAnswer> {
  let isMine = false
  const taken = await once(sql, call, request, inner => {
    isMine = true
    return take(inner)
  })
  if (!isMine || taken.state === 'done') return taken
  const answer = await begin(context, sql, taken)
  await keepFuller(sql, call, answer)
  // In a caller's transaction it is not there yet: the babysitter goes on once it is.
  if (answer.state === 'running' && !sql.isTransaction) void finishRedrive(context, taken.id)
  return answer
}

/** What the caller waits for. It has been taken: if others hold its letters, it goes on after the answer. */
async function begin(context: Context, sql: Sql, taken: Taken): Promise<RedriveAnswer> {
  const redriven: string[] = []
  const refused: Refused[] = []
  const { isDone } = await goOn(context, sql, taken.id, awaited, step => {
    redriven.push(...step.redriven)
    refused.push(...step.refused)
  }).catch(error => {
    if (sql.isTransaction || !isWorthRepeating(error)) throw error
    return { isDone: false }
  })
  return { ...taken, state: isDone ? 'done' : 'running', redriven, refused }
}

function filterOf({ limit = mostRedriven, ...request }: RedriveRequest) {
  const { queue, type, reasonCode, message } = request
  return {
    queue: queue ?? null,
    type: type ?? null,
    reasonCode: reasonCode ?? null,
    message: message ?? null,
    limit,
  }
}

/** A dry run is the thing itself, taken back: so it is refused what the thing would be refused. */
async function undone<T>(context: Context, sql: Sql, work: (tx: Sql) => Promise<T>): Promise<T> {
  const takenBack = new Error('taken back')
  let result: { readonly value: T } | undefined
  const run = transact(context, { tx: sql }, undefined, async tx => {
    result = { value: await work(tx) }
    throw takenBack
  })
  await run.catch(error => {
    if (error !== takenBack) throw error
  })
  return result!.value
}

/** Nobody waits for this; what fails is taken up by the babysitter. */
async function finishRedrive(context: Context, id: string): Promise<void> {
  try {
    await goOn(context, context.sql, id, Number.POSITIVE_INFINITY)
  } catch (error) {
    await tellFailed(context, id, error)
  }
}

/** Says where a redrive failed: at which letter, with the correlation by which people find that. It never throws. */
export async function tellFailed(context: Context, id: string, error: unknown): Promise<void> {
  const facts = { id, error: String(error) }
  const taskId = await nextDeadLetter(context.sql, id).catch(() => undefined)
  if (taskId === undefined) context.log('redrive.failed', facts)
  else await logCorrelated(context, 'redrive.failed', { entity: 'task', id: taskId }, { ...facts, taskId })
}

interface Did {
  readonly redriven: readonly string[]
  readonly refused: readonly Refused[]
}

/**
 * Goes on with a redrive, for about so many letters; `hear` is told which. Where a batch fails for something that a letter holds (a dedupe
 * key that the one before it takes, say), it is halved until that letter stands alone and is refused.
 */
export async function goOn(
  context: Context,
  sql: Sql,
  id: string,
  most: number,
  hear: (did: Did) => void = () => {},
): Promise<{ readonly redriven: number; readonly isDone: boolean }> {
  let redriven = 0
  let size = batchSize
  for (let seen = 0; seen < most; ) {
    const next = transact(context, { tx: sql }, undefined, (tx, after) => takeStep(tx, after, id, size))
    const step = await next.catch(error => {
      if (storeFault(error) !== 'data') throw error
      return size === 1 ? sql.begin(tx => passOver(tx, id, error)) : undefined
    })
    size = step === undefined ? size >> 1 : Math.min(batchSize, size * 2)
    if (step === undefined) continue
    redriven += step.redriven.length
    seen += step.redriven.length + step.refused.length
    hear(step)
    if (step.isDone) return { redriven, isDone: true }
  }
  return { redriven, isDone: false }
}

interface Step extends Did {
  readonly isDone: boolean
}

const nothing: Step = { redriven: [], refused: [], isDone: true }

async function takeStep(tx: Sql, after: AfterCommit, id: string, size: number): Promise<Step> {
  const redrive = await lockRedrive(tx, id, size)
  if (redrive === undefined) return nothing
  const { letters, actor } = redrive
  const { jobId } = letters[0]!
  const other = letters.findIndex(letter => letter.jobId !== jobId)
  const ids = letters.slice(0, other < 0 ? size : other).map(letter => letter.id)
  const { queues, ...did } = await withJob(tx, after, jobId, actor, book => bringBack(tx, book, redrive, ids))
  after.wake(queues)
  const isDone = await recordRedriven(tx, redrive, { redriven: did.redriven.length, refused: did.refused })
  return { ...did, isDone }
}

async function bringBack(tx: Sql, book: JobBook | undefined, redrive: LockedRedrive, ids: readonly string[]) {
  const { actor, payload, reason } = redrive
  const tasks = new Map((await lockTasks(tx, ids)).map(task => [task.id, task]))
  const rulings: TaskUpdate[] = []
  const refused: Refused[] = []
  for (const id of ids) {
    try {
      const task = tasks.get(id)
      if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
      const ruled = await rule(tx, task, revive(task, 'redrive', reason === null ? {} : { reason }))
      const runInSeconds = waitOf(redrive, rulings.length)
      const ruling = placed(book, { ...ruled, patch: { ...ruled.patch, runInSeconds } })
      rulings.push(ruling)
      // Named twice, it has come back by then.
      tasks.set(id, { ...task, state: ruling.steps[0]!.to })
    } catch (error) {
      if (!(error instanceof Problem) || willPass(error)) throw error
      refused.push({ id, code: error.code, message: error.message })
    }
  }
  await writeTaskUpdates(tx, payload === null ? [] : rulings.map(({ task }) => editOf(task, payload)), actor)
  const edits = payload === null ? 0 : 1
  const moves = rulings.map(ruling => ({ ...ruling, task: { ...ruling.task, seq: ruling.task.seq + edits } }))
  await writeTaskUpdates(tx, moves, actor)
  const queues = [...new Set(rulings.map(({ task }) => task.queue))]
  return { redriven: rulings.map(({ task }) => task.id), refused, queues }
}

function editOf(task: TaskUpdate['task'], payload: string): TaskUpdate {
  const edit = { to: task.state, type: 'task.payload_edited', cause: 'redrive', payload: { before: task.payload } }
  return { task, steps: [edit], patch: { payload: JSON.parse(payload), edit: true } }
}

/** At a rate, each has its moment after the redrive was asked for, however long it takes to come to it. */
function waitOf({ rate, redriven, ageSeconds }: LockedRedrive, index: number): number {
  return rate === null ? 0 : Math.max(0, (redriven + index) / rate - ageSeconds)
}

/** The next letter cannot be written, whatever is tried. */
async function passOver(tx: Sql, id: string, error: unknown): Promise<Step> {
  const redrive = await lockRedrive(tx, id, 1)
  if (redrive === undefined) return nothing
  const refused = [{ id: redrive.letters[0]!.id, code: 'MOVE_REFUSED', message: (error as Error).message }]
  return { ...nothing, refused, isDone: await recordRedriven(tx, redrive, { redriven: 0, refused }) }
}

export async function readRedrive({ sql }: Context, id: string): Promise<RedriveProgress> {
  const row = await getRedrive(sql, checkId(id, 'REDRIVE_NOT_FOUND'))
  if (row === undefined) throw new Problem('REDRIVE_NOT_FOUND', { id })
  const { createdAt, endedAt, ...rest } = row
  return {
    ...rest,
    state: endedAt === null ? 'running' : 'done',
    createdAt: createdAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
  }
}
