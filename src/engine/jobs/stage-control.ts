/** Operator requests on stages: gates, holds, cancel, retry, seal, and adding tasks. */
import { isApproved } from '../../kernel/advance.ts'
import { cancel } from '../../kernel/decide.ts'
import { newId } from '../../kernel/id.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, movesOpenTo } from '../../kernel/lifecycle.ts'
import { queueOfStage } from '../../kernel/plan.ts'
import { Problem } from '../../kernel/problem.ts'
import { flattenSettings } from '../../kernel/settings.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import {
  type ApproveCall,
  approveFields,
  type CancelCall,
  cancelFields,
  controlFields,
} from '../../protocol/call-options.ts'
import { type Added, type NewStageTask, type StageView, stageTaskFields } from '../../protocol/jobs/jobs.ts'
import { maxTasksPerCall } from '../../protocol/tasks/new-task.ts'
import type { Sql } from '../../store/driver/sql.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'
import { insertStageTasks, type StageTask } from '../../store/jobs/new-job.ts'
import { findJobOf } from '../../store/jobs/read-jobs.ts'
import { decideTasks } from '../../store/tasks/task-updates.ts'
import { checkedJson, checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { checkCommandFiles } from '../files/file-rules.ts'
import { type ControlCall, reasonOf, requireState } from '../tasks/control.ts'
import { checkRegistered, insertChecked } from '../tasks/payload-checks.ts'
import type { UnitCall } from '../unit-of-work.ts'
import { changeJobWithResult, requireRoomInJob } from './job-control.ts'
import type { LockedJob } from './locked-job.ts'
import { readStage } from './read-jobs.ts'
import { canRevive, reviveStages } from './revive.ts'

/** Ten thousand stages with this much each are not too large together, so their size is not checked. */
export const smallBytes = 1000

/**
 * Approves a waiting stage: as one of the gate's approvers, or to end a hold. If the stage is held before its gate, the
 * first approval only ends the hold, and the gate still needs its own approvals.
 */
export function approve(context: Context, id: string, call: ApproveCall & UnitCall = {}) {
  checkOptions(call, approveFields, 'approve')
  const data = call.data === undefined ? '' : checkedJson(call.data, context.maxPayloadBytes, 'data')
  return changeStage(context, id, call, ['approve', call.comment, call.data], async (locked, stage, tx) => {
    requireAllowed(stage, stage.state === 'waiting', 'approve')
    if (data.length > smallBytes) await requireRoomInJob(tx, stage.jobId, data.length)
    const { comment, actor: by = 'operator' } = call
    const approval = { by, ...(comment !== undefined && { comment }), ...(data !== '' && { data: call.data }) }
    // Repeated approvals by the same person count once.
    if (stage.given.some(given => given.by === by) && !stage.held) return
    const isBeforeGate = stage.held && !isApproved(stage)
    const given = isBeforeGate ? stage.given : [...stage.given.filter(earlier => earlier.by !== by), approval]
    locked.moveStage(
      stage,
      { to: 'waiting', type: 'stage.approved', cause: 'approve', payload: approval },
      { given, held: false },
    )
  })
}

/** Rejects a waiting stage. It fails, and its tasks are cancelled. */
export function reject(context: Context, id: string, call: ApproveCall & UnitCall = {}) {
  checkOptions(call, approveFields, 'reject')
  return changeStage(context, id, call, ['reject', call.comment], (locked, stage) => {
    requireAllowed(stage, stage.state === 'waiting', 'reject')
    const { comment, actor: by = 'operator' } = call
    const payload = { by, ...(comment !== undefined && { comment }), ...reasonOf(call) }
    locked.moveStage(stage, { to: 'waiting', type: 'stage.rejected', cause: 'reject', payload }, { held: false })
    locked.decideStageEnd(stage, 'failed', 'rejected', { error: { message: comment ?? `Rejected by ${by}.` } })
  })
}

/** Holds a stage. None of its tasks are claimed until it is approved. */
export function hold(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'hold')
  return changeStage(context, id, call, ['hold'], (locked, stage) => {
    const isOpen = stage.state === 'created' || stage.state === 'pending' || stage.state === 'running'
    requireAllowed(stage, isOpen && stage.endsAs === null, 'hold')
    const { state } = stage
    locked.moveStage(
      stage,
      { to: state, type: 'stage.hold_requested', cause: 'hold', payload: reasonOf(call) },
      { held: true },
    )
  })
}

