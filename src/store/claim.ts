import { taskLifecycle } from '../kernel/task.ts'
import { among, type Sql } from './sql.ts'

export interface Claimed {
  readonly id: string
  readonly epoch: number
  readonly laneId: number
  readonly type: string
  readonly payload: unknown
  readonly attempt: number
  readonly careful: boolean
  readonly checkpoint: unknown
  readonly leaseLength: number
  readonly heartbeatSeconds: number | null
  readonly timeoutSeconds: number | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** Microseconds since 1970, for it must come back to the database as it was. */
  readonly runAtUs: number
  readonly nowMs: number
}

export interface ClaimAsk {
  readonly queues: readonly string[]
  readonly limit: number
  readonly worker: string
  readonly session: string | null
  readonly syncId: string | null
  /** Where the living part of a lane begins, as far as this process remembers. */
  readonly hints: readonly { laneId: number; runAtUs: number; id: string }[]
}

const open = among(taskLifecycle.moves.claim.from)

/**
 * Claims up to `limit` due tasks, best lane first, oldest first within a lane.
 *
 * Two workers never get the same task: SKIP LOCKED hands them different rows of `due`, and taking a row out of it and
 * moving its tasks is one statement. Rows are pulled lane by lane, and only as far as the limit, so nothing is locked
 * in vain; what the last one holds beyond the limit is put back. Of tasks to be handled with care it gives out one at
 * a time. A task in `due` that is not open any more, or not yet again, is a leftover: it goes, and wins nothing.
 *
 * The session's row is locked first and remembers what was won: the same syncId again wins nothing more. One that won
 * nothing is not remembered, for it will ask again.
 */
export async function claimTasks(sql: Sql, ask: ClaimAsk): Promise<Claimed[]> {
  const { hints } = ask
  const claimed = await sql<Claimed & { turn: number }>`
    with me as materialized (
      select sync_id from pawl.session where id = ${ask.session}::uuid for update
    ), lanes as materialized (
      select l.id, coalesce('epoch'::timestamptz + h.us * interval '1 microsecond', '-infinity') as run_at,
             coalesce(h.id, '00000000-0000-0000-0000-000000000000') as after_id
        from pawl.lane l
        left join unnest(${hints.map(h => h.laneId)}::int[], ${hints.map(h => h.runAtUs)}::bigint[],
                         ${hints.map(h => h.id)}::uuid[]) as h (lane_id, us, id) on h.lane_id = l.id
       where l.queue = any(${ask.queues}::text[]) and l.open
       order by l.priority desc, l.id
    ), found as materialized (
      select t.place, t.careful, t.type, unnest(t.ids) as id
        from lanes l
       cross join lateral (
               select ctid as place, careful, type, ids
                 from pawl.due
                where lane_id = l.id
                  and run_at <= pawl.clock()
                  and (run_at, id) > (l.run_at, l.after_id)
                order by run_at, id
                limit ${ask.limit}::int
                  for update skip locked) as t
       limit case when (select sync_id from me) = ${ask.syncId} then 0 else ${ask.limit}::int end
    ), picked as materialized (
      select place, type, id, row_number() over () as turn from found
       where not careful or place = (select place from found where careful limit 1)
    ), taken as (
      delete from pawl.due where ctid = any(array(select distinct place from picked))
      returning ctid as place, lane_id, run_at, type, ids
    ), put_back as (
      insert into pawl.due (lane_id, run_at, id, ids, type)
      select lane_id, run_at, ids[used.n + 1], ids[used.n + 1:], type
        from taken join (select place, count(*)::int as n from picked group by place) as used using (place)
       where cardinality(ids) > used.n
    ), moved as (
      update pawl.task t
         set state       = 'assigned',
             seq         = t.seq + 1,
             epoch       = t.epoch + 1,
             owner       = ${ask.worker},
             started_at  = null,
             lease_until = pawl.clock() + make_interval(secs => pawl.lease_seconds(t.settings, tt.settings)),
             history     = t.history || array[
               row(greatest(pawl.clock(), (t.history[t.seq]).ts), t.epoch + 1, 'assigned', null,
                   ${`worker:${ask.worker}`}, null, null)::pawl.step]
        from picked left join pawl.task_type tt on tt.type = picked.type
       where t.id = picked.id and t.state in (${open}) and t.run_at <= pawl.clock()
      returning t.id, t.lane_id, t.epoch, t.seq, t.type, t.payload, t.failures, t.losses, t.careful, t.checkpoint,
                t.correlation_id, t.traceparent, t.run_at, t.lease_until, picked.turn,
                pawl.setting(t.settings, tt.settings, 'heartbeatSeconds') as heartbeat_seconds,
                pawl.setting(t.settings, tt.settings, 'timeoutSeconds') as timeout_seconds
    ), noted as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', array_agg(id), array_agg(seq) from moved having count(*) > 0
    ), watched as (
      insert into pawl.claim (look_at, ids, epochs)
      select min(least(lease_until, pawl.clock() + make_interval(secs => timeout_seconds))), array_agg(id),
             array_agg(epoch)
        from moved having count(*) > 0
      returning id
    ), remembered as (
      update pawl.session
         set seen_at  = pawl.clock(),
             sync_id  = case when exists (select from watched) then ${ask.syncId}::text else sync_id end,
             claim_id = coalesce((select id from watched), claim_id)
       where id = ${ask.session}::uuid
    )
    select id, lane_id, epoch, type, payload, failures + losses + 1 as attempt, careful, checkpoint, correlation_id,
           traceparent, (date_part('epoch', run_at) * 1000000)::bigint as run_at_us,
           date_part('epoch', lease_until - pawl.clock()) as lease_length, heartbeat_seconds, timeout_seconds,
           (select date_part('epoch', pawl.clock()) * 1000) as now_ms, turn
      from moved`
  return claimed.sort((one, other) => one.turn - other.turn)
}

/** In how many seconds the next task of these queues comes due; null: none waits. */
export async function nextDueSeconds(sql: Sql, queues: readonly string[]): Promise<number | null> {
  const [row] = await sql<{ seconds: number | null }>`
    select extract(epoch from min(next.run_at) - pawl.clock())::float8 as seconds
      from pawl.lane l
     cross join lateral (
             select run_at from pawl.due
              where lane_id = l.id and run_at > pawl.clock()
              order by run_at limit 1) as next
     where l.queue = any(${queues}::text[]) and l.open`
  return row!.seconds === null ? null : Math.max(0.001, row!.seconds)
}
