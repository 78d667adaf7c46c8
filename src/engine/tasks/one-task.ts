/**
 * The worker protocol one task at a time, for a shell script or for a handler that settles in its own transaction. Each
 * does a part of what `sync` does; what that would refuse is thrown.
 */
import { movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem, problems } from '../../kernel/problem.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import type { Call } from '../../protocol/call-options.ts'
import {
  artifactFields,
  artifactsFields,
  callFields,
  claimFields,
  heartbeatFields,
  settleOneFields,
} from '../../protocol/fields.ts'
import type { ArtifactView, SaidArtifact, SaidArtifacts } from '../../protocol/files/artifacts.ts'
import type {
  ClaimedTask,
  ClaimsRequest,
  HeartbeatAnswer,
  HeldTask,
  OneOutcome,
  Refusal,
  SaidOf,
  SettledTask,
  SyncRequest,
} from '../../protocol/tasks/sync.ts'
import { leaseOf } from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { startAndReturnTasks } from '../../store/tasks/settle.ts'
import { checkId, checkOptions } from '../check.ts'
import type { CallerTransaction, Context } from '../context.ts'
import { findArtifacts } from '../files/read-artifacts.ts'
import { registerWhole } from '../files/report-artifacts.ts'
import { rollUp } from '../jobs/roll-up.ts'
import { again } from '../split.ts'
import { claimOrWait } from './claim.ts'
import { readTask } from './read-tasks.ts'
import { checkEpoch, checkSettled, sync } from './sync.ts'
import { toTaskView } from './task-view.ts'
import { settleIn } from './write-reports.ts'

/** Who asks for a claim, and the key under which it may be asked for again. No transaction: what it waits for is others'. */
const { tx: _, ...claimCallFields } = callFields

/**
 * Claims tasks, one unless it says otherwise; an empty list means that there was nothing in time, however many others
 * claimed at once. Asked again with its idempotency key it has the same tasks, as far as they are still held; one that
 * won nothing leaves its key free.
 */
export async function claims(
  context: Context,
  request: ClaimsRequest,
  call: Call = {},
  signal?: AbortSignal,
): Promise<readonly ClaimedTask[]> {
  checkOptions({ ...request, worker: request.worker ?? null, queues: request.queues ?? null }, claimFields, 'claims')
  checkOptions(call, claimCallFields, 'call')
  const { start: begins = false, unlessHolding = false, ...wanted } = request
  if (unlessHolding && wanted.session === undefined) {
    throw new Problem('OPTION_INVALID', { at: 'claims', option: 'session', must: 'be given with unlessHolding' })
  }
  const asked = { claim: 1, ...wanted }
  if (asked.claim === 0) return []
  const { tasks } = await claimOrWait(context, asked, { signal, key: call, unlessHolding, insists: true })
  return begins ? begin(context, asked.worker, tasks) : tasks
}

/** Whoever dies between the two leaves a lease that was never started: it is found like any other that is lost. */
async function begin(context: Context, worker: string, tasks: readonly ClaimedTask[]): Promise<ClaimedTask[]> {
  const started = tasks.map(({ id, epoch }) => ({ id, epoch }))
  const { refused } = started.length === 0 ? { refused: [] } : await sync(context, { worker, started })
  const lost = new Set(refused.map(leaseOf))
  return tasks.filter(task => !lost.has(leaseOf(task)))
}

/** Claims and starts, and answers with the tasks as they then are: for clients that know no lease, but want to see all. */
export async function take(
  context: Context,
  request: Omit<ClaimsRequest, 'start'>,
  call: Call = {},
  signal?: AbortSignal,
): Promise<TaskView[]> {
  const claimed = await claims(context, request, call, signal)
  if (claimed.length === 0) return []
  const { tasks, stageIds } = await again(() => startAndReturnTasks(context.sql, claimed, request.worker))
  await rollUp(context, stageIds)
  if (tasks.length === claimed.length) return tasks.map(toTaskView)
  // Asked for once more under its key, it runs already; or it was lost just now.
  const held = await Promise.all(claimed.map(({ id }) => readTask(context, id)))
  return held.filter(({ epoch, state }, n) => epoch === claimed[n]!.epoch && isHeld(state))
}

/** Says that the task has begun. */
export async function start(context: Context, id: string, epoch: number): Promise<TaskView> {
  await say(context, id, epoch, held => ({ started: [held] }))
  return readTask(context, id)
}