export function cancelStage(context: Context, id: string, call: CancelCall & UnitCall = {}) {
  checkOptions(call, cancelFields, 'cancel')
  const { mode = 'soft', reason } = call
  return changeStage(context, id, call, ['cancel stage', mode], (locked, stage) => {
    requireAllowed(stage, !isFinal(stageLifecycle, stage.state), 'cancel')
    const payload = { mode, ...reasonOf(call) }
    locked.moveStage(stage, { to: stage.state, type: 'stage.cancel_requested', cause: 'cancel', payload })
    const endsHard = stage.endsHard || mode === 'hard'
    if (stage.endsAs === null || (endsHard && !stage.endsHard)) {
      locked.decideStageEnd(stage, stage.endsAs ?? 'cancelled', stage.endsCause ?? reason ?? 'cancel', { endsHard })
    }
  })
}

/** Opens the next round of a stage that ended badly and, if its job has ended, of the job. */
export function retryStage(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'retry')
  return changeStage(context, id, call, ['retry stage'], (locked, stage) => {
    requireAllowed(
      stage,
      canRevive(stage) && (locked.job.endsAs === null || isFinal(jobLifecycle, locked.job.state)),
      'revive',
    )
    reviveStages(locked, [stage], 'retry')
  })
}

export function sealStage(context: Context, id: string, call: ControlCall = {}) {
  checkOptions(call, controlFields, 'seal')
  return changeStage(context, id, call, ['seal stage'], (locked, stage) => {
    if (stage.open === 'sealed') return
    locked.moveStage(
      stage,
      { to: stage.state, type: 'stage.sealed', cause: 'seal', payload: reasonOf(call) },
      { open: 'sealed' },
    )
  })
}

