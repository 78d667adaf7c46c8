/** When a job's stages and tasks were in which state, read off their histories. */
import type { StageState } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'
import type { Sql } from '../driver/sql.ts'

export interface StageStep {
  readonly id: string
  readonly name: string
  readonly state: StageState
  readonly at: Date
}

/** In their order, each stage's steps one after the other; those that moved nothing are left out. */
export function stepsOfStages(sql: Sql, jobId: string): Promise<StageStep[]> {
  return sql<StageStep>`
    select s.id, s.name, h.state, h.ts as at
      from pawl.stage s cross join unnest(s.history) with ordinality as h (ts, epoch, state, type, actor, cause, payload, n)
     where s.job_id = ${jobId}::uuid
       and (h.n = 1 or h.state is distinct from (s.history[h.n - 1]).state)
     order by s.ordinal, h.n`
}

export interface AttemptRow {
  readonly id: string
  readonly stageId: string
  readonly state: TaskState
  readonly createdAt: Date
  /** Null, like the rest: it was never claimed. */
  readonly epoch: number | null
  readonly worker: string | null
  readonly claimedAt: Date | null
  readonly startedAt: Date | null
  readonly endedAt: Date | null
  readonly outcome: TaskState | null
  readonly cause: string | null
}

/** The oldest tasks of each stage, in turn, so that none is left out for the size of another. */
export function attemptsOfJob(sql: Sql, jobId: string, limit: number): Promise<AttemptRow[]> {
  return sql<AttemptRow>`
    with stages as (
      select id, ordinal, greatest(1, floor(${limit}::float8 / count(*) over ())) as share
        from pawl.stage where job_id = ${jobId}::uuid
    ), chosen as (
      select t.id, t.stage_id, t.state, t.history, s.ordinal
        from stages s cross join lateral (
          select id, stage_id, state, history from pawl.task where stage_id = s.id order by id limit s.share::int) as t
       order by s.ordinal, t.id
       limit ${limit}::int
    )
    select t.id, t.stage_id, t.state, (t.history[1]).ts as created_at, a.*
      from chosen t left join lateral (
        select h.epoch, min(h.actor) filter (where h.state = 'assigned' and h.type is null) as worker,
               min(h.ts) filter (where h.state = 'assigned') as claimed_at,
               min(h.ts) filter (where h.state = 'running') as started_at,
               min(h.ts) filter (where h.state not in ('assigned', 'running')) as ended_at,
               (array_agg(h.state order by h.n) filter (where h.state not in ('assigned', 'running')))[1] as outcome,
               (array_agg(h.cause order by h.n) filter (where h.state not in ('assigned', 'running')))[1] as cause
          from unnest(t.history) with ordinality as h (ts, epoch, state, type, actor, cause, payload, n)
         where h.epoch > 0
         group by h.epoch
        having bool_or(h.state = 'assigned')) as a on true
     order by t.ordinal, t.id, a.epoch`
}

export async function countTasksOf(sql: Sql, jobId: string): Promise<number> {
  const [row] = await sql<{ count: number }>`
    select coalesce(sum(total), 0)::int as count from (
      select total from pawl.stage where job_id = ${jobId}::uuid
       union all select total from pawl.tally where job_id = ${jobId}::uuid) as counted`
  return row!.count
}
