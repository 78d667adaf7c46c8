/**
 * The worker protocol for one task at a time, for shell scripts and for handlers that settle in their own transaction.
 * Each function does a part of `sync`, and throws instead of returning a refusal.
 */
import { movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem, problems } from '../../kernel/problem.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import type { CallerTransaction } from '../../kernel/transactions.ts'
import { type Call, callFields } from '../../protocol/call-options.ts'
import {
  type ArtifactView,
  artifactsFields,
  type ReportedArtifact,
  type ReportedArtifacts,
} from '../../protocol/files/artifacts.ts'
import {
  artifactFields,
  type ClaimedTask,
  type ClaimsRequest,
  claimFields,
  type HeartbeatAnswer,
  type HeldTask,
  heartbeatFields,
  leaseOf,
  type OneOutcome,
  type Refusal,
  type ReportOf,
  type SettledTask,
  type SyncRequest,
  settleOneFields,
} from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { findArtifacts } from '../files/read-artifacts.ts'
import { registerAll, registerFirstFiles } from '../files/report-artifacts.ts'
import type { UnitCall } from '../unit-of-work.ts'
import { claimOrWait, withOwnSession } from './claim.ts'
import type { Reports } from './merge-reports.ts'
import { readTask } from './read-tasks.ts'
import { settleIn } from './settle.ts'
import { checkEpoch, checkSettled, sync } from './sync.ts'

/** A claim takes no transaction, because it waits for changes by other transactions. */
const { tx: _, ...claimCallFields } = callFields

/**
 * Claims tasks, one by default. Returns an empty list only if no task was due before the timeout, however many others
 * claimed at the same time. A repeated request with the same idempotency key returns the tasks that are still held. A
 * claim that wins nothing leaves its key free.
 */
export async function claims(
  context: Context,
  request: ClaimsRequest,
  call: Call = {},
  signal?: AbortSignal,
): Promise<readonly ClaimedTask[]> {
  checkOptions({ ...request, worker: request.worker ?? null, queues: request.queues ?? null }, claimFields, 'claims')
  checkOptions(call, claimCallFields, 'call')
  const { start: startsTasks = false, unlessHolding = false, ...options } = request
  if (unlessHolding && options.session === undefined) {
    throw new Problem('OPTION_INVALID', { at: 'claims', option: 'session', must: 'be given with unlessHolding' })
  }
  const claimRequest = withOwnSession({ claim: 1, ...options }, (call as UnitCall).holder)
  if (claimRequest.claim === 0) return []
  const how = { signal, key: call, unlessHolding, untilEmpty: true, starts: startsTasks }
  const { tasks, isNew, advanceStages } = await claimOrWait(context, claimRequest, how)
  await advanceStages()
  // A claim that is repeated may have been made without the start.
  return startsTasks && !isNew ? startClaimed(context, claimRequest.worker, tasks) : tasks
}

async function startClaimed(context: Context, worker: string, tasks: readonly ClaimedTask[]): Promise<ClaimedTask[]> {
  const started = tasks.map(({ id, epoch }) => ({ id, epoch }))
  const { refused } = started.length === 0 ? { refused: [] } : await sync(context, { worker, started })
  const lost = new Set(refused.map(leaseOf))
  return tasks.filter(task => !lost.has(leaseOf(task)))
}

/** Claims and starts tasks, and returns their full views: for clients that need no lease. */
export async function take(
  context: Context,
  request: Omit<ClaimsRequest, 'start'>,
  call: Call = {},
  signal?: AbortSignal,
): Promise<TaskView[]> {
  const claimed = await claims(context, { ...request, start: true }, call, signal)
  const held = await Promise.all(claimed.map(({ id }) => readTask(context, id)))
  return held.filter(({ epoch, state }, n) => epoch === claimed[n]!.epoch && isHeld(state))
}

/** Reports that the task has started. */
export async function start(context: Context, id: string, epoch: number): Promise<TaskView> {
  await reportAsHolder(context, { id, epoch }, held => ({ started: [held] }))
  return readTask(context, id)
}