export interface AddTasksCall extends ControlCall {
  /**
   * Applies if the failure of the job cancelled the stage before it began: `keep` stores the tasks as cancelled, so
   * that they come back with the stage when the job is retried. Default refuse.
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
  const { view, result } = await changeStageWithResult(
    context,
    id,
    call,
    ['tasks', tasks],
    async (locked, stage, tx) => {
      const isKept = ifCalledOff === 'keep' && isCalledOff(locked, stage)
      requireAllowed(stage, isKept || (!isFinal(stageLifecycle, stage.state) && stage.endsAs === null), 'tasks')
      if (stage.open === 'sealed') throw new Problem('SEALED', { stage: stage.id })
      const made = checkTasks(context, stage, tasks)
      await checkRegistered(context.types.known, payloadsOf(made))
      const added = await addTasksToStage(context, tx, locked, stage, made, actor)
      if (isKept) await cancelAdded(tx, locked, stage, added, actor)
      return added
    },
  )
  return { ...view, added: result }
}

/** True if the failure of the job cancelled the stage before any of its tasks began. */
function isCalledOff({ job }: LockedJob, { state, begun, endsCause }: StageRow): boolean {
  return job.state === 'failed' && state === 'cancelled' && !begun && endsCause === (job.endsCause ?? 'job_failed')
}

/** An ended stage must not contain open tasks. */
async function cancelAdded(tx: Sql, locked: LockedJob, stage: StageRow, ids: readonly string[], actor: string) {
  await locked.write(tx)
  await decideTasks(tx, ids, actor, task => cancel(task, 'soft', stage.endsCause ?? undefined))
  await locked.recount(tx)
  locked.setStage(stage, { blocked: 0 })
}

/** Returns the ids of the new tasks. The schemas of this process have accepted their payloads. */
export async function addTasksToStage(
  context: Context,
  tx: Sql,
  locked: LockedJob,
  stage: StageRow,
  made: readonly StageTask[],
  actor: string,
): Promise<string[]> {
  const isOpen = stage.state === 'pending' || stage.state === 'running'
  const state = isOpen ? 'queued' : 'blocked'
  const batch = { stageId: stage.id, state, settings: stage.plan.settings, tasks: made } as const
  await insertChecked(context.types.schemas, tx, payloadsOf(made), versions =>
    insertStageTasks(tx, locked.job, [batch], actor, versions),
  )
  locked.setStage(stage, { total: stage.total + made.length, blocked: stage.blocked + (isOpen ? 0 : made.length) })
  locked.queuesToWake.add(queueOfStage(stage))
  return made.map(task => task.id)
}

const payloadsOf = (tasks: readonly StageTask[]) => ({ tasks, at: (index: number) => `tasks[${index}].payload` })

export function checkTasks(context: Context, stage: StageRow, tasks: readonly NewStageTask[]): StageTask[] {
  return tasks.map((task, index) => checkTask(context, stage, task, `tasks[${index}]`))
}

function checkTask(context: Context, stage: StageRow, task: NewStageTask, at: string): StageTask {
  const { maxPayloadBytes } = context
  checkOptions(task, stageTaskFields, at)
  const { type = stage.plan.task ?? stage.plan.queue, payload, metadata, traceparent } = task
  if (type === null) throw new Problem('OPTION_INVALID', { at, option: 'type', must: 'be given: the stage has none' })
  if (metadata !== undefined) checkedJson(metadata, maxPayloadBytes, `${at}.metadata`)
  checkCommandFiles(context, type, payload, `${at}.payload`)
  const settings = flattenSettings(task)
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

/** Changes one stage under its job's lock. Returns the stage afterwards. */
export async function changeStage(
  context: Context,
  id: string,
  call: ControlCall,
  fingerprint: readonly unknown[],
  change: (locked: LockedJob, stage: StageRow, tx: Sql) => Promise<void> | void,
): Promise<StageView> {
  return (await changeStageWithResult(context, id, call, fingerprint, change)).view
}

/** Like `changeStage`, and also returns the result of `change`. */
async function changeStageWithResult<T>(
  context: Context,
  id: string,
  call: ControlCall,
  fingerprint: readonly unknown[],
  change: (locked: LockedJob, stage: StageRow, tx: Sql) => Promise<T> | T,
): Promise<{ view: StageView; result: T }> {
  const stageId = checkId(id, 'STAGE_NOT_FOUND')
  const sql = context.sqlFor(call.tx)
  const find = async (tx: Sql) => {
    const jobId = await findJobOf(tx, 'stage', stageId)
    if (jobId === undefined || jobId === null) throw new Problem('STAGE_NOT_FOUND', { id })
    return jobId
  }
  const { ifState: _, ...rest } = call
  const { view, result } = await changeJobWithResult(
    context,
    find,
    rest,
    ['stage', stageId, ...fingerprint],
    (locked, tx) => {
      const stage = locked.stages.find(each => each.id === stageId)
      if (stage === undefined) throw new Problem('STAGE_NOT_FOUND', { id })
      requireState(call, stage.state, { stage: stageId })
      return change(locked, stage, tx)
    },
  )
  const found = view.stages.find(stage => stage.id === stageId) ?? (await readStage({ sql }, stageId))
  return { view: found, result }
}

function requireAllowed(stage: StageRow, isAllowed: boolean, move: string): void {
  if (isAllowed) return
  const possible = movesOpenTo(stageLifecycle, stage.state, 'operator')
  throw new Problem('MOVE_REFUSED', { stage: stage.id, state: stage.state, move, possible })
}
