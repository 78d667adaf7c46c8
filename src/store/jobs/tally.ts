/**
 * The counts of stages. A transaction that moves a task only appends a row and locks nothing; the rows are added up
 * under the job's lock.
 */
import type { TaskPatch, TaskStep } from '../../kernel/decide.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { list, type Sql } from '../driver/sql.ts'

/** The changes of one task's transition to the counts of its stage. */
export interface Delta {
  readonly jobId: string
  readonly stageId: string
  readonly good: number
  readonly bad: number
  readonly partial: number
  readonly skipped: number
  readonly begun: number
  readonly blocked: number
}

interface Moved {
  readonly task: {
    readonly state: TaskState
    readonly partial: boolean
    readonly jobId: string | null
    readonly stageId: string | null
  }
  readonly steps: readonly TaskStep[]
  readonly patch: TaskPatch
}

/** Returns nothing for a stand-alone task. */
export function deltasOf({ task, steps, patch }: Moved): Delta[] {
  const { jobId, stageId } = task
  if (jobId === null || stageId === null) return []
  const before = countsOf(task.state, task.partial)
  const after = countsOf(steps.at(-1)!.to, patch.partial ?? task.partial)
  const delta = {
    jobId,
    stageId,
    good: after.good - before.good,
    bad: after.bad - before.bad,
    partial: after.partial - before.partial,
    skipped: after.skipped - before.skipped,
    begun: steps.some(({ to, type }) => to === 'running' && type === undefined) ? 1 : 0,
    blocked: after.blocked - before.blocked,
  }
  return [delta]
}

function countsOf(state: TaskState, isPartial: boolean) {
  const { outcome } = taskLifecycle.states[state]
  return {
    good: outcome === 'good' ? 1 : 0,
    bad: outcome === 'bad' ? 1 : 0,
    partial: outcome === 'good' && isPartial ? 1 : 0,
    skipped: state === 'skipped' ? 1 : 0,
    blocked: state === 'blocked' ? 1 : 0,
  }
}

export async function appendTally(sql: Sql, deltas: readonly Delta[]): Promise<void> {
  if (deltas.length === 0) return
  await sql`
    insert into pawl.tally (job_id, stage_id, good, bad, partial, skipped, begun, blocked)
    select job_id, stage_id, sum(good), sum(bad), sum(partial), sum(skipped), sum(begun), sum(blocked)
      from unnest(${list(deltas.map(({ jobId }) => jobId))}::uuid[],
                  ${list(deltas.map(({ stageId }) => stageId))}::uuid[], ${list(deltas.map(({ good }) => good))}::int[],
                  ${list(deltas.map(({ bad }) => bad))}::int[], ${list(deltas.map(({ partial }) => partial))}::int[],
                  ${list(deltas.map(({ skipped }) => skipped))}::int[], ${list(deltas.map(({ begun }) => begun))}::int[],
                  ${list(deltas.map(({ blocked }) => blocked))}::int[])
        as d (job_id, stage_id, good, bad, partial, skipped, begun, blocked)
     group by job_id, stage_id`
}

export interface StageCount {
  readonly id: string
  readonly jobId: string
  readonly state: string
  readonly failFast: boolean
  /** It limits how many tasks run at once. */
  readonly isLimited: boolean
  readonly tolerate: { count?: number; percent?: number }
  readonly total: number
  readonly good: number
  readonly bad: number
  readonly badBefore: number
  readonly begun: boolean
  /** A task has started, and the job row does not say so yet. */
  readonly beginsJob: boolean
  /** Number of appended rows that are not added up yet. */
  readonly appended: number
}

/** The current counts of stages, including appended rows, without locks. */
export function readStageCounts(sql: Sql, stageIds: readonly string[]): Promise<StageCount[]> {
  return sql<StageCount>`
    select s.id, s.job_id, s.state, coalesce((s.plan->>'failFast')::boolean, true) as fail_fast,
           coalesce(s.plan->'tolerate', '{}') as tolerate, s.bad_before, s.plan->>'parallelism' is not null as is_limited,
           (s.total + t.total)::int as total, (s.good + t.good)::int as good, (s.bad + t.bad)::int as bad,
           s.begun or t.begun > 0 as begun, t.begun > 0 and not j.begun as begins_job, t.appended
      from pawl.stage s
      join pawl.job j on j.id = s.job_id
     cross join lateral (
             select coalesce(sum(total), 0) as total, coalesce(sum(good), 0) as good, coalesce(sum(bad), 0) as bad,
                    coalesce(sum(begun), 0) as begun, count(*)::int as appended
               from pawl.tally where job_id = s.job_id and stage_id = s.id) as t
     where s.id = any(${stageIds}::uuid[])`
}
