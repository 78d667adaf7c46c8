/** What people ask of a stage: gates, holds, ends, and more tasks. */
import { isApproved } from '../../kernel/advance.ts'
import { cancel } from '../../kernel/decide.ts'
import { newId } from '../../kernel/id.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { queueOfStage } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import { settingsOf } from '../../kernel/settings.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { approveFields, cancelFields, controlFields, maxTasksPerCall, stageTaskFields } from '../../protocol/fields.ts'
import type { Added, NewStageTask, StageView } from '../../protocol/jobs/jobs.ts'
import type { Sql } from '../../store/driver/sql.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'
import { findJobOf } from '../../store/jobs/read-jobs.ts'
import { insertStageTasks, type StageTask } from '../../store/jobs/stage-tasks.ts'
import { lockTasks, type TaskUpdate, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import { checkedJson, checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import { type ControlCall, demandState } from '../tasks/control.ts'
import { requestOn, why } from './job-control.ts'
import type { JobBook } from './locked-job.ts'
import { readStage } from './read-jobs.ts'
import { canRevive, reviveStages } from './revive.ts'

export interface ApproveCall extends ControlCall {
  readonly comment?: string
  /** What the approver filled in: later stages can read it. */
  readonly data?: unknown
}

/**
 * Approves a stage that waits: at its gate, as one of those that must, or after a hold. Of one that is held before its
 * gate, the first approval ends the hold and passes nothing: the gate asks for its own.
 */
export function approve(context: Context, id: string, call: ApproveCall = {}) {
  checkOptions(call, approveFields, 'approve')
  if (call.data !== undefined) checkedJson(call.data, context.maxPayloadBytes, 'data')
  return onStage(context, id, call, ['approve', call.comment, call.data], (book, stage) => {
    demand(stage, stage.state === 'waiting', 'approve')
    const { comment, data, actor: by = 'operator' } = call
    const approval = { by, ...(comment !== undefined && { comment }), ...(data !== undefined && { data }) }
    // The same person twice is one approver.
    if (stage.given.some(given => given.by === by) && !stage.held) return
    const isBeforeGate = stage.held && !isApproved(stage)
    const given = isBeforeGate ? stage.given : [...stage.given.filter(earlier => earlier.by !== by), approval]
    book.moveStage(
      stage,
      { to: 'waiting', type: 'stage.approved', cause: 'approve', payload: approval },
      { given, held: false },
    )
  })
}

/** Refuses a stage that waits: it fails, and what it holds is called off. */
export function reject(context: Context, id: string, call: ApproveCall = {}) {
  checkOptions(call, approveFields, 'reject')
  return onStage(context, id, call, ['reject', call.comment], (book, stage) => {
    demand(stage, stage.state === 'waiting', 'reject')
    const { comment, actor: by = 'operator' } = call
    const payload = { by, ...(comment !== undefined && { comment }), ...why(call) }
    book.moveStage(stage, { to: 'waiting', type: 'stage.rejected', cause: 'reject', payload }, { held: false })
    book.intendStage(stage, 'failed', 'rejected', { error: { message: comment ?? `Rejected by ${by}.` } })
  })
}

/** Holds a stage for an outside condition: nothing of it is claimed until it is approved. */
export function hold(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'hold')
  return onStage(context, id, call, ['hold'], (book, stage) => {
    const isOpen = stage.state === 'created' || stage.state === 'pending' || stage.state === 'running'
    demand(stage, isOpen && stage.endsAs === null, 'hold')
    const { state } = stage
    book.moveStage(
      stage,
      { to: state, type: 'stage.hold_requested', cause: 'hold', payload: why(call) },
      { held: true },
    )
  })
}

export function cancelStage(context: Context, id: string, call: ControlCall & { mode?: 'soft' | 'hard' } = {}) {
  checkOptions(call, cancelFields, 'cancel')
  const { mode = 'soft', reason } = call
  return onStage(context, id, call, ['cancel stage', mode], (book, stage) => {
    demand(stage, !isFinal(stageLifecycle, stage.state), 'cancel')
    const payload = { mode, ...why(call) }
    book.moveStage(stage, { to: stage.state, type: 'stage.cancel_requested', cause: 'cancel', payload })
    const endsHard = stage.endsHard || mode === 'hard'
    if (stage.endsAs === null || (endsHard && !stage.endsHard)) {
      book.intendStage(stage, stage.endsAs ?? 'cancelled', stage.endsCause ?? reason ?? 'cancel', { endsHard })
    }
  })
}

/** Opens the next round of a stage that ended badly, and of its job if that has ended. */
export function retryStage(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'retry')
  return onStage(context, id, call, ['retry stage'], (book, stage) => {
    demand(stage, canRevive(stage) && (book.job.endsAs === null || isFinal(jobLifecycle, book.job.state)), 'revive')
    reviveStages(book, [stage], 'retry')
  })
}

export function sealStage(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'seal')
  return onStage(context, id, call, ['seal stage'], (book, stage) => {
    if (stage.open === 'sealed') return
    book.moveStage(
      stage,
      { to: stage.state, type: 'stage.sealed', cause: 'seal', payload: why(call) },
      { open: 'sealed' },
    )
  })
}

export interface AddTasksCall extends ControlCall {
  /**
   * If the failure of the job cancelled the stage before its turn: `keep` stores the tasks as cancelled, so that they
   * come back with the stage when the job is retried. Default refuse.
   */
  readonly ifCalledOff?: 'refuse' | 'keep'
}

