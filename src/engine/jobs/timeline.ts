import {
  type TimelineQuery,
  type TimelineView,
  type TroubleQuery,
  type TroubleView,
  timelineFields,
  troubleQueryFields,
} from '../../protocol/jobs/timeline.ts'
import {
  type AttemptRow,
  attemptsOfJob,
  countTasksOf,
  groupTroubles,
  type StageStep,
  stepsOfStages,
} from '../../store/jobs/timeline.ts'
import { checkId, checkOptions } from '../check.ts'
import type { Context } from '../context.ts'
import { iso } from '../tasks/task-view.ts'
import { readJob } from './read-jobs.ts'

/** Returns the states of a job's stages, and of some of its tasks, over time. */
export async function readTimeline(context: Context, id: string, query: TimelineQuery = {}): Promise<TimelineView> {
  checkOptions(query, timelineFields, 'timeline')
  const { limit = 200 } = query
  const { id: jobId } = await readJob(context, id)
  const [steps, attempts, count] = await Promise.all([
    stepsOfStages(context.sql, jobId),
    attemptsOfJob(context.sql, jobId, limit),
    countTasksOf(context.sql, jobId),
  ])
  const tasks = groupById(attempts).map(toTask)
  return { stages: groupById(steps).map(toStage), tasks, more: count > tasks.length }
}

/** Groups rows by id, in the order of their first rows. */
function groupById<Row extends { readonly id: string }>(rows: readonly Row[]): Row[][] {
  const groups = new Map<string, Row[]>()
  for (const row of rows) groups.set(row.id, [...(groups.get(row.id) ?? []), row])
  return [...groups.values()]
}

function toStage(steps: readonly StageStep[]) {
  const { id, name } = steps[0]!
  const spans = steps.map(({ state, at }, index) => ({
    state,
    from: at.toISOString(),
    to: iso(steps[index + 1]?.at ?? null),
  }))
  return { id, name, spans }
}

function toTask(rows: readonly AttemptRow[]) {
  const { id, stageId, state, createdAt } = rows[0]!
  const attempts = rows.flatMap(({ epoch, worker, claimedAt, startedAt, endedAt, outcome, cause }) => {
    if (epoch === null) return []
    const times = { claimedAt: claimedAt!.toISOString(), startedAt: iso(startedAt), endedAt: iso(endedAt) }
    return [{ epoch, worker: worker?.replace(/^worker:/, '') ?? null, ...times, outcome, cause }]
  })
  return { id, stageId, state, createdAt: createdAt.toISOString(), attempts }
}

/** Groups tasks that ended badly by similarity, largest group first. */
export async function findTroubles({ sql }: Context, query: TroubleQuery = {}): Promise<TroubleView[]> {
  checkOptions(query, troubleQueryFields, 'troubles')
  const { queue = null, jobId, stageId, state } = query
  const rows = await groupTroubles(sql, {
    jobId: jobId === undefined ? null : checkId(jobId, 'JOB_NOT_FOUND'),
    stageId: stageId === undefined ? null : checkId(stageId, 'STAGE_NOT_FOUND'),
    states: state === undefined ? [] : [state].flat(),
    queue,
  })
  return rows.map(row => ({ ...row, oldestAt: row.oldestAt.toISOString(), newestAt: row.newestAt.toISOString() }))
}
