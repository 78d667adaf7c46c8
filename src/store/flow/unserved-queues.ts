import { viaIndex, withTableScans } from '../driver/plans.ts'
import type { Sql } from '../driver/sql.ts'

export interface UnservedQueue {
  readonly queue: string
  readonly due: number
  readonly oldestSeconds: number
}

/**
 * Queues with tasks that have been due for longer than `seconds` and that no worker serves: in that time no worker with
 * a session for the queue was seen and no task of it was claimed, and none is held. Workers without a session, such as
 * scripts and those of dialects, are known only by their claims, and a claim is known until its lease would have ended.
 */
export function findUnservedQueues(sql: Sql, seconds: number): Promise<UnservedQueue[]> {
  return withTableScans(
    sql,
    tx => tx<UnservedQueue>`
    with claimed as materialized (
      select distinct l.queue
        from pawl.claim c
       cross join unnest(c.ids, c.epochs) as won (id, epoch)
        join pawl.task t on t.id = ${viaIndex('won.id')}
        join pawl.lane l on l.id = t.lane_id
       where (t.epoch = won.epoch and t.lease_until > pawl.clock())
          or exists (select from unnest(t.history) as h
                      where h.epoch = won.epoch and h.state = 'assigned' and h.type is null
                        and h.ts > pawl.clock() - make_interval(secs => ${seconds}::float8))
    )
    select l.queue, sum(cardinality(d.ids)) as due,
           date_part('epoch', pawl.clock() - min(d.run_at)) as oldest_seconds
      from pawl.due d join pawl.lane l on l.id = d.lane_id
     where d.run_at < pawl.clock() - make_interval(secs => ${seconds}::float8)
       and l.open
       and not exists (select from pawl.session s
                        where l.queue = any(s.queues)
                          and s.seen_at > pawl.clock() - make_interval(secs => ${seconds}::float8))
       and l.queue not in (select queue from claimed)
     group by l.queue
     order by l.queue`,
  )
}
