import type { TaskSettings } from '../../kernel/settings.ts'
import { json, type Literal, literal, type Sql } from '../driver/sql.ts'

/** The properties that determine a task's lane. */
export interface TaskKind {
  readonly queue: string
  readonly type: string
  readonly priority: number
  readonly settings?: Partial<TaskSettings>
}

/** A name for the kind: tasks with the same name are in the same lane. No part of it can contain a NUL. */
export function kindName(task: TaskKind): string {
  return `${task.priority}\0${task.queue}\0${task.type}\0${ownDeadlines(task) ?? ''}`
}

/** The task's own deadlines as JSON; null: those of its type apply. */
export function ownDeadlines({ settings }: TaskKind): string | null {
  if (settings === undefined) return null
  const { softDeadlineSeconds, hardDeadlineSeconds } = settings
  if (softDeadlineSeconds === undefined && hardDeadlineSeconds === undefined) return null
  return json({ softDeadlineSeconds, hardDeadlineSeconds })
}

/**
 * The lane without deadlines for the queue and priority in a row of `kinds`. LIMIT makes it a lookup for each row. With a
 * plain join, a plan from the time when there were no lanes reads all of them for each row.
 */
export function plainLaneOf(kinds: string): Literal {
  return literal(`lateral (
          select id from pawl.lane
           where queue = ${kinds}.queue and priority = ${kinds}.priority and stage_id is null and sla is null limit 1)`)
}

/**
 * Creates missing lanes, always in the same order, so that two transactions that create the same lanes cannot deadlock.
 * `lane_for` is called only for lanes of tasks with deadlines: it takes several times as long as an insert.
 */
export async function createLanes(sql: Sql, kinds: readonly TaskKind[]): Promise<void> {
  await sql`
    with wanted as materialized (
      select k.queue, k.priority, k.own, tt.settings as typed,
             k.own is not null or coalesce(tt.settings ?| '{softDeadlineSeconds,hardDeadlineSeconds}', false) as timed
        from unnest(${kinds.map(kind => kind.queue)}::text[], ${kinds.map(kind => kind.priority)}::int[],
                    ${kinds.map(kind => kind.type)}::text[], ${kinds.map(ownDeadlines)}::jsonb[])
          as k (queue, priority, type, own)
        left join pawl.task_type tt on tt.type = k.type
    ), plain as (
      insert into pawl.lane (queue, priority, rank)
      select distinct w.queue, w.priority, w.priority
        from wanted w
        left join ${plainLaneOf('w')} as l on true
       where not w.timed and l.id is null
       order by 1, 2
          on conflict do nothing
    )
    select pawl.lane_for(queue, priority, own, typed)
      from (select * from wanted where timed order by queue, priority, own, typed) as w`
}