/** Renews the lease; the first one says that the task has begun. */
export async function heartbeat(
  context: Context,
  id: string,
  epoch: number,
  said: { readonly progress?: unknown; readonly checkpoint?: unknown } = {},
): Promise<HeartbeatAnswer> {
  checkOptions(said, heartbeatFields, 'heartbeat')
  const answer = await say(context, id, epoch, held => ({ started: [held], beats: [{ ...said, ...held }] }))
  const task = await readTask(context, id)
  if (task.epoch !== epoch || task.leaseUntil === null) throw new Problem('LEASE_LOST', { id, epoch })
  const notice = answer.cancel.find(each => each.id === task.id && each.epoch === epoch)
  const cancel = notice === undefined ? null : { mode: notice.mode, graceSeconds: notice.graceSeconds }
  return { cancel, leaseUntil: task.leaseUntil }
}

/** Says what became of files; answers with all that the attempt has registered. */
export async function artifacts(
  context: Context,
  id: string,
  epoch: number,
  said: SaidArtifacts,
): Promise<ArtifactView[]> {
  checkOptions({ ...said, artifacts: said.artifacts ?? null }, artifactsFields, 'artifacts')
  if (said.whole === true) await registerWhole(context, checkedLease(id, epoch), said.artifacts.map(checkedNew))
  else await say(context, id, epoch, held => ({ artifacts: said.artifacts.map(file => ({ ...file, ...held })) }))
  const found: ArtifactView[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await findArtifacts(context, 'task', id, { limit: 1000, ...(cursor !== undefined && { cursor }) })
    found.push(...page.items.filter(file => file.epoch === epoch))
    if (page.next === null) return found
    cursor = page.next
  }
}

function checkedLease(id: string, epoch: number): HeldTask {
  checkEpoch({ id, epoch })
  return { id: checkId(id), epoch }
}

/** What is not there yet is not uploaded either. */
function checkedNew(file: SaidArtifact): SaidArtifact {
  checkOptions({ ...file, name: file.name ?? null, uri: file.uri ?? null }, artifactFields, 'artifacts')
  if (file.state === 'registered') return file
  throw new Problem('OPTION_INVALID', { at: 'artifacts', option: 'state', must: 'be registered, of all or of none' })
}

/** Settle in this transaction: the attempt has ended when it commits, and goes on if it does not. */
export type Said<Outcome extends OneOutcome> = SaidOf<Outcome> & { readonly tx?: CallerTransaction }

/**
 * Ends the attempt. Said again with the same outcome, it is answered as before. What it spawns must be in the queues
 * that the asker's key is for. Without an epoch it is the attempt that is under way: for reports that name no lease.
 */
export async function settleOne<Outcome extends OneOutcome>(
  context: Context,
  outcome: Outcome,
  id: string,
  epoch: number | null,
  call: Said<Outcome> = {} as Said<Outcome>,
  by: SettledBy = {},
): Promise<TaskView> {
  const { tx, ...said } = call
  checkOptions(said, settleOneFields(outcome), outcome)
  if (tx === undefined) {
    await say(context, id, epoch, held => ({ settled: [{ ...said, ...held, outcome }] }), by)
    return readTask(context, id)
  }
  const within = { ...context, sql: context.within(tx) }
  const task = await readTask(within, id)
  await completeIn(context, tx, { ...said, id, epoch: epoch ?? heldUnder(task), outcome }, task.owner ?? 'nobody')
  return readTask(within, id)
}

/** Ends an attempt in a caller's transaction: what that writes and the end of the task are there together, or not. */
export async function completeIn(
  context: Context,
  tx: CallerTransaction,
  item: SettledTask,
  worker: string,
): Promise<void> {
  checkSettled(context, item)
  const settled = { ...item, id: checkId(item.id) }
  const refused = await settleIn(context, context.within(tx), settled, worker)
  for (const { refusal } of refused) throw problemOf(refusal)
}

export interface SettledBy {
  /** The queues of the asker's key: what the task spawns must be in them. null: every queue. */
  readonly queues?: readonly string[] | null
  /** The task as the asker has just read it: it is not read again. */
  readonly task?: TaskView
}

/** Speaks as whoever holds the task: the fence is the epoch, the name is for people. */
async function say(
  context: Context,
  id: string,
  epoch: number | null,
  part: (held: HeldTask) => Omit<SyncRequest, 'worker'>,
  { queues = null, task: known }: SettledBy = {},
) {
  const task = known ?? (await readTask(context, id))
  const held = { id, epoch: epoch ?? heldUnder(task) }
  const answer = await sync(context, { ...part(held), worker: task.owner ?? 'nobody' }, undefined, { queues })
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
  // A refusal that says more than its code was made of a problem with details.
  return new Problem(code, { id, epoch, ...(message !== `${means} ${hint}` && { why: message }) })
}
