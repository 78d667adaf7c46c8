/** The events of one task, stage or job, which are in its row; those of a task also with its heartbeats. */
import { maxPageBytes, type PageRow } from '../driver/paging.ts'
import { literal, type Sql } from '../driver/sql.ts'
import type { EventRow } from './feed.ts'

const columns = literal('entity_id, seq, epoch, ts, type, from_state, to_state, actor, cause, payload')

/** A page ends at its limit, and where the payloads exceed its bytes. The first event always fits. */
const measured = literal(`
      select e.*, row_number() over (order by e.seq) as place,
             sum(octet_length(e.payload::text)) over (order by e.seq) as bytes_so_far`)
const fits = literal(`(place = 1 or coalesce(bytes_so_far, 0) <= ${maxPageBytes})`)

/** Events of one task, oldest first. */
export function eventsOfTask(sql: Sql, id: string, afterSeq: number, limit: number): Promise<PageRow<EventRow>[]> {
  return sql`
    select ${columns}, job_id, correlation_id, traceparent, seq < last_seq as more from (
    ${measured}, t.seq as last_seq, t.job_id, t.correlation_id, t.traceparent
      from pawl.task t
     cross join generate_series(${afterSeq}::int + 1, least(t.seq, ${afterSeq}::int + ${limit}::int)) as s (n)
     cross join lateral pawl.event_of(t.id, t.history, s.n) as e
     where t.id = ${id}::uuid) as page
     where ${fits}
     order by seq`
}

/** Events of one job or stage, oldest first. */
export function eventsOfEntity(
  sql: Sql,
  entity: 'job' | 'stage',
  id: string,
  afterSeq: number,
  limit: number,
): Promise<PageRow<EventRow>[]> {
  return sql`
    select ${columns}, job_id, correlation_id, traceparent, seq < last_seq as more from (
    ${measured}, x.seq as last_seq, j.id as job_id, j.correlation_id, j.traceparent
      from pawl.${literal(entity)} x
      join pawl.job j on j.id = x.${literal(entity === 'job' ? 'id' : 'job_id')} and j.visible
     cross join generate_series(${afterSeq}::int + 1, least(x.seq, ${afterSeq}::int + ${limit}::int)) as s (n)
     cross join lateral pawl.event_of(x.id, x.history, s.n) as e
     where x.id = ${id}::uuid) as page
     where ${fits}
     order by seq`
}

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
): Promise<PageRow<EventRow & { us: number }>[]> {
  return sql<PageRow<EventRow & { us: number }>>`
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
    ),
    -- One more than the page has, with the bytes up to each.
    measured as (
      select event.*, row_number() over in_order as place, lead(event.seq) over in_order is not null as more,
             sum(octet_length(event.payload::text)) over in_order as bytes_so_far
        from (select * from event
               where (seq, us) > (${after.seq}::int, ${after.us}::bigint)
               order by seq, us limit ${limit}::int + 1) as event
      window in_order as (order by event.seq, event.us)
    )
    select measured.entity_id, measured.seq, epoch, ts, type, from_state, to_state, actor, cause, payload, us, more,
           task.job_id, task.correlation_id, task.traceparent
      from measured cross join task
     where place <= ${limit}::int and (place = 1 or coalesce(bytes_so_far, 0) <= ${maxPageBytes}::int)
     order by measured.seq, us`
}
