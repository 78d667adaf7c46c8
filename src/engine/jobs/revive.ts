/** The next round: of a task, of a stage, of a whole job. What succeeded is never opened again. */
import { takenBy } from '../../kernel/datum.ts'
import { revivalOf, revive } from '../../kernel/decide.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { isFinal, mayMove } from '../../kernel/lifecycle.ts'
import { Problem } from '../../kernel/problem.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import type { Sql } from '../../store/driver/sql.ts'
import { type Batch, tasksAfter } from '../../store/jobs/errands.ts'
import type { StageRow } from '../../store/jobs/jobs.ts'
import { lockTasks, type TaskUpdate, writeTaskUpdates } from '../../store/tasks/task-updates.ts'
import type { StagePatch } from './job-patch.ts'
import type { JobBook } from './locked-job.ts'
import { deadlineOf } from './submit.ts'

/** Brings back stages that ended badly, those that were called off or skipped because of it, and the job. */
export function reviveStages(book: JobBook, stages: readonly StageRow[], cause: string): void {
  const others = because(book, stages)
  demandFiles([...stages, ...others])
  reviveJob(book, cause)
  for (const stage of [...stages, ...others]) bringBack(book, stage, cause, errandOf(stage))
}

/** A stage whose one task comes back: of its other tasks, none does. */
export function reviveStageOf(book: JobBook, stage: StageRow, cause: string): void {
  const others = because(book, [stage])
  demandFiles([stage, ...others])
  reviveJob(book, cause)
  bringBack(book, stage, cause, null)
  for (const other of others) bringBack(book, other, cause, errandOf(other))
}

/** A task that succeeded is never done again, so what it had put out and was lost would fail its stage in every round. */
function demandFiles(stages: readonly StageRow[]): void {
  const lost = stages.find(({ outputLost }) => outputLost)
  if (lost !== undefined) throw new Problem('OUTPUT_LOST', { job: lost.jobId, stage: lost.name })
}

function reviveJob(book: JobBook, cause: string): void {
  const { job } = book
  if (job.compensated) throw new Problem('JOB_COMPENSATED', { id: job.id })
  if (!isFinal(jobLifecycle, job.state)) return
  const fresh = { endsAs: null, endsCause: null, begun: false, deadlineAt: deadlineOf(book) }
  book.reviveJob({ to: 'pending', cause }, fresh)
}

/** Stages that were called off or skipped because of these: what the job's end called off, and what lies below. */
function because(book: JobBook, stages: readonly StageRow[]): StageRow[] {
  const { job } = book
  const cause = job.endsCause ?? `job_${job.endsAs}`
  const others = book.stages.filter(stage => stage.kind === 'work' && !stages.includes(stage))
  const calledOff = others.filter(
    stage => job.endsAs !== null && stage.state === 'cancelled' && stage.endsCause === cause,
  )
  const under = new Set(below(book, [...stages, ...calledOff]))
  const isBelow = (stage: StageRow) => under.has(stage) && (stage.state === 'cancelled' || stage.state === 'skipped')
  return others.filter(stage => calledOff.includes(stage) || isBelow(stage))
}

/** What was passed over with the whole stage comes back with it; what a handler skipped does not. */
const errandOf = ({ state }: StageRow) => (state === 'skipped' ? 'reopen' : 'revive')

function bringBack(book: JobBook, stage: StageRow, cause: string, errand: 'revive' | 'reopen' | null): void {
  // A list that was looked at is kept, and what is left of it becomes tasks now.
  const hasTasks = stage.total > 0 || (stage.plan.gives === undefined && stage.fanned + stage.unfanned > 0)
  book.reviveStage(
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
 * Inputs that had not been found are looked for again, from where it stopped. What another stage puts out may have become
 * more in any place since it was looked at, so that is looked at from the start; what is a task already stays the one.
 */
function listingOf({ plan, listing }: StageRow): Pick<StagePatch, 'listing' | 'listAt'> {
  if (!listing || !plan.files?.inputs) return {}
  if (takenBy(plan.files).length > 0) return { listing: 'wanted', listAt: null }
  return listing === 'under way' ? { listing: 'wanted' } : {}
}

/** All stages that need one of these, near or far. */
function below(book: JobBook, stages: readonly StageRow[]): StageRow[] {
  const names = new Set(stages.map(({ name }) => name))
  const found: StageRow[] = []
  for (let grown = true; grown; ) {
    grown = false
    for (const stage of book.stages) {
      if (stage.kind !== 'work' || names.has(stage.name) || !stage.plan.needs.some(need => names.has(need))) continue
      names.add(stage.name)
      found.push(stage)
      grown = true
    }
  }
  return found
}

export const canRevive = ({ kind, state }: StageRow) => kind === 'work' && mayMove(stageLifecycle, state, 'revive')

/** The next tasks of a stage that comes back: what ended badly, and what was passed over with the whole stage. */
export async function reviveBatch(tx: Sql, stage: StageRow, limit: number, actor: string): Promise<Batch> {
  const tasks = await tasksAfter(tx, [stage], limit)
  const ended = tasks.flatMap(({ id, isEnded }) => (isEnded ? [id] : []))
  const rulings = (await lockTasks(tx, ended)).flatMap((task): TaskUpdate[] => {
    const move = revivalOf(task.state)
    if (move === undefined || (move === 'reopen' && stage.errand !== 'reopen')) return []
    const verdict = revive(task, move, {}, 'blocked')
    return verdict.ok ? [{ task, steps: verdict.steps, patch: verdict.patch }] : []
  })
  await writeTaskUpdates(tx, rulings, actor)
  return { last: tasks.at(-1)?.id ?? null, seen: tasks.length }
}