/** Renews the lease. The first heartbeat also reports that the task has started. */
export async function heartbeat(
  context: Context,
  id: string,
  epoch: number,
  reported: { readonly progress?: unknown; readonly checkpoint?: unknown } = {},
): Promise<HeartbeatAnswer> {
  checkOptions(reported, heartbeatFields, 'heartbeat')
  const answer = await report(context, id, epoch, held => ({ started: [held], beats: [{ ...reported, ...held }] }))
  const task = await readTask(context, id)
  if (task.epoch !== epoch || task.leaseUntil === null) throw new Problem('LEASE_LOST', { id, epoch })
  const notice = answer.cancel.find(each => each.id === task.id && each.epoch === epoch)
  const cancel = notice === undefined ? null : { mode: notice.mode, graceSeconds: notice.graceSeconds }
  return { cancel, leaseUntil: task.leaseUntil }
}

/** Reports the state of files. */
export async function reportFiles(
  context: Context,
  id: string,
  epoch: number,
  reported: ReportedArtifacts['artifacts'],
): Promise<void> {
  await reportAsHolder(context, { id, epoch }, held => ({ artifacts: reported.map(file => ({ ...file, ...held })) }))
}

/** An answer with more bytes than this ends before all files are listed. */
export const maxFilesBytes = 32 * 2 ** 20
/** Bytes of a file in an answer, without its name and URI. */
const bytesOfFile = 500

/**
 * Reports the state of files. Returns the files that the attempt has registered: all, unless they are very many.
 * `outputs` is the output folder of the task, if the caller knows it, to save reading it.
 */
export async function artifacts(
  context: Context,
  id: string,
  epoch: number,
  reported: ReportedArtifacts,
  outputs: string | null = null,
): Promise<ArtifactView[]> {
  checkOptions({ ...reported, artifacts: reported.artifacts ?? null }, artifactsFields, 'artifacts')
  if (reported.whole === true) {
    const [lease, files] = [checkLease(id, epoch), reported.artifacts.map(checkRegistered)]
    const first = outputs === null ? undefined : await registerFirstFiles(context, lease, outputs, files)
    if (first !== undefined) return first
    await registerAll(context, lease, files)
  } else await reportFiles(context, id, epoch, reported.artifacts)
  const found: ArtifactView[] = []
  let bytes = 0
  for (let cursor: string | undefined; ; ) {
    const page = await findArtifacts(context, 'task', id, { limit: 1000, ...(cursor !== undefined && { cursor }) })
    for (const file of page.items) {
      if (file.epoch !== epoch) continue
      found.push(file)
      bytes += bytesOfFile + Buffer.byteLength(file.name) + Buffer.byteLength(file.uri)
    }
    if (page.next === null || bytes > maxFilesBytes) return found
    cursor = page.next
  }
}

function checkLease(id: string, epoch: number): HeldTask {
  checkEpoch({ id, epoch })
  return { id: checkId(id), epoch }
}

/** In a complete set, files can only be registered, not yet uploaded. */
function checkRegistered(file: ReportedArtifact): ReportedArtifact {
  checkOptions({ ...file, name: file.name ?? null, uri: file.uri ?? null }, artifactFields, 'artifacts')
  if (file.state === 'registered') return file
  throw new Problem('OPTION_INVALID', {
    at: 'artifacts',
    option: 'state',
    must: 'be registered, because the set is reported with `whole`',
  })
}

/** Settle in this transaction: the attempt ends when it commits, and continues if it rolls back. */
export type LocalReport<Outcome extends OneOutcome> = ReportOf<Outcome> & { readonly tx?: CallerTransaction }

/**
 * Ends the attempt. Repeating the same outcome returns the same answer. Spawned tasks must be in the queues of the
 * caller's key. Without an epoch, the current attempt is ended: for reports that name no lease.
 */
