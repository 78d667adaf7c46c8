/** Heartbeats, which have no seq, merged into the events of their task. */

import type { Sql } from '../driver/sql.ts'
import type { EventRow } from './feed.ts'

/** The position after an event of a task and a heartbeat that followed it; 0: none. */
export interface PulsePosition {
  readonly seq: number
  readonly us: number
}

/**
 * Events and heartbeats of one task, oldest first. A heartbeat follows the last event of its lease that is not younger,
 * and reports the state of that event.
 */
export async function eventsAndPulses(
  sql: Sql,
  id: string,
  after: PulsePosition,
  limit: number,
): Promise<(EventRow & { us: number })[]> {
  return sql<EventRow & { us: number }>`
    with
    -- The task, read once.
    task as materialized (
      select id, seq, history, job_id, correlation_id, traceparent from pawl.task where id = ${id}::uuid
    ),
    -- Its events, and its heartbeats with the last event of their lease before them.
    event as (
      select e.*, 0::bigint as us
        from task
       cross join generate_series(greatest(1, ${after.seq}::int), task.seq) as n
       cross join lateral pawl.event_of(task.id, task.history, n) as e
       union all
      select e.entity_id, e.seq, p.epoch, p.ts, p.type, e.to_state, e.to_state, lease.actor, 'heartbeat',
             case when p.payload is not null then jsonb_build_object('progress', p.payload) end,
             (extract(epoch from p.ts) * 1000000)::bigint
        from task
        join pawl.pulse p on p.entity_id = task.id
       cross join lateral (
               select n, (history[n]).actor from generate_series(1, task.seq) as n
                where (history[n]).epoch = p.epoch and (history[n]).state = 'assigned' and (history[n]).type is null
             ) as lease
       cross join lateral (
               select coalesce(max(n), lease.n) as n from generate_series(lease.n, task.seq) as n
                where (history[n]).epoch = p.epoch and (history[n]).ts <= p.ts
             ) as last
       cross join lateral pawl.event_of(task.id, task.history, last.n) as e
    )
    select event.*, task.job_id, task.correlation_id, task.traceparent
      from event cross join task
     where (event.seq, event.us) > (${after.seq}::int, ${after.us}::bigint)
     order by event.seq, event.us
     limit ${limit}::int`
}
