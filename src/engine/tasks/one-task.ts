/**
 * The worker protocol for one task at a time, for shell scripts and for handlers that settle in their own transaction.
 * Each function does a part of `sync`, and throws instead of returning a refusal.
 */
import { movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem, problems } from '../../kernel/problem.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { type Call, callFields } from '../../protocol/call-options.ts'
import {
  type ArtifactView,
  artifactsFields,
  type SaidArtifact,
  type SaidArtifacts,
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
  type SaidOf,
  type SettledTask,
  type SyncRequest,
  settleOneFields,
} from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { startAndReturnTasks } from '../../store/tasks/settle.ts'
import { checkId, checkOptions } from '../check.ts'
import type { CallerTransaction, Context } from '../context.ts'
import { findArtifacts } from '../files/read-artifacts.ts'
import { registerAll } from '../files/report-artifacts.ts'
import { advanceJobsOfStages } from '../jobs/advance-job.ts'
import { retryConflicts } from '../retry.ts'
import { claimOrWait } from './claim.ts'
import { readTask } from './read-tasks.ts'
import { settleIn } from './settle.ts'
import { checkEpoch, checkSettled, sync } from './sync.ts'
import { toTaskView } from './task-view.ts'

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
  const claimRequest = { claim: 1, ...options }
  if (claimRequest.claim === 0) return []
  const { tasks } = await claimOrWait(context, claimRequest, { signal, key: call, unlessHolding, untilEmpty: true })
  return startsTasks ? startClaimed(context, claimRequest.worker, tasks) : tasks
}

/** If the process dies between claim and start, the lease is lost like any other. */
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
  const claimed = await claims(context, request, call, signal)
  if (claimed.length === 0) return []
  const { tasks, stageIds } = await retryConflicts(() => startAndReturnTasks(context.sql, claimed, request.worker))
  await advanceJobsOfStages(context, stageIds)
  if (tasks.length === claimed.length) return tasks.map(toTaskView)
  // On a repeated request, a task is already running, or was lost meanwhile.
  const held = await Promise.all(claimed.map(({ id }) => readTask(context, id)))
  return held.filter(({ epoch, state }, n) => epoch === claimed[n]!.epoch && isHeld(state))
}

/** Reports that the task has started. */
export async function start(context: Context, id: string, epoch: number): Promise<TaskView> {
  await report(context, id, epoch, held => ({ started: [held] }))
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

/** Reports the state of files. Returns all files that the attempt has registered. */
export async function artifacts(
  context: Context,
  id: string,
  epoch: number,
  reported: SaidArtifacts,
): Promise<ArtifactView[]> {
  checkOptions({ ...reported, artifacts: reported.artifacts ?? null }, artifactsFields, 'artifacts')
  if (reported.whole === true)
    await registerAll(context, checkLease(id, epoch), reported.artifacts.map(checkRegistered))
  else await report(context, id, epoch, held => ({ artifacts: reported.artifacts.map(file => ({ ...file, ...held })) }))
  const found: ArtifactView[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await findArtifacts(context, 'task', id, { limit: 1000, ...(cursor !== undefined && { cursor }) })
    found.push(...page.items.filter(file => file.epoch === epoch))
    if (page.next === null) return found
    cursor = page.next
  }
}

function checkLease(id: string, epoch: number): HeldTask {
  checkEpoch({ id, epoch })
  return { id: checkId(id), epoch }
}

/** In a complete set, files can only be registered, not yet uploaded. */
function checkRegistered(file: SaidArtifact): SaidArtifact {
  checkOptions({ ...file, name: file.name ?? null, uri: file.uri ?? null }, artifactFields, 'artifacts')
  if (file.state === 'registered') return file
  throw new Problem('OPTION_INVALID', {
    at: 'artifacts',
    option: 'state',
    must: 'be registered, because the set is reported with `whole`',
  })
}

/** Settle in this transaction: the attempt ends when it commits, and continues if it rolls back. */
export type Said<Outcome extends OneOutcome> = SaidOf<Outcome> & { readonly tx?: CallerTransaction }

/**
 * Ends the attempt. Repeating the same outcome returns the same answer. Spawned tasks must be in the queues of the
 * caller's key. Without an epoch, the current attempt is ended: for reports that name no lease.
 */
export async function settleOne<Outcome extends OneOutcome>(
  context: Context,
  outcome: Outcome,
  id: string,
  epoch: number | null,
  call: Said<Outcome> = {} as Said<Outcome>,
  by: SettledBy = {},
): Promise<TaskView> {
  const { tx, ...reported } = call
  checkOptions(reported, settleOneFields(outcome), outcome)
  if (tx === undefined) {
    await report(context, id, epoch, held => ({ settled: [{ ...reported, ...held, outcome }] }), by)
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
}

/** Reports as the current owner of the task. The epoch is the fence; the owner's name is only for display. */
async function report(
  context: Context,
  id: string,
  epoch: number | null,
  reportFor: (held: HeldTask) => Omit<SyncRequest, 'worker'>,
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
