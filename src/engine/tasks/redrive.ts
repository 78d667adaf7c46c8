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
  deadLetterIds,
  getRedrive,
  insertRedrive,
  type LockedRedrive,
  lockRedrive,
  nextLetter,
  noteRedriven,
} from '../../store/tasks/redrive.ts'
import { lockTasks, type Ruling, writeRulings } from '../../store/tasks/rulings.ts'
import type { AfterCommit } from '../after-commit.ts'
import { checkedJson, checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import type { LockedJob } from '../jobs/locked-job.ts'
import { logCorrelated } from '../log-correlated.ts'
import { once, replaceAnswer } from '../once.ts'
import { isConflict } from '../retry.ts'
import { transact } from '../unit-of-work.ts'
import { type ControlCall, toRuling } from './control.ts'
import { placeInStage, withLockedJob } from './task-of-job.ts'

/** Most letters that a transaction brings back, and that a caller waits for; the rest is done after its answer. */
const batchSize = 500
const lettersAwaited = 1000

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
  const sql = context.sqlFor(call.tx)
  const accept = async (inner: Sql): Promise<Accepted> => {
    const chosen = ids ?? (await deadLetterIds(inner, filterOf(request)))
    if (payload !== null) await checkAgainstTypes(context, inner, chosen, request.payload)
    const id = newId()
    const { reason = call.reason ?? null, ratePerSecond: rate = null } = request
    await insertRedrive(inner, { id, actor: call.actor ?? 'operator', reason, rate, payload, ids: chosen })
    const state = chosen.length === 0 ? 'done' : 'running'
    return { id, dryRun: false, state, total: chosen.length, redriven: [], refused: [] }
  }
  if (request.dryRun === true) {
    const trial = await rolledBack(context, sql, async tx => redriveFirst(context, tx, await accept(tx)))
    return { ...trial, id: null, dryRun: true, state: 'done' }
  }
  const acceptIn = (inner: Sql) => acceptOnce(context, inner, call, ['redrive', request], accept)
  return sql.isTransaction ? sql.begin(acceptIn) : acceptIn(sql)
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

type Accepted = RedriveAnswer & { readonly id: string }

/**
 * Only whoever took it goes on with it, so that its answer names what was done; if it dies, the babysitter does. Asked
 * again in between, the answer is that it is running, under the same id; after the first answer, that one.
 */
async function acceptOnce(
  context: Context,
  sql: Sql,
  call: ControlCall,
  request: unknown,
  accept: (sql: Sql) => Promise<Accepted>,
): Promise<RedriveAnswer> {
  let isFirst = false
  const accepted = await once(sql, call, request, inner => {
    isFirst = true
    return accept(inner)
  })
  if (!isFirst || accepted.state === 'done') return accepted
  const answer = await redriveFirst(context, sql, accepted)
  await replaceAnswer(sql, call, answer)
  // In a caller's transaction it is not there yet: the babysitter goes on once it is.
  if (answer.state === 'running' && !sql.isTransaction) void finishRedrive(context, accepted.id)
  return answer
}

/** What the caller waits for. It has been taken: if others hold its letters, it goes on after the answer. */
async function redriveFirst(context: Context, sql: Sql, accepted: Accepted): Promise<RedriveAnswer> {
  const redriven: string[] = []
  const refused: Refused[] = []
  const { isDone } = await continueRedrive(context, sql, accepted.id, lettersAwaited, step => {
    redriven.push(...step.redriven)
    refused.push(...step.refused)
  }).catch(error => {
    if (sql.isTransaction || !isConflict(error)) throw error
    return { isDone: false }
  })
  return { ...accepted, state: isDone ? 'done' : 'running', redriven, refused }
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
async function rolledBack<T>(context: Context, sql: Sql, work: (tx: Sql) => Promise<T>): Promise<T> {
  const rollback = new Error('taken back')
  let result: { readonly value: T } | undefined
  const run = transact(context, { tx: sql }, undefined, async tx => {
    result = { value: await work(tx) }
    throw rollback
  })
  await run.catch(error => {
    if (error !== rollback) throw error
  })
  return result!.value
}

/** Nobody waits for this; what fails is taken up by the babysitter. */
async function finishRedrive(context: Context, id: string): Promise<void> {
  try {
    await continueRedrive(context, context.sql, id, Number.POSITIVE_INFINITY)
  } catch (error) {
    await logRedriveFailure(context, id, error)
  }
}

/** Says where a redrive failed: at which letter, with the correlation by which people find that. It never throws. */
export async function logRedriveFailure(context: Context, id: string, error: unknown): Promise<void> {
  const facts = { id, error: String(error) }
  const taskId = await nextLetter(context.sql, id).catch(() => undefined)
  if (taskId === undefined) context.log('redrive.failed', facts)
  else await logCorrelated(context, 'redrive.failed', { entity: 'task', id: taskId }, { ...facts, taskId })
}

interface BatchResult {
  readonly redriven: readonly string[]
  readonly refused: readonly Refused[]
}

/**
 * Goes on with a redrive, for about so many letters; `hear` is told which. Where a batch fails for something that a letter holds (a dedupe
 * key that the one before it takes, say), it is halved until that letter stands alone and is refused.
 */
export async function continueRedrive(
  context: Context,
  sql: Sql,
  id: string,
  maxLetters: number,
  onBatch: (did: BatchResult) => void = () => {},
): Promise<{ readonly redriven: number; readonly isDone: boolean }> {
  let redriven = 0
  let size = batchSize
  for (let seen = 0; seen < maxLetters; ) {
    const next = transact(context, { tx: sql }, undefined, (tx, after) => redriveBatch(tx, after, id, size))
    const step = await next.catch(error => {
      if (storeFault(error) !== 'data') throw error
      return size === 1 ? sql.begin(tx => refuseNext(tx, id, error)) : undefined
    })
    size = step === undefined ? size >> 1 : Math.min(batchSize, size * 2)
    if (step === undefined) continue
    redriven += step.redriven.length
    seen += step.redriven.length + step.refused.length
    onBatch(step)
    if (step.isDone) return { redriven, isDone: true }
  }
  return { redriven, isDone: false }
}

interface RedriveStep extends BatchResult {
  readonly isDone: boolean
}

const nothing: RedriveStep = { redriven: [], refused: [], isDone: true }

async function redriveBatch(tx: Sql, after: AfterCommit, id: string, size: number): Promise<RedriveStep> {
  const redrive = await lockRedrive(tx, id, size)
  if (redrive === undefined) return nothing
  const { letters, actor } = redrive
  const { jobId } = letters[0]!
  const other = letters.findIndex(letter => letter.jobId !== jobId)
  const ids = letters.slice(0, other < 0 ? size : other).map(letter => letter.id)
  const { queues, ...result } = await withLockedJob(tx, after, jobId, actor, locked =>
    reviveLetters(tx, locked, redrive, ids),
  )
  after.wake(queues)
  const isDone = await noteRedriven(tx, redrive, { redriven: result.redriven.length, refused: result.refused })
  return { ...result, isDone }
}

async function reviveLetters(tx: Sql, locked: LockedJob | undefined, redrive: LockedRedrive, ids: readonly string[]) {
  const { actor, payload, reason } = redrive
  const tasks = new Map((await lockTasks(tx, ids)).map(task => [task.id, task]))
  const rulings: Ruling[] = []
  const refused: Refused[] = []
  for (const id of ids) {
    try {
      const task = tasks.get(id)
      if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
      const revived = await toRuling(tx, task, revive(task, 'redrive', reason === null ? {} : { reason }))
      const runInSeconds = delayOf(redrive, rulings.length)
      const ruling = placeInStage(locked, { ...revived, patch: { ...revived.patch, runInSeconds } })
      rulings.push(ruling)
      // Named twice, it has come back by then.
      tasks.set(id, { ...task, state: ruling.steps[0]!.to })
    } catch (error) {
      if (!(error instanceof Problem) || willPass(error)) throw error
      refused.push({ id, code: error.code, message: error.message })
    }
  }
  await writeRulings(tx, payload === null ? [] : rulings.map(({ task }) => payloadEdit(task, payload)), actor)
  const edits = payload === null ? 0 : 1
  const moves = rulings.map(ruling => ({ ...ruling, task: { ...ruling.task, seq: ruling.task.seq + edits } }))
  await writeRulings(tx, moves, actor)
  const queues = [...new Set(rulings.map(({ task }) => task.queue))]
  return { redriven: rulings.map(({ task }) => task.id), refused, queues }
}

function payloadEdit(task: Ruling['task'], payload: string): Ruling {
  const edit = { to: task.state, type: 'task.payload_edited', cause: 'redrive', payload: { before: task.payload } }
  return { task, steps: [edit], patch: { payload: JSON.parse(payload), edit: true } }
}

/** At a rate, each has its moment after the redrive was asked for, however long it takes to come to it. */
function delayOf({ rate, redriven, ageSeconds }: LockedRedrive, index: number): number {
  return rate === null ? 0 : Math.max(0, (redriven + index) / rate - ageSeconds)
}

/** The next letter cannot be written, whatever is tried. */
async function refuseNext(tx: Sql, id: string, error: unknown): Promise<RedriveStep> {
  const redrive = await lockRedrive(tx, id, 1)
  if (redrive === undefined) return nothing
  const refused = [{ id: redrive.letters[0]!.id, code: 'MOVE_REFUSED', message: (error as Error).message }]
  return { ...nothing, refused, isDone: await noteRedriven(tx, redrive, { redriven: 0, refused }) }
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
