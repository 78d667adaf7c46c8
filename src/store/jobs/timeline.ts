/** The history of a job: the states of its stages, the attempts of its tasks, and what went wrong. */
import type { ReasonCode } from '../../kernel/decide.ts'
import type { StageState } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'
import { withTableScans } from '../driver/plans.ts'
import type { Sql } from '../driver/sql.ts'

export interface StageStep {
  readonly id: string
  readonly name: string
  readonly state: StageState
  readonly at: Date
}

/** The state changes of each stage, in the order of the stages. Events that changed no state are left out. */
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
  /** Null, like the following fields, if the task was never claimed. */
  readonly epoch: number | null
  readonly worker: string | null
  readonly claimedAt: Date | null
  readonly startedAt: Date | null
  readonly endedAt: Date | null
  readonly outcome: TaskState | null
  readonly cause: string | null
}

/**
 * The attempts of the oldest tasks of each stage. Each stage gets an equal share of the limit, so that a large stage
 * does not displace the others.
 */
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

export interface TroubleRow {
  readonly state: TaskState
  readonly reasonCode: ReasonCode | null
  readonly type: string
  readonly queue: string
  readonly message: string
  readonly count: number
  readonly oldestAt: Date
  readonly newestAt: Date
  readonly taskId: string
}

export interface TroubleFilter {
  readonly jobId: string | null
  readonly stageId: string | null
  readonly states: readonly string[]
  readonly queue: string | null
}

/**
 * Groups tasks that ended badly, the largest group first. Messages that differ only in numbers and ids are the same
 * group.
 */
export function groupTroubles(sql: Sql, { jobId, stageId, states, queue }: TroubleFilter): Promise<TroubleRow[]> {
  return withTableScans(
    sql,
    tx => tx<TroubleRow>`
    select x.state, x.reason_code, x.type, l.queue, x.gist as message, sum(x.count)::int as count,
           min(x.oldest_at) as oldest_at, max(x.newest_at) as newest_at, max(x.task_id)::uuid as task_id
      from (select state, reason_code, type, lane_id, gist, count(*) as count, min(ended_at) as oldest_at,
                   max(ended_at) as newest_at, max(task_id::text) as task_id
              from pawl.trouble
             where (${stageId}::uuid is null or stage_id = ${stageId}::uuid)
               and (${jobId}::uuid is null or job_id = ${jobId}::uuid)
               and (cardinality(${states}::text[]) = 0 or state = any(${states}::text[]))
             group by state, reason_code, type, lane_id, gist) as x
      join pawl.lane l on l.id = x.lane_id
     where ${queue}::text is null or l.queue = ${queue}
     group by x.state, x.reason_code, x.type, l.queue, x.gist
     order by count desc, newest_at desc limit 200`,
  )
}