/** Adds tasks to an open stage that has not ended. */
export async function addTasks(
  context: Context,
  id: string,
  tasks: readonly NewStageTask[],
  { ifCalledOff = 'refuse', ...call }: AddTasksCall = {},
): Promise<StageView & Added> {
  checkOptions(call, controlFields, 'tasks')
  if (tasks.length > maxTasksPerCall) throw new Problem('TOO_MANY_TASKS', { tasks: tasks.length })
  const { actor = 'operator' } = call
  const { view, result } = await onStageFor(context, id, call, ['tasks', tasks], async (book, stage, tx) => {
    const isKept = ifCalledOff === 'keep' && isCalledOff(book, stage)
    demand(stage, isKept || (!isFinal(stageLifecycle, stage.state) && stage.endsAs === null), 'tasks')
    if (stage.open === 'sealed') throw new Problem('SEALED', { stage: stage.id })
    const added = await addTasksTo(context, tx, book, stage, tasks, actor)
    if (isKept) await cancelAdded(tx, book, stage, added, actor)
    return added
  })
  return { ...view, added: result }
}

/** The failure of its job cancelled it before any of its tasks had begun. */
function isCalledOff({ job }: JobBook, { state, begun, endsCause }: StageRow): boolean {
  return job.state === 'failed' && state === 'cancelled' && !begun && endsCause === (job.endsCause ?? 'job_failed')
}

/** No task may be open in a stage that has ended. */
async function cancelAdded(tx: Sql, book: JobBook, stage: StageRow, ids: readonly string[], actor: string) {
  await book.write(tx)
  const rulings = (await lockTasks(tx, ids)).flatMap((task): TaskUpdate[] => {
    const verdict = cancel(task, 'soft', stage.endsCause ?? undefined)
    return verdict.ok ? [{ task, steps: verdict.steps, patch: verdict.patch }] : []
  })
  await writeTaskUpdates(tx, rulings, actor)
  await book.recount(tx)
  book.setStage(stage, { blocked: 0 })
}

/** Answers with their ids. */
export async function addTasksTo(
  context: Context,
  tx: Sql,
  book: JobBook,
  stage: StageRow,
  tasks: readonly NewStageTask[],
  actor: string,
): Promise<string[]> {
  const made = tasks.map((task, index) => checkedTask(context, stage, task, `tasks[${index}]`))
  const isOpen = stage.state === 'pending' || stage.state === 'running'
  const batch = { stageId: stage.id, settings: stage.plan.settings, tasks: made }
  await insertStageTasks(tx, book.job, [{ ...batch, state: isOpen ? 'queued' : 'blocked' }], actor)
  book.setStage(stage, { total: stage.total + made.length, blocked: stage.blocked + (isOpen ? 0 : made.length) })
  book.told.add(queueOfStage(stage))
  return made.map(task => task.id)
}

function checkedTask(context: Context, stage: StageRow, task: NewStageTask, at: string): StageTask {
  const { maxPayloadBytes } = context
  checkOptions(task, stageTaskFields, at)
  const { type = stage.plan.task ?? stage.plan.queue, payload, metadata, traceparent } = task
  if (type === null) throw new Problem('OPTION_INVALID', { at, option: 'type', must: 'be given: the stage has none' })
  if (metadata !== undefined) checkedJson(metadata, maxPayloadBytes, `${at}.metadata`)
  checkCommandFiles(context, type, payload, `${at}.payload`)
  const settings = settingsOf(task)
  const own = {
    ...(settings !== undefined && { settings }),
    ...(metadata !== undefined && { metadata }),
    ...(traceparent !== undefined && { traceparent }),
  }
  return {
    id: newId(),
    type,
    payload: checkedJson(payload, maxPayloadBytes, `${at}.payload`),
    ...(Object.keys(own).length > 0 && { own }),
  }
}

/** One request on one stage, under the lock of its job. */
export async function onStage(
  context: Context,
  id: string,
  call: ControlCall,
  what: readonly unknown[],
  change: (book: JobBook, stage: StageRow, tx: Sql) => Promise<void> | void,
): Promise<StageView> {
  return (await onStageFor(context, id, call, what, change)).view
}

/** The same, and what came of it. */
async function onStageFor<T>(
  context: Context,
  id: string,
  call: ControlCall,
  what: readonly unknown[],
  change: (book: JobBook, stage: StageRow, tx: Sql) => Promise<T> | T,
): Promise<{ view: StageView; result: T }> {
  const stageId = checkId(id, 'STAGE_NOT_FOUND')
  const sql = context.within(call.tx)
  const find = async (tx: Sql) => {
    const jobId = await findJobOf(tx, 'stage', stageId)
    if (jobId === undefined || jobId === null) throw new Problem('STAGE_NOT_FOUND', { id })
    return jobId
  }
  const { ifState: _, ...rest } = call
  const { view, result } = await requestOn(context, find, rest, ['stage', stageId, ...what], (book, tx) => {
    const stage = book.stages.find(each => each.id === stageId)
    if (stage === undefined) throw new Problem('STAGE_NOT_FOUND', { id })
    demandState(call, stage.state, { stage: stageId })
    return change(book, stage, tx)
  })
  const found = view.stages.find(stage => stage.id === stageId) ?? (await readStage({ sql }, stageId))
  return { view: found, result }
}

function demand(stage: StageRow, isAllowed: boolean, move: string): void {
  if (isAllowed) return
  const possible = movesOpenTo(stageLifecycle, stage.state, 'operator')
  throw new Problem('MOVE_REFUSED', { stage: stage.id, state: stage.state, move, possible })
}
