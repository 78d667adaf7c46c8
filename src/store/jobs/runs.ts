/** Stages whose workers are started by a runner, and what was started for them. */
import type { FilesPlan } from '../../kernel/datum.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, type Sql } from '../driver/sql.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

export interface CommandStage {
  readonly stageId: string
  readonly stageName: string
  readonly jobId: string
  readonly jobName: string
  readonly round: number
  readonly queue: string
  readonly parallelism: number | null
  /** Number of tasks that have not ended, as far as they are known. */
  readonly left: number
  readonly files: FilesPlan
  readonly madeAt: Date | null
  readonly missingSince: Date | null
  /** Why its workers could not be started so far. */
  readonly trouble: string | null
}

/** A round of a stage. */
export interface Round {
  readonly stageId: string
  readonly round: number
}

/** The workers that a runner started for a round. */
export interface Run extends Round {
  readonly namespace: string
}

/** Open stages that have a command. */
export function openCommandStages(sql: Sql): Promise<CommandStage[]> {
  return sql<CommandStage>`
    select s.id as stage_id, s.name as stage_name, j.id as job_id, j.name as job_name, s.round, l.queue,
           (s.plan->>'parallelism')::int as parallelism, greatest(s.total - s.good - s.bad + t.left, 0)::int as left,
           s.plan->'files' as files, r.made_at, r.missing_since, s.error->>'message' as trouble
      from pawl.stage s
      join pawl.job j on j.id = s.job_id
      join pawl.lane l on l.id = s.lane_id
      left join pawl.run r on r.stage_id = s.id and r.round = s.round
     -- Appended counts that have not been added up yet.
     cross join lateral (select coalesce(sum(total - good - bad), 0) as left from pawl.tally
                          where job_id = s.job_id and stage_id = s.id) as t
     where s.ended_at is null and s.plan->'files' is not null and s.plan->'files'->'run' <> 'null'
       and s.state in ('pending', 'running') and j.state in ('pending', 'running')
     order by s.id`
}

/** Records that workers were started for these rounds. */
export async function recordRuns(sql: Sql, rounds: readonly Run[]): Promise<void> {
  if (rounds.length === 0) return
  await sql`
    insert into pawl.run (stage_id, round, namespace)
    select * from unnest(${list(rounds.map(({ stageId }) => stageId))}::uuid[], ${list(rounds.map(({ round }) => round))}::int[],
                         ${rounds.map(({ namespace }) => namespace)}::text[])
    on conflict do nothing`
}

/** Rounds that have ended, but whose workers are not known to have stopped. */
export function findRunsToStop(sql: Sql): Promise<Run[]> {
  return sql`
    select r.stage_id, r.round, r.namespace
      from pawl.run r left join pawl.stage s on s.id = r.stage_id
     where r.stopped_at is null and (s.id is null or s.ended_at is not null or s.round > r.round)`
}

export async function recordStoppedRuns(sql: Sql, rounds: readonly Round[]): Promise<void> {
  if (rounds.length === 0) return
  await sql`
    update pawl.run r set stopped_at = pawl.clock()
      from unnest(${list(rounds.map(({ stageId }) => stageId))}::uuid[], ${list(rounds.map(({ round }) => round))}::int[])
        as d (stage_id, round)
     where r.stage_id = d.stage_id and r.round = d.round`
}

/** Records which runs were found missing, and which of them reappeared. */
export async function recordMissingRuns(sql: Sql, missing: readonly string[], back: readonly string[]): Promise<void> {
  if (missing.length + back.length === 0) return
  await sql`
    update pawl.run r
       set missing_since = case when r.stage_id = any(${list(back)}::uuid[]) then null
                                else coalesce(r.missing_since, pawl.clock()) end
      from pawl.stage s
     where s.id = r.stage_id and s.round = r.round and r.stage_id = any(${list([...missing, ...back])}::uuid[])`
}

/** The runs of these stages, in all rounds. */
export function runsOf(sql: Sql, stageIds: readonly string[]): Promise<Run[]> {
  return sql`select stage_id, round, namespace from pawl.run where stage_id = any(${list(stageIds)}::uuid[])`
}

/**
 * Returns the rounds that have ended. A round that is held or paused has not ended, and rounds of unknown stages are
 * left out.
 */
export function findEndedRounds(sql: Sql, rounds: readonly Round[]): Promise<Round[]> {
  return sql`
    select d.stage_id, d.round
      from unnest(${list(rounds.map(({ stageId }) => stageId))}::uuid[], ${list(rounds.map(({ round }) => round))}::int[])
        as d (stage_id, round)
      join pawl.stage s on s.id = d.stage_id
     where s.ended_at is not null or s.round > d.round`
}

/**
 * The held tasks of these stages and their workers, found through the claims, so the cost depends on the number of all
 * held tasks. The materialized CTE is a fence: without it, every task of the stages might be read to find the few that
 * are held.
 */
export function findLeaseHolders(
  sql: Sql,
  stageIds: readonly string[],
): Promise<{ worker: string; id: string; epoch: number }[]> {
  return sql`
    with holding as materialized (
      select t.owner, t.stage_id, t.id, t.epoch
        from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
        join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
    )
    select owner as worker, id, epoch from holding where stage_id = any(${list(stageIds)}::uuid[])`
}
