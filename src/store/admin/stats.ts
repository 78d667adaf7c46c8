/**
 * How often and how fast tasks change state. The feed is counted apart from the hot path, each event once, by the
 * minute in which it happened. The rows outlive the tasks.
 */
import { bucketCount, statSeconds } from '../../kernel/metrics.ts'
import { viaIndex, withTableScans } from '../driver/plans.ts'
import { type Literal, literal, type Sql } from '../driver/sql.ts'
import { deepestQueues } from '../flow/queue-depths.ts'

/** `bucketOf` of kernel/metrics.ts, in SQL. */
export function bucketSql(seconds: string): Literal {
  const ms = `greatest(${seconds} * 1000, 1)`
  return literal(`least(${bucketCount - 1}, ceil(2 * ln(${ms}) / ln(2::float8)))::smallint`)
}

/**
 * When the attempt of event `u.seq` of task `t` was queued, claimed and started, as far as it has come. `now` is the
 * event. An attempt has few steps, so the last four are enough.
 */
const attemptTimes = literal(`
               select max((t.history[k]).ts) filter (where (t.history[k]).state = 'running' and (t.history[k]).type is null)
                        as began,
                      max((t.history[k]).ts) filter (where (t.history[k]).state = 'assigned' and (t.history[k]).type is null)
                        as claimed,
                      max((t.history[k - 1]).ts) filter (where (t.history[k]).state = 'assigned' and (t.history[k]).type is null)
                        as queued
                 from generate_series(greatest(2, u.seq - 3), u.seq) as k
                where (t.history[k]).epoch = now.epoch`)

/**
 * Counts the next events of the feed: `limit`, plus the rest of the last statement. The row with the position is locked
 * and moves on together with the counts, so only one process counts at a time, and the others find nothing to do.
 *
 * `queue` lasts from the time when a task became claimable until it started, `run` from there until its attempt ended.
 * A task that was rescheduled is measured from the event that put it into the queue.
 *
 * Positions of another system mean nothing here, so in a new generation of the feed counting restarts at its end.
 */
export async function countMoves(sql: Sql, limit: number): Promise<{ events: number; isAll: boolean }> {
  const [row] = await sql<{ events: number; found: number }>`
    with
    -- The position up to which events were counted, locked. Empty while another process counts.
    counter as materialized (
      select c.tx, c.n, c.generation = m.generation as is_current, m.generation
        from pawl.counted c cross join pawl.meta m
         for update of c skip locked
    ),
    -- The next changes of the feed, up to the first that reaches the limit.
    page as materialized (
      select tx, n, at, entity, ids, seqs
        from (select c.*, sum(cardinality(c.ids)) over (order by c.tx, c.n) - cardinality(c.ids) as before
                from counter
               cross join lateral (
                       select * from pawl.change
                        where (tx, n) > (counter.tx, counter.n) and counter.is_current
                          and tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint
                        order by tx, n limit 500) as c) as next
       where before < ${limit}::int
    ),
    -- Their events that changed the state of a task, each with the times at which its attempt was queued and began. Read
    -- once: each column searches the history of its task.
    move as materialized (
      select t.type, now.ts, now.state, now.cause, last.state as from_state, attempt.began,
             case when t.run_at <= attempt.claimed then greatest(t.run_at, attempt.queued) else attempt.queued end as queued
        from page
       cross join unnest(page.ids, page.seqs) as u (id, seq)
        join pawl.task t on t.id = ${viaIndex('u.id')}
       cross join lateral (select (t.history[u.seq]).*) as now
        left join lateral (select (t.history[u.seq - 1]).*) as last on true
       cross join lateral (${attemptTimes}) as attempt
       where page.entity = 'task' and last.state is distinct from now.state
    ),
    -- The figures that each move adds to: how often it happened and, at its end, how long a phase took.
    fact as (
      select ts, type, case state when 'assigned' then 'claimed' when 'running' then 'started'
                                  when 'retrying' then 'retried' else state end as what, null::float8 as seconds
        from move
       union all
      select ts, type, 'lost', null from move where cause = 'lease_lost'
       union all
      select ts, type, 'failures', null from move
       where cause in ('reported_failed', 'reported_dead_lettered', 'timeout')
       union all
      select ts, type, 'queue', extract(epoch from ts - queued)::float8 from move
       where state = 'running' and queued is not null
       union all
      select ts, type, 'run', extract(epoch from ts - began)::float8 from move
       where from_state = 'running' and began is not null
    ),
    -- Their sums by minute.
    minute_sum as materialized (
      select date_bin('1 minute', ts, 'epoch') as minute, type, what, ${bucketSql('seconds')} as bucket,
             count(*) as n, coalesce(sum(seconds), 0) as seconds
        from fact group by 1, 2, 3, 4
    ),
    -- They are added to those of their minute and to the sums of all minutes.
    stat_update as (
      insert into pawl.stat as s (at, type, what, bucket, n, seconds)
      select v.at, type, what, bucket, sum(n), sum(seconds)
        from minute_sum cross join lateral (values (minute), ('-infinity'::timestamptz)) as v (at)
       group by v.at, type, what, bucket
          on conflict (at, type, what, bucket) do update
         set n = s.n + excluded.n, seconds = s.seconds + excluded.seconds
    ),
    -- The position moves behind the page.
    position_update as (
      update pawl.counted c
         set tx = last.tx, n = last.n, at = last.at
        from (select tx, n, at from page order by tx desc, n desc limit 1) as last
    ),
    -- In a new generation of the feed, counting restarts at its end.
    restart as (
      update pawl.counted c
         set generation = counter.generation, tx = pg_snapshot_xmin(pg_current_snapshot())::text::bigint - 1, n = 0
        from counter where not counter.is_current
    )
    select coalesce(sum(cardinality(ids)), 0)::int as events, count(*)::int as found from page`
  const { events, found } = row!
  return { events, isAll: events < limit && found < 500 }
}

