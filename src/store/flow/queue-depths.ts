/** The number of waiting and held tasks of each queue, and the queues that no worker serves. */
import type { NamePaging, PageRow } from '../driver/paging.ts'
import { heldTask, viaIndex, withTableScans } from '../driver/plans.ts'
import { literal, type Sql } from '../driver/sql.ts'

interface Depth {
  /** Tasks that can be claimed now. */
  readonly due: number
  /** Tasks that wait for their scheduled time. */
  readonly scheduled: number
  readonly held: number
  /** Due tasks that cannot be claimed now, because their job is paused or stopping, or their stage is held. */
  readonly paused: number
  /** How long the oldest due task has been waiting. */
  readonly oldestSeconds: number | null
}

export interface QueueRow extends Depth {
  readonly queue: string
}

/** Waiting tasks per lane, from `pawl.due` grouped by `lane_id`. */
const waitingColumns = literal(`
  lane_id, coalesce(sum(cardinality(ids)) filter (where run_at <= pawl.clock()), 0) as due,
  coalesce(sum(cardinality(ids)) filter (where run_at > pawl.clock()), 0) as scheduled,
  min(run_at) filter (where run_at <= pawl.clock()) as oldest`)

/** Held tasks per lane, found through the claims, so the cost depends on the number of all held tasks. */
const heldByLane = literal(`
  select t.lane_id, count(*) as held
    from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
   cross join lateral ${heldTask.literal} as t
   group by t.lane_id`)

/** The depth of a queue, from its lanes `l`, their waiting tasks `w` and their held tasks `h`. */
const depthColumns = literal(`
  coalesce(sum(w.due) filter (where l.open), 0)::bigint as due,
  coalesce(sum(w.scheduled), 0)::bigint as scheduled,
  coalesce(sum(h.held), 0)::bigint as held,
  coalesce(sum(w.due) filter (where not l.open), 0)::bigint as paused,
  extract(epoch from pawl.clock() - min(w.oldest) filter (where l.open))::float8 as oldest_seconds`)

/** A page of queues, by name. Only the lanes of these queues are read. */
export function listQueues(sql: Sql, { after, limit }: NamePaging): Promise<PageRow<QueueRow>[]> {
  return withTableScans(
    sql,
    tx => tx<PageRow<QueueRow>>`
    with found as materialized (
      select queue from pawl.lane where queue > ${after} group by queue order by queue limit ${limit}::int + 1
    ), page as materialized (
      select l.id, l.queue, l.open
        from (select queue from found order by queue limit ${limit}::int) as named
        join pawl.lane l on l.queue = named.queue
    ), waiting as (
      select ${waitingColumns} from pawl.due where lane_id = any(array(select id from page)) group by lane_id
    ), held as (${heldByLane})
    select l.queue, ${depthColumns}, l.queue < (select max(queue) from found) as more
      from page l left join waiting w on w.lane_id = l.id left join held h on h.lane_id = l.id
     group by l.queue order by l.queue`,
  )
}

export interface QueuesToName {
  /** These queues stay named as long as they are not empty. */
  readonly named: readonly string[]
  /** How many queues are named, the deepest first. */
  readonly most: number
  /** The name for all other queues together, which no queue may have itself. Null: no such restriction. */
  readonly others: string | null
}

export interface DeepestQueues {
  /** By name. */
  readonly queues: readonly QueueRow[]
  /** All other queues together. */
  readonly rest: Depth & { readonly count: number }
}

/**
 * The deepest queues by name, and the sum of the rest. The database selects them, because there may be too many to
 * send. A named queue is dropped only if it no longer exists, or if it is empty and a queue that is not empty needs its
 * place.
 */
export async function deepestQueues(sql: Sql, { named, most, others }: QueuesToName): Promise<DeepestQueues> {
  const rows = await withTableScans(
    sql,
    tx => tx<Depth & { queue: string | null; count: number }>`
    with waiting as (
      select ${waitingColumns} from pawl.due group by lane_id
    ), held as (${heldByLane}), depth as (
      select l.queue, ${depthColumns}
        from pawl.lane l left join waiting w on w.lane_id = l.id left join held h on h.lane_id = l.id
       group by l.queue
    ), ranked as (
      select depth.*, row_number() over (order by tasks > 0 desc, queue = any(${named}::text[]) desc, tasks desc, queue) as place
        from depth cross join lateral (select due + scheduled + held + paused as tasks) as weight
       where ${others}::text is null or queue <> ${others}
       union all
      select depth.*, null from depth where queue = ${others}
    )
    select case when place <= ${most}::int then queue end as queue, sum(due)::bigint as due,
           sum(scheduled)::bigint as scheduled, sum(held)::bigint as held, sum(paused)::bigint as paused,
           max(oldest_seconds) as oldest_seconds, count(*)::int as count
      from ranked group by 1 order by 1`,
  )
  const none = { due: 0, scheduled: 0, held: 0, paused: 0, oldestSeconds: null, count: 0 }
  const { queue: _, ...rest } = rows.find(({ queue }) => queue === null) ?? { queue: null, ...none }
  return {
    queues: rows.flatMap(({ queue, count: _, ...depth }) => (queue === null ? [] : [{ queue, ...depth }])),
    rest,
  }
}

export interface UnservedQueue {
  readonly queue: string
  readonly due: number
  readonly oldestSeconds: number
}

export interface UnservedQueues {
  /** The queues that have waited longest, by name. */
  readonly queues: readonly UnservedQueue[]
  /** The number of further ones. */
  readonly others: number
}

/** Maximum number of unserved queues that a log or a report names. */
export const maxUnservedNamed = 20

/**
 * Queues with tasks that have been due for longer than `seconds` and that no worker serves: in that time no worker with
 * a session for the queue was seen and no task of it was claimed, and none is held. Workers without a session, such as
 * scripts and those of dialects, are known only by their claims, and a claim is known until its lease would have ended.
 */
export async function findUnservedQueues(sql: Sql, seconds: number): Promise<UnservedQueues> {
  const rows = await withTableScans(
    sql,
    tx => tx<UnservedQueue & { all: number }>`
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
           date_part('epoch', pawl.clock() - min(d.run_at)) as oldest_seconds, (count(*) over ())::int as all
      from pawl.due d join pawl.lane l on l.id = d.lane_id
     where d.run_at < pawl.clock() - make_interval(secs => ${seconds}::float8)
       and l.open
       and not exists (select from pawl.session s
                        where l.queue = any(s.queues)
                          and s.seen_at > pawl.clock() - make_interval(secs => ${seconds}::float8))
       and l.queue not in (select queue from claimed)
     group by l.queue
     order by min(d.run_at), l.queue
     limit ${maxUnservedNamed}::int`,
  )
  const queues = rows.map(({ all: _, ...queue }) => queue).sort((one, other) => (one.queue < other.queue ? -1 : 1))
  return { queues, others: (rows[0]?.all ?? 0) - queues.length }
}
