import { cancel, deadLetter, loseLease, revive, type Verdict } from '../../kernel/decide.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { LostWorkerView } from '../../protocol/admin/admin.ts'
import {
  type CancelCall,
  cancelTaskFields,
  controlFields,
  type DeadLetterCall,
  deadLetterFields,
  type Fenced,
  type LoseWorkerCall,
  loseWorkerFields,
  type ControlCall as RemoteControlCall,
} from '../../protocol/call-options.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import { faultOf, text } from '../../schema/check.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { findJobOf } from '../../store/jobs/read-jobs.ts'
import { findSlotHolder, freeSlots, slotOf } from '../../store/tasks/enqueue.ts'
import { getTask } from '../../store/tasks/read-tasks.ts'
import { findLeasesOfWorker } from '../../store/tasks/sessions.ts'
import { deleteTasks } from '../../store/tasks/task-chores.ts'
import {
  type LockedTask,
  lockTasks,
  stagesOfUpdates,
  type TaskUpdate,
  writeTaskUpdates,
} from '../../store/tasks/task-updates.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { type AfterCommit, advanceInTransaction } from '../jobs/advance-job.ts'
import type { LockedJob } from '../jobs/locked-job.ts'
import { canRevive, reviveStageOfTask } from '../jobs/revive.ts'
import { transact, type UnitCall } from '../unit-of-work.ts'
import { toTaskView } from './task-view.ts'

/** Options of a change of state in this process. */
export interface ControlCall extends RemoteControlCall, UnitCall {}

/** Throws unless the state is one that the caller expects. */
export function requireState({ ifState }: ControlCall, state: string, details: Record<string, unknown>): void {
  const expected = ifState === undefined ? undefined : [ifState].flat()
  if (expected?.includes(state) === false) throw new Problem('MOVE_REFUSED', { ...details, state, ifState: expected })
}

/** Cancels a task. Soft: the worker is asked to stop, and may finish or clean up. Hard: the task ends at once. */
export async function cancelTask(context: Context, id: string, call: CancelCall & Fenced & UnitCall = {}) {
  checkOptions(call, cancelTaskFields, 'cancel')
  const { mode = 'soft', reason } = call
  return changeTask(context, id, call, ['cancel', mode, reason], task => cancel(task, mode, reason))
}

/** Opens the next round of a task that was cancelled. */
export async function resumeTask(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'resume')
  return changeTask(context, id, call, ['resume'], task => revive(task, 'resume', reasonOf(call)))
}

/** Opens the next round of a task that failed or expired. */
export async function retryTask(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'retry')
  return changeTask(context, id, call, ['retry'], task => revive(task, 'retry', reasonOf(call)))
}

/** Moves a task to the dead-letter queue. */
export async function deadLetterTask(context: Context, id: string, call: DeadLetterCall & UnitCall) {
  // A missing reason code is as invalid as an unknown one.
  checkOptions({ ...call, reasonCode: call.reasonCode ?? null }, deadLetterFields, 'deadLetter')
  const { reasonCode, step, reason } = call
  const reasons = { reasonCode, ...(step && { step }), ...(reason !== undefined && { reason }) }
  const by = call.epoch === undefined ? 'operator' : 'holder'
  return changeTask(context, id, call, ['dead-letter', reasons], task => deadLetter(task, reasons, by))
}

export const reasonOf = ({ reason }: ControlCall) => (reason === undefined ? {} : { reason })

/** Changes one task, all or nothing and once per idempotency key. Returns the task afterwards. */
async function changeTask(
  context: Context,
  id: string,
  call: ControlCall & Fenced,
  request: unknown[],
  decide: (task: LockedTask) => Verdict,
): Promise<TaskView> {
  const taskId = checkId(id)
  const actor = call.actor ?? 'operator'
  const fence = call.epoch === undefined ? [] : [{ epoch: call.epoch }]
  const fingerprint = ['task', taskId, ...request, ...fence]
  return transact(context, call, fingerprint, async (tx, after) => {
    const jobId = (await findJobOf(tx, 'task', taskId)) ?? null
    await withLockedJob(context, tx, after, jobId, actor, async locked => {
      const [task] = await lockTasks(tx, [taskId])
      if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
      if (fence.some(({ epoch }) => !isHeldUnder(task, epoch))) throw new Problem('LEASE_LOST', { id, ...fence[0] })
      requireState(call, task.state, { id: taskId })
      const ruling = await toRuling(tx, task, decide(task))
      await writeTaskUpdates(tx, [reviveInJob(locked, ruling)], actor)
    })
    const view = toTaskView((await getTask(tx, taskId))!)
    if (view.state === 'queued') after.addQueues([view.queue])
    return view
  }).catch(throwDedupeConflict(taskId))
}

function isHeldUnder(task: LockedTask, epoch: number): boolean {
  return task.epoch === epoch && taskLifecycle.states[task.state].kind === 'held'
}

/** Another transaction took the dedupe key between the check and the write. */
function throwDedupeConflict(id: string) {
  return (error: unknown): never => {
    const { constraint } = error as { constraint?: unknown }
    throw constraint === 'task_dedupe' ? new Problem('DEDUPE_CONFLICT', { id }, error) : error
  }
}

