/**
 * Redrives dead letters. The letters are chosen when the redrive is requested, and are processed oldest first. Each
 * batch is a transaction that also records the progress, so if the process dies, another continues and no letter is
 * processed twice.
 *
 * A batch contains letters of one job at most. Jobs are locked before their tasks, so a transaction with two jobs could
 * deadlock with one that locks them in the other order.
 */
import { revive } from '../../kernel/decide.ts'
import { newId } from '../../kernel/id.ts'
import { isTransient, Problem, type Refused } from '../../kernel/problem.ts'
import { controlFields } from '../../protocol/call-options.ts'
import {
  mostRedriven,
  type RedriveAnswer,
  type RedriveProgress,
  type RedriveRequest,
  redriveFields,
} from '../../protocol/tasks/dead-letters.ts'
import { faultsIn, payloadMeter } from '../../spec/json-schema/evaluate.ts'
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
import { checkedJson, checkId, checkOptions } from '../check.ts'
import { type Context, logCorrelated } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import type { AfterCommit } from '../jobs/advance-job.ts'
import type { LockedJob } from '../jobs/locked-job.ts'
import { isConflict } from '../retry.ts'
import { once, replaceAnswer, transact } from '../unit-of-work.ts'
import { type ControlCall, reviveInJob, toRuling, withLockedJob } from './control.ts'

/** Maximum number of letters per transaction, and before the caller gets its answer. The rest is done afterwards. */
const batchSize = 500
const lettersAwaited = 1000

/**
 * Redrives dead letters: by ids or by filter, all at once or at a rate, optionally with another payload. The request is
 * accepted as a whole and once per key. Its letters are then redriven in batches, the first thousand before the answer.
 * In a caller's transaction, they are redriven with it or not at all.
 *
 * The key's transaction only records the chosen letters. If it also redrove them, it would lock all their jobs,
 * possibly in the opposite order to another redrive.
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
    const chosen = ids ?? (await findDeadLetters(inner, { ...request, limit: request.limit ?? mostRedriven }))
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

/** The new payload must match the payload schemas of the letters' types, and may only name allowed files. */
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
 * Only the request that was accepted first continues the redrive, so that its answer lists what was done. If that
 * process dies, the babysitter continues. A repeated request gets the state `running` and the same id until the first
 * answer is complete, and then that answer.
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
  // In a caller's transaction, other connections cannot see the redrive yet. The babysitter continues it after the
  // commit.
  if (answer.state === 'running' && !sql.isTransaction) void finishRedrive(context, accepted.id)
  return answer
}

/**
 * Redrives the letters that the caller waits for. The redrive is already accepted: if other transactions have locked
 * its letters, it continues after the answer.
 */
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

/** A dry run does everything and rolls it back, so it is refused exactly what the real request would be refused. */
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

/** Runs after the answer. If it fails, the babysitter retries. */
async function finishRedrive(context: Context, id: string): Promise<void> {
  try {
    await continueRedrive(context, context.sql, id, Number.POSITIVE_INFINITY)
  } catch (error) {
    await logRedriveFailure(context, id, error)
  }
}

/** Logs a failed redrive with the letter it stopped at and that task's correlation. Never throws. */
export async function logRedriveFailure(context: Context, id: string, error: unknown): Promise<void> {
  const facts = { id, error: String(error) }
  const taskId = await nextDeadLetter(context.sql, id).catch(() => undefined)
  if (taskId === undefined) context.log('redrive.failed', facts)
  else await logCorrelated(context, 'redrive.failed', { entity: 'task', id: taskId }, { ...facts, taskId })
}

interface RedriveStep {
  readonly redriven: readonly string[]
  readonly refused: readonly Refused[]
  readonly isDone: boolean
}

/**
 * Continues a redrive for about `maxLetters` letters, and calls `onBatch` with each result. If a letter makes its batch
 * fail, for example because it needs the dedupe key that the previous letter takes, the batch is halved until that
 * letter stands alone and is refused.
 */
export async function continueRedrive(
  context: Context,
  sql: Sql,
  id: string,
  maxLetters: number,
  onBatch: (did: RedriveStep) => void = () => {},
): Promise<{ readonly redriven: number; readonly isDone: boolean }> {
  let redriven = 0
  let size = batchSize
  for (let seen = 0; seen < maxLetters; ) {
    const next = transact(context, { tx: sql }, undefined, (tx, after) => redriveBatch(context, tx, after, id, size))
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

const nothing: RedriveStep = { redriven: [], refused: [], isDone: true }

async function redriveBatch(
  context: Context,
  tx: Sql,
  after: AfterCommit,
  id: string,
  size: number,
): Promise<RedriveStep> {
  const redrive = await lockRedrive(tx, id, size)
  if (redrive === undefined) return nothing
  const { letters, actor } = redrive
  const { jobId } = letters[0]!
  const other = letters.findIndex(letter => letter.jobId !== jobId)
  const ids = letters.slice(0, other < 0 ? size : other).map(letter => letter.id)
  const { queues, ...result } = await withLockedJob(context, tx, after, jobId, actor, locked =>
    reviveLetters(tx, locked, redrive, ids),
  )
  after.addQueues(queues)
  const isDone = await recordRedriven(tx, redrive, { redriven: result.redriven.length, refused: result.refused })
  return { ...result, isDone }
}

async function reviveLetters(tx: Sql, locked: LockedJob | undefined, redrive: LockedRedrive, ids: readonly string[]) {
  const { actor, payload, reason } = redrive
  const tasks = new Map((await lockTasks(tx, ids)).map(task => [task.id, task]))
  const rulings: TaskUpdate[] = []
  const refused: Refused[] = []
  for (const id of ids) {
    try {
      const task = tasks.get(id)
      if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
      const revived = await toRuling(tx, task, revive(task, 'redrive', reason === null ? {} : { reason }))
      const runInSeconds = delayOf(redrive, rulings.length)
      const ruling = reviveInJob(locked, { ...revived, patch: { ...revived.patch, runInSeconds } })
      rulings.push(ruling)
      // If the request lists the letter twice, it has been revived by the second time.
      tasks.set(id, { ...task, state: ruling.steps[0]!.to })
    } catch (error) {
      if (!(error instanceof Problem) || isTransient(error)) throw error
      refused.push({ id, code: error.code, message: error.message })
    }
  }
  await writeTaskUpdates(tx, payload === null ? [] : rulings.map(({ task }) => payloadEdit(task, payload)), actor)
  const edits = payload === null ? 0 : 1
  const moves = rulings.map(ruling => ({ ...ruling, task: { ...ruling.task, seq: ruling.task.seq + edits } }))
  await writeTaskUpdates(tx, moves, actor)
  const queues = [...new Set(rulings.map(({ task }) => task.queue))]
  return { redriven: rulings.map(({ task }) => task.id), refused, queues }
}

function payloadEdit(task: TaskUpdate['task'], payload: string): TaskUpdate {
  const edit = { to: task.state, type: 'task.payload_edited', cause: 'redrive', payload: { before: task.payload } }
  return { task, steps: [edit], patch: { payload: JSON.parse(payload), edit: true } }
}

/** With a rate, each letter is due at a fixed time after the request, regardless of when it is processed. */
function delayOf({ rate, redriven, ageSeconds }: LockedRedrive, index: number): number {
  return rate === null ? 0 : Math.max(0, (redriven + index) / rate - ageSeconds)
}

/** Refuses the next letter, which cannot be written. */
async function refuseNext(tx: Sql, id: string, error: unknown): Promise<RedriveStep> {
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
