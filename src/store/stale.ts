import { widely } from './plans.ts'
import type { Sql } from './sql.ts'

export interface StaleQueue {
  readonly queue: string
  readonly due: number
  readonly oldestSeconds: number
}

/** Queues with work that has been due for longer than `seconds`, and no worker that was heard of as lately. */
export function staleQueues(sql: Sql, seconds: number): Promise<StaleQueue[]> {
  return widely(
    sql,
    tx => tx<StaleQueue>`
    select l.queue, sum(cardinality(d.ids)) as due,
           date_part('epoch', pawl.clock() - min(d.run_at)) as oldest_seconds
      from pawl.due d join pawl.lane l on l.id = d.lane_id
     where d.run_at < pawl.clock() - make_interval(secs => ${seconds}::float8)
       and l.open
       and not exists (select from pawl.session s
                        where l.queue = any(s.queues)
                          and s.seen_at > pawl.clock() - make_interval(secs => ${seconds}::float8))
     group by l.queue
     order by l.queue`,
  )
}