export async function settleOne<Outcome extends OneOutcome>(
  context: Context,
  outcome: Outcome,
  id: string,
  epoch: number | null,
  call: LocalReport<Outcome> = {} as LocalReport<Outcome>,
  by: SettledBy = {},
): Promise<TaskView> {
  const { tx, ...reported } = call
  checkOptions(reported, settleOneFields(outcome), outcome)
  if (tx === undefined) {
    const settled = (held: HeldTask) => ({ settled: [{ ...reported, ...held, outcome }] })
    // Tasks that it spawns are recorded under the name of its worker.
    const isSpawning = (reported as SettledTask).spawn !== undefined
    if (epoch === null || isSpawning) await report(context, id, epoch, settled, by)
    else await reportAsHolder(context, { id, epoch }, settled, by)
    return readTask(context, id)
  }
  const within = { ...context, sql: context.sqlFor(tx) }
  const task = await readTask(within, id)
  await completeIn(context, tx, { ...reported, id, epoch: epoch ?? heldUnder(task), outcome }, task.owner ?? 'nobody')
  return readTask(within, id)
}

/** Ends an attempt in a caller's transaction, so that the caller's writes and the end of the task commit together. */
export async function completeIn(
  context: Context,
  tx: CallerTransaction,
  item: SettledTask,
  worker: string,
): Promise<void> {
  checkSettled(context, item)
  const settled = { ...item, id: checkId(item.id) }
  const refused = await settleIn(context, context.sqlFor(tx), settled, worker)
  for (const { refusal } of refused) throw problemOf(refusal)
}

export interface SettledBy {
  /** Queues of the caller's key. Spawned tasks must be in them; null: every queue. */
  readonly queues?: readonly string[] | null
  /** The task, if the caller has just read it, to save reading it again. */
  readonly task?: TaskView
  /** Writes the reports of many workers together. */
  readonly reports?: Reports | undefined
  /** Refuses the report if the attempt has already ended, also if it ended so: the epoch may not be the one meant. */
  readonly onlyFirst?: boolean
}

type ReportFor = (held: HeldTask) => Omit<SyncRequest, 'worker'>

/** Reports without reading the task first. The events get the name of the worker that holds the lease. */
async function reportAsHolder(
  context: Context,
  held: HeldTask,
  reportFor: ReportFor,
  { queues = null, reports, onlyFirst = false }: SettledBy = {},
): Promise<void> {
  const how = { queues, asHolder: true, onlyFirst, ...(reports !== undefined && { reports }) }
  const { refused } = await sync(context, { ...reportFor(held), worker: 'holder' }, undefined, how)
  const [refusal] = refused
  if (refusal === undefined) return
  // A task that does not exist has no lease to lose.
  await readTask(context, held.id)
  throw problemOf(refusal)
}

/** Reports as the current owner of the task. The epoch is the fence; the owner's name is only for display. */
async function report(
  context: Context,
  id: string,
  epoch: number | null,
  reportFor: ReportFor,
  { queues = null, task: known }: SettledBy = {},
) {
  const task = known ?? (await readTask(context, id))
  const held = { id, epoch: epoch ?? heldUnder(task) }
  const answer = await sync(context, { ...reportFor(held), worker: task.owner ?? 'nobody' }, undefined, { queues })
  for (const refusal of answer.refused) throw problemOf(refusal)
  return answer
}

const isHeld = (state: TaskState) => taskLifecycle.states[state].kind === 'held'

function heldUnder({ id, epoch, state }: TaskView): number {
  if (isHeld(state)) return epoch
  throw new Problem('MOVE_REFUSED', { id, state, possible: movesOpenTo(taskLifecycle, state, 'worker') })
}

function problemOf({ id, epoch, code, message }: Refusal): Problem {
  const { means, hint } = problems[code]
  // A message other than the code's default comes from a problem with details.
  return new Problem(code, { id, epoch, ...(message !== `${means} ${hint}` && { why: message }) })
}
