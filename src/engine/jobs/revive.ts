/** Opens the next round of a task, a stage or a whole job. Successful tasks are never reopened. */
import { sourceStagesOf } from '../../kernel/datum.ts'
import { revivalOf, revive } from '../../kernel/decide.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, mayMove } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { type Batch, tasksAfter } from '../../store/jobs/errands.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'
import { decideTasks } from '../../store/tasks/task-updates.ts'
import type { StagePatch } from './job-changes.ts'
import type { LockedJob } from './locked-job.ts'
import { deadlineOf } from './submit.ts'

/** Reopens stages that ended badly, the stages that were cancelled or skipped because of them, and the job. */
export function reviveStages(locked: LockedJob, stages: readonly StageRow[], cause: string): void {
  const others = endedBecauseOf(locked, stages)
  requireOutputs([...stages, ...others])
  reviveJob(locked, cause)
  for (const stage of [...stages, ...others]) reopenStage(locked, stage, cause, pendingWorkOf(stage))
}

/** Reopens the stage of one revived task. The stage's other tasks stay as they are. */
export function reviveStageOfTask(locked: LockedJob, stage: StageRow, cause: string): void {
  const others = endedBecauseOf(locked, [stage])
  requireOutputs([stage, ...others])
  reviveJob(locked, cause)
  reopenStage(locked, stage, cause, null)
  for (const other of others) reopenStage(locked, other, cause, pendingWorkOf(other))
}

/** A successful task never runs again, so if its output files are lost, the stage would fail in every round. */
function requireOutputs(stages: readonly StageRow[]): void {
  const lost = stages.find(({ outputLost }) => outputLost)
  if (lost !== undefined) throw new Problem('OUTPUT_LOST', { job: lost.jobId, stage: lost.name })
}

function reviveJob(locked: LockedJob, cause: string): void {
  const { job } = locked
  if (job.compensated) throw new Problem('JOB_COMPENSATED', { id: job.id })
  if (!isFinal(jobLifecycle, job.state)) return
  const fresh = { endsAs: null, endsCause: null, begun: false, deadlineAt: deadlineOf(locked) }
  locked.reviveJob({ to: 'pending', cause }, fresh)
}

/**
 * Returns the stages that were cancelled or skipped because of the given ones: cancelled by the end of the job, or
 * dependent on such a stage.
 */
function endedBecauseOf(locked: LockedJob, stages: readonly StageRow[]): StageRow[] {
  const { job } = locked
  const cause = job.endsCause ?? `job_${job.endsAs}`
  const others = locked.stages.filter(stage => stage.kind === 'work' && !stages.includes(stage))
  const calledOff = others.filter(
    stage => job.endsAs !== null && stage.state === 'cancelled' && stage.endsCause === cause,
  )
  const dependents = new Set(dependentsOf(locked, [...stages, ...calledOff]))
  const isBelow = (stage: StageRow) =>
    dependents.has(stage) && (stage.state === 'cancelled' || stage.state === 'skipped')
  return others.filter(stage => calledOff.includes(stage) || isBelow(stage))
}

/** Tasks that were skipped together with their stage are reopened with it. Tasks that a handler skipped are not. */
const pendingWorkOf = ({ state }: StageRow) => (state === 'skipped' ? 'reopen' : 'revive')

function reopenStage(locked: LockedJob, stage: StageRow, cause: string, errand: 'revive' | 'reopen' | null): void {
  // The evaluated list is kept, and its remaining elements become tasks now.
  const hasTasks = stage.total > 0 || (stage.plan.gives === undefined && stage.fanned + stage.unfanned > 0)
  locked.reviveStage(
    stage,
    { to: 'created', cause },
    {
      endedIn: null,
      endsAs: null,
      endsCause: null,
      endsHard: false,
      calledOff: false,
      held: false,
      given: [],
      error: null,
      begun: false,
      gateUntil: null,
      errandAt: null,
      errand,
      badBefore: stage.bad,
      total: stage.total + stage.unfanned,
      opening: stage.opening === 'yes' && hasTasks ? 'yes' : null,
      ...listingOf(stage),
    },
  )
}

/**
 * An interrupted listing continues where it stopped. If the inputs come from another stage, the listing starts over,
 * because that stage may have added files anywhere. Existing tasks are kept.
 */
function listingOf({ plan, listing }: StageRow): Pick<StagePatch, 'listing' | 'listAt'> {
  if (!listing || !plan.files?.inputs) return {}
  if (sourceStagesOf(plan.files).length > 0) return { listing: 'wanted', listAt: null }
  return listing === 'under way' ? { listing: 'wanted' } : {}
}

/** Returns all direct and indirect dependents of these stages. */
function dependentsOf(locked: LockedJob, stages: readonly StageRow[]): StageRow[] {
  const names = new Set(stages.map(({ name }) => name))
  const found: StageRow[] = []
  for (let grown = true; grown; ) {
    grown = false
    for (const stage of locked.stages) {
      if (stage.kind !== 'work' || names.has(stage.name) || !stage.plan.needs.some(need => names.has(need))) continue
      names.add(stage.name)
      found.push(stage)
      grown = true
    }
  }
  return found
}

export const canRevive = ({ kind, state }: StageRow) => kind === 'work' && mayMove(stageLifecycle, state, 'revive')

/**
 * Revives the stage's next batch of tasks: those that ended badly, and those that were skipped with the whole stage.
 */
export async function reviveBatch(tx: Sql, stage: StageRow, limit: number, actor: string): Promise<Batch> {
  const tasks = await tasksAfter(tx, [stage], limit)
  const ended = tasks.flatMap(({ id, isEnded }) => (isEnded ? [id] : []))
  await decideTasks(tx, ended, actor, task => {
    const move = revivalOf(task.state)
    if (move === undefined || (move === 'reopen' && stage.errand !== 'reopen')) return undefined
    return revive(task, move, {}, 'blocked')
  })
  return { last: tasks.at(-1)?.id ?? null, seen: tasks.length }
}
