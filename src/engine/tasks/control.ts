import { cancel, deadLetter, type ReasonCode, revive, type Step, type Verdict } from '../../kernel/decide.ts'
import { Problem } from '../../kernel/problem.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import type { Fenced } from '../../protocol/call-options.ts'
import { cancelTaskFields, controlFields, deadLetterFields } from '../../protocol/fields.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { findSlotHolder, freeSlots, slotOf } from '../../store/tasks/enqueue.ts'
import { getTask } from '../../store/tasks/read-tasks.ts'
import { type LockedTask, lockTasks, type TaskUpdate, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import { checkId, checkOptions } from '../check.ts'
import type { CallerTransaction, Context } from '../context.ts'
import type { Idempotency } from '../once.ts'
import { transact } from '../unit-of-work.ts'
import { placed, withItsJob } from './task-of-job.ts'
import { toTaskView } from './task-view.ts'

export interface ControlCall extends Idempotency {
  readonly tx?: CallerTransaction
  /** Who asks, for the events. Default: operator. */
  readonly actor?: string
  readonly traceparent?: string
  readonly reason?: string
  /** Only if it is in one of these states; in another it is refused, whatever the move. */
  readonly ifState?: string | readonly string[]
}

/** Refuses what is not in a state that the caller reckons with. */
export function demandState({ ifState }: ControlCall, state: string, named: Record<string, unknown>): void {
  const wanted = ifState === undefined ? undefined : [ifState].flat()
  if (wanted?.includes(state) === false) throw new Problem('MOVE_REFUSED', { ...named, state, ifState: wanted })
}

/** Calls a task off. Soft: a worker that holds it is told, and may finish or clean up. Hard: it ends now. */
export async function cancelTask(
  context: Context,
  id: string,
  call: ControlCall & Fenced & { mode?: 'soft' | 'hard' } = {},
) {
  checkOptions(call, cancelTaskFields, 'cancel')
  const { mode = 'soft', reason } = call
  return control(context, id, call, ['cancel', mode, reason], task => cancel(task, mode, reason))
}

/** Opens the next round of a task that was cancelled. */
export async function resumeTask(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'resume')
  return control(context, id, call, ['resume'], task => revive(task, 'resume', why(call)))
}

/** Opens the next round of a task that failed or expired. */
export async function retryTask(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'retry')
  return control(context, id, call, ['retry'], task => revive(task, 'retry', why(call)))
}

export interface DeadLetterCall extends ControlCall, Fenced {
  readonly reasonCode: ReasonCode
  readonly step?: Step
}

/** Sets a task aside for people. */
export async function deadLetterTask(context: Context, id: string, call: DeadLetterCall) {
  // What is not given is as wrong as what is not known.
  checkOptions({ ...call, reasonCode: call.reasonCode ?? null }, deadLetterFields, 'deadLetter')
  const { reasonCode, step, reason } = call
  const said = { reasonCode, ...(step && { step }), ...(reason !== undefined && { reason }) }
  const by = call.epoch === undefined ? 'operator' : 'holder'
  return control(context, id, call, ['dead-letter', said], task => deadLetter(task, said, by))
}

const why = ({ reason }: ControlCall) => (reason === undefined ? {} : { reason })

/** One request on one task: all or nothing, once per idempotency key, answered with the task as it then is. */
async function control(
  context: Context,
  id: string,
  call: ControlCall & Fenced,
  request: unknown[],
  decide: (task: LockedTask) => Verdict,
): Promise<TaskView> {
  const taskId = checkId(id)
  const actor = call.actor ?? 'operator'
  const fence = call.epoch === undefined ? [] : [{ epoch: call.epoch }]
  const asked = ['task', taskId, ...request, ...fence]
  return transact(context, call, asked, async (tx, after) => {
    await withItsJob(tx, after, taskId, actor, async book => {
      const [task] = await lockTasks(tx, [taskId])
      if (task === undefined) throw new Problem('TASK_NOT_FOUND', { id })
      if (fence.some(({ epoch }) => !isHeldUnder(task, epoch))) throw new Problem('LEASE_LOST', { id, ...fence[0] })
      demandState(call, task.state, { id: taskId })
      const ruling = await rule(tx, task, decide(task))
      await writeTaskUpdates(tx, [placed(book, ruling)], actor)
    })
    const view = toTaskView((await getTask(tx, taskId))!)
    if (view.state === 'queued') after.wake([view.queue])
    return view
  }).catch(keyTaken(taskId))
}

function isHeldUnder(task: LockedTask, epoch: number): boolean {
  return task.epoch === epoch && taskLifecycle.states[task.state].kind === 'held'
}

/** Another took the dedupe key between the look and the write. */
function keyTaken(id: string) {
  return (error: unknown): never => {
    const { constraint } = error as { constraint?: unknown }
    throw constraint === 'task_dedupe' ? new Problem('DEDUPE_CONFLICT', { id }, error) : error
  }
}

/** Makes a verdict a ruling. A task that comes back stands for its dedupe key again, if no other does by now. */
export async function rule(sql: Sql, task: LockedTask, verdict: Verdict): Promise<TaskUpdate> {
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