export interface StatRow {
  readonly at: Date
  readonly type: string
  readonly what: string
  readonly bucket: number
  readonly n: number
  readonly seconds: number
}

export interface StatSpan {
  readonly from: Date
  readonly to: Date
  readonly lastCountedAt: Date | null
  /** Rows of the types with the most events. */
  readonly rows: StatRow[]
  /** How many other types had events. */
  readonly typesLeftOut: number
}

/** Statistics of a time span, by time bucket. The span begins at the start of a bucket. */
export function readStats(
  sql: Sql,
  ask: { sinceSeconds: number; bucketSeconds: number; type: string | null; most: number },
): Promise<StatSpan> {
  return withTableScans(sql, async tx => {
    const [span] = await tx<Omit<StatSpan, 'rows' | 'typesLeftOut'>>`
      select date_bin(make_interval(secs => ${ask.bucketSeconds}::float8),
                      pawl.clock() - make_interval(secs => ${ask.sinceSeconds}::float8), 'epoch') as "from",
             pawl.clock() as "to", at as last_counted_at
        from pawl.counted`
    const [moved] = await tx<{ types: string[]; all: number }>`
      with counted as materialized (
        select type, sum(n) as n from pawl.stat
         where at >= ${span!.from}::timestamptz and (${ask.type}::text is null or type = ${ask.type})
         group by type
      )
      select array(select type from counted order by n desc, type limit ${ask.most}::int) as types,
             (select count(*)::int from counted) as "all"`
    const rows = await tx<StatRow>`
      select date_bin(make_interval(secs => ${ask.bucketSeconds}::float8), at, 'epoch') as at, type, what, bucket,
             sum(n)::bigint as n, sum(seconds) as seconds
        from pawl.stat
       where at >= ${span!.from}::timestamptz and type = any(${moved!.types}::text[])
       group by 1, 2, 3, 4
       order by 1, 2`
    return { ...span!, rows, typesLeftOut: moved!.all - moved!.types.length }
  })
}

export interface TypesToName {
  /** These are always named. */
  readonly named: readonly string[]
  /** How many types are named, the most queued first. */
  readonly most: number
  /** The name for all other types together. */
  readonly others: string
}

/** All-time sums by type. Types that are not named are added up. */
export function readTotals(sql: Sql, { named, most, others }: TypesToName): Promise<Omit<StatRow, 'at'>[]> {
  return withTableScans(
    sql,
    tx => tx`
      with chosen as materialized (
        select unnest(${named}::text[]) as type
         union
        (select type from pawl.stat
          where at = '-infinity' and what = 'queued' and type <> all(${named}::text[])
          group by type order by sum(n) desc, type limit greatest(0, ${most}::int - cardinality(${named}::text[])))
      )
      select coalesce(chosen.type, ${others}::text) as type, what, bucket, sum(n)::bigint as n, sum(seconds) as seconds
        from pawl.stat s left join chosen on chosen.type = s.type
       where at = '-infinity'
       group by 1, 2, 3
       order by 1, 2, 3`,
  )
}

/** Number of dead letters. */
export async function countDeadLetters(sql: Sql): Promise<number> {
  const [row] = await sql<{ n: number }>`select count(*)::int as n from pawl.trouble where state = 'dead_lettered'`
  return row!.n
}

export interface DepthRow {
  readonly at: Date
  readonly queue: string
  readonly due: number
  readonly held: number
}

/** Maximum number of queues whose depth is recorded per minute, the deepest first: as many as statistics can show. */
export const maxRecordedQueues = 1000

/**
 * Records the depths of the queues once a minute. If two processes do it in the same minute, the second finds it done.
 */
export async function recordQueueDepths(sql: Sql): Promise<void> {
  const [done] = await sql`select 1 from pawl.depth where at = date_bin('1 minute', pawl.clock(), 'epoch') limit 1`
  if (done !== undefined) return
  const { queues } = await deepestQueues(sql, { named: [], most: maxRecordedQueues, others: null })
  const deep = queues.filter(({ due, held }) => due > 0 || held > 0)
  await sql`
    insert into pawl.depth (at, queue, due, held)
    select date_bin('1 minute', pawl.clock(), 'epoch'), *
      from unnest(${deep.map(({ queue }) => queue)}::text[], ${deep.map(({ due }) => due)}::bigint[],
                  ${deep.map(({ held }) => held)}::bigint[])
        on conflict do nothing`
}

/** The maximum depth of each queue, by time bucket. */
export function readDepths(
  sql: Sql,
  { from, bucketSeconds, queues }: { from: Date; bucketSeconds: number; queues: readonly string[] },
): Promise<DepthRow[]> {
  return sql`
    select date_bin(make_interval(secs => ${bucketSeconds}::float8), at, 'epoch') as at, queue, max(due) as due, max(held) as held
      from pawl.depth where at >= ${from}::timestamptz and queue = any(${queues}::text[])
     group by 1, 2 order by 1, 2`
}

/** Deletes minutes past their retention, in batches. The all-time sums stay. */
export async function deleteOldStats(sql: Sql): Promise<number> {
  await sql`delete from pawl.depth where at < pawl.clock() - make_interval(secs => ${statSeconds}::float8)`
  const gone = await sql`
    delete from pawl.stat where ctid = any(array(
      select ctid from pawl.stat
       where at > '-infinity' and at < pawl.clock() - make_interval(secs => ${statSeconds}::float8) limit 5000))
    returning 1`
  return gone.length
}