/** Turns a verdict into a ruling. A revived task takes its dedupe key again, unless another task has it by now. */
export async function toRuling(sql: Sql, task: LockedTask, verdict: Verdict): Promise<TaskUpdate> {
  if (!verdict.ok) {
    throw new Problem('MOVE_REFUSED', {
      id: task.id,
      state: task.state,
      move: verdict.move,
      possible: verdict.possible,
    })
  }
  const { steps, patch } = verdict
  if (patch.opensRound !== true || task.dedupeKey === null) return { task, steps, patch }
  const dedupeSlot = slotOf({ queue: task.queue, dedupeKey: task.dedupeKey })
  await freeSlots(sql, [dedupeSlot])
  const holder = await findSlotHolder(sql, dedupeSlot)
  if (holder !== undefined && holder !== task.id) {
    throw new Problem('DEDUPE_CONFLICT', { id: task.id, dedupeKey: task.dedupeKey, heldBy: holder })
  }
  return { task, steps, patch: { ...patch, dedupeSlot } }
}

/**
 * Deletes a finished task with its events and logs before its retention ends. A task of a job is deleted with its job.
 */
export async function deleteTask(context: Context, id: string, call: ControlCall = {}): Promise<void> {
  checkOptions(call, controlFields, 'delete')
  const taskId = checkId(id)
  await transact(context, call, ['task', taskId, 'delete'], async tx => {
    const [task] = await lockTasks(tx, [taskId])
    if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
    if (task.jobId !== null) throw new Problem('TASK_OF_JOB', { id: taskId, job: task.jobId })
    if (!isFinal(taskLifecycle, task.state)) {
      const possible = movesOpenTo(taskLifecycle, task.state, 'operator')
      throw new Problem('MOVE_REFUSED', { id: taskId, state: task.state, move: 'delete', possible })
    }
    await deleteTasks(tx, [taskId])
    return null
  })
}

/**
 * Ends all leases of a worker as if they had expired. This is safe even if the worker is alive: its later reports are
 * refused because its epochs are over. If it reports a task concurrently, whichever locks the task first wins.
 */
export async function loseWorker(
  context: Context,
  worker: string,
  call: LoseWorkerCall & { readonly holder?: string } = {},
): Promise<LostWorkerView> {
  const must = faultOf(text(200), worker)
  if (must !== undefined) throw new Problem('OPTION_INVALID', { at: 'loseWorker', option: 'worker', must })
  checkOptions(call, loseWorkerFields, 'loseWorker')
  const { actor = 'operator', reason = 'The worker was declared lost.' } = call
  const fingerprint = ['lose worker', worker, reason]
  return transact(context, call, fingerprint, async (tx, after) => {
    const held = await findLeasesOfWorker(tx, worker)
    const owners = [...new Set(held.map(({ owner }) => owner))]
    if (owners.length > 1) throw new Problem('WORKER_AMBIGUOUS', { worker, workers: owners.slice(0, 20) })
    const leases = new Map(held.map(({ id, epoch }) => [id, epoch]))
    const tasks = await lockTasks(tx, [...leases.keys()])
    const rulings: TaskUpdate[] = tasks.flatMap(task => {
      const isHeld = task.state === 'assigned' || task.state === 'running'
      if (!isHeld || task.epoch !== leases.get(task.id)) return []
      const verdict = loseLease(task, { charged: true, why: reason })
      return verdict.ok ? [{ task, steps: verdict.steps, patch: verdict.patch }] : []
    })
    await writeTaskUpdates(tx, rulings, actor)
    after.addQueues(rulings.map(({ task }) => task.queue))
    after.addStages(stagesOfUpdates(rulings))
    return { worker: owners[0] ?? worker, tasks: rulings.map(({ task }) => task.id) }
  })
}

/** Runs `work` with the task's job locked, if it has one, and then advances the job in the same transaction. */
export async function withLockedJob<T>(
  context: Context,
  tx: Sql,
  after: AfterCommit,
  jobId: string | null,
  actor: string,
  work: (locked: LockedJob | undefined) => Promise<T>,
): Promise<T> {
  if (jobId === null) return work(undefined)
  return advanceInTransaction(context, tx, after, jobId, actor, async locked => {
    const done = await work(locked)
    await locked.recount(tx)
    for (const stage of locked.stages) {
      if (stage.badBefore > stage.bad) locked.setStage(stage, { badBefore: stage.bad })
    }
    return done
  })
}

/** Revives a task's stage and job if they have ended. The task stays blocked until its stage opens. */
export function reviveInJob(locked: LockedJob | undefined, ruling: TaskUpdate): TaskUpdate {
  const { task, steps, patch } = ruling
  const stage = locked?.stages.find(({ id }) => id === task.stageId)
  if (locked === undefined || stage === undefined || patch.opensRound !== true) return ruling
  if (locked.job.compensated) throw new Problem('JOB_COMPENSATED', { id: locked.job.id })
  const isStopping = locked.job.endsAs !== null && !isFinal(jobLifecycle, locked.job.state)
  if (isStopping) throw stageStopping(ruling)
  if (isFinal(stageLifecycle, stage.state)) {
    if (!canRevive(stage)) throw stageStopping(ruling)
    reviveStageOfTask(locked, stage, steps[0]!.cause)
  } else if (stage.endsAs !== null) throw stageStopping(ruling)
  if (stage.state === 'pending' || stage.state === 'running') return ruling
  return { ...ruling, steps: [{ ...steps[0]!, to: 'blocked' }] }
}

function stageStopping({ task }: TaskUpdate): Problem {
  const possible = movesOpenTo(taskLifecycle, task.state, 'operator')
  return new Problem('MOVE_REFUSED', { id: task.id, state: task.state, why: 'its stage is being stopped', possible })
}
