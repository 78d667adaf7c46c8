/** When the next tasks of queues are due. */
import type { Sql } from '../driver/sql.ts'

/**
 * Seconds until the next task of these queues is due; null: none is waiting. 0: one is due in a lane that has a free
 * slot, and a claim missed it only because another claim had the lane locked. Tasks without a free slot do not count.
 */
export async function nextDueSeconds(sql: Sql, queues: readonly string[]): Promise<number | null> {
  const [row] = await sql<{ seconds: number | null }>`
    select extract(epoch from min(next.run_at) - pawl.clock())::float8 as seconds
      from pawl.lane l
     cross join lateral (
             select case when l.parallelism is not null
                          and l.parallelism > (select count(*) from pawl.held_slots(l.slots, l.slot_epochs))
                         then '-infinity' else pawl.clock() end as after) as search
     cross join lateral (
             select run_at from pawl.due
              where lane_id = l.id and run_at > search.after
              order by run_at limit 1) as next
     where l.queue = any(${queues}::text[]) and l.open`
  const { seconds } = row!
  if (seconds === null) return null
  return seconds > 0 ? Math.max(0.001, seconds) : 0
}

/**
 * Seconds until each of these queues has a task to claim; 0 or less: it has one now. One query for all waiting callers.
 * Tasks without a free slot do not count.
 */
export function dueByQueue(sql: Sql, queues: readonly string[]): Promise<{ queue: string; seconds: number }[]> {
  return sql`
    select l.queue, extract(epoch from min(next.run_at) - pawl.clock())::float8 as seconds
      from pawl.lane l
     cross join lateral (select run_at from pawl.due where lane_id = l.id order by run_at limit 1) as next
     where l.queue = any(${queues}::text[]) and l.open
       and (l.parallelism is null
            or l.parallelism > (select count(*) from pawl.held_slots(l.slots, l.slot_epochs)))
     group by l.queue`
}
