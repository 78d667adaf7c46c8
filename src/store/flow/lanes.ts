/**
 * Lanes, which a claim scans before it looks at tasks. Changes that concern all tasks of a stage or job (pause, hold,
 * priority, age) are made to its lanes, so their cost does not depend on the number of tasks.
 *
 * A claim may hold the lock of a lane while it waits for a task. So a transaction that changes lanes does that before
 * it locks tasks: job, stage, lane, task.
 */
import type { LaneFacts } from '../../kernel/rank.ts'
import { viaIndex } from '../driver/plans.ts'
import type { Sql } from '../driver/sql.ts'

/** Sets the priority of all lanes of a job. The next run of the chore adds the bonus for age again. */
export async function setLanePriority(sql: Sql, jobId: string, priority: number): Promise<void> {
  await sql`
    with mine as materialized (
      select id from pawl.lane where job_id = ${jobId}::uuid order by id for update
    )
    update pawl.lane l set priority = ${priority}::int, rank = ${priority}::int
      from mine where l.id = ${viaIndex('mine.id')}`
}

/** Queues in which tasks of these stages wait for a slot. Workers must be notified when tasks of these stages end. */
export async function findLimitedQueues(sql: Sql, stageIds: readonly string[]): Promise<string[]> {
  const rows = await sql<{ queue: string }>`
    select distinct l.queue
      from pawl.lane l
     where l.stage_id = any(${stageIds}::uuid[]) and l.open and l.parallelism is not null
       and exists (select from pawl.due where lane_id = l.id and run_at <= pawl.clock())`
  return rows.map(({ queue }) => queue)
}

export interface OpenLane extends LaneFacts {
  readonly id: number
  readonly rank: number
}

/** Number of rows at the front of a lane that are searched for deadlines of tasks. */
const placesPerLane = 100

/**
 * Open lanes in the order of their ids, with the facts that determine their rank. A lane of tasks with deadlines of
 * their own gets the nearest deadline at its front, counted from when the task was queued or revived.
 */
export function openLanes(sql: Sql, after: number, limit: number): Promise<OpenLane[]> {
  return sql<OpenLane>`
    select l.id, l.rank, l.priority, date_part('epoch', pawl.clock() - front.run_at) as waited_seconds,
           date_part('epoch', coalesce(l.soft_at, nearest.soft_at) - pawl.clock()) as soft_in_seconds,
           date_part('epoch', coalesce(l.hard_at, nearest.hard_at) - pawl.clock()) as hard_in_seconds
      from pawl.lane l
      left join lateral (
             select run_at from pawl.due
              where lane_id = l.id and run_at <= pawl.clock()
              order by run_at, id limit 1) as front on true
      left join lateral (
             select min(queued.at + make_interval(secs =>
                      pawl.setting(t.settings, tt.settings, 'softDeadlineSeconds'))) as soft_at,
                    min(queued.at + make_interval(secs =>
                      pawl.setting(t.settings, tt.settings, 'hardDeadlineSeconds'))) as hard_at
               from (select id from pawl.due
                      where lane_id = l.id and run_at <= pawl.clock()
                      order by run_at, id limit ${placesPerLane}::int) as place
               join pawl.task t on t.id = ${viaIndex('place.id')}
               left join pawl.task_type tt on tt.type = t.type
              cross join lateral (
                      select max(ts) as at from unnest(t.history) where state = 'queued' and type is null) as queued
              where l.sla is not null) as nearest on true
     where l.open and l.id > ${after}::int
     order by l.id
     limit ${limit}::int`
}

/**
 * Writes the ranks that differ, and returns how many did. A lane that is locked is skipped, and so is one whose
 * priority has changed since it was read: the next run follows soon.
 */
export async function setRanks(
  sql: Sql,
  lanes: readonly { id: number; priority: number; rank: number }[],
): Promise<number> {
  const changed = await sql`
    with mine as materialized (
      select l.id, w.rank
        from unnest(${lanes.map(({ id }) => id)}::int[], ${lanes.map(({ priority }) => priority)}::int[],
                    ${lanes.map(({ rank }) => rank)}::int[]) as w (id, priority, rank)
        join pawl.lane l on l.id = ${viaIndex('w.id')} and l.priority = w.priority and l.rank <> w.rank
       order by l.id
         for update of l skip locked
    )
    update pawl.lane l set rank = mine.rank from mine where l.id = ${viaIndex('mine.id')}
    returning l.id`
  return changed.length
}
