import { taskLifecycle } from '../kernel/task.ts'
import { type Claimed, claimedFrom, gathered, sent, type Won, wonColumns } from './claimed.ts'
import { among, type Sql } from './sql.ts'

export interface ClaimAsk {
  readonly queues: readonly string[]
  readonly limit: number
  readonly worker: string
  readonly session: string | null
  readonly syncId: string | null
  /** Where the living part of a lane begins, as far as this process remembers. */
  readonly hints: readonly Place[]
}

/** A row of `due`. Microseconds since 1970, for they must come back to the database as they were. */
export interface Place {
  readonly laneId: number
  readonly runAtUs: number
  readonly id: string
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
 *
 * `places` are the last rows of `due` that it emptied, one for each lane.
 */
export async function claimTasks(sql: Sql, ask: ClaimAsk): Promise<{ tasks: Claimed[]; places: Place[] }> {
  const { hints } = ask
  const [won] = await sql<Won & { places: Place[] | null }>`
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
      select t.place, t.careful, tt.settings as typed, unnest(t.ids) as id
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
        left join pawl.task_type tt on tt.type = t.type
       limit case when (select sync_id from me) = ${ask.syncId} then 0 else ${ask.limit}::int end
    ), used as materialized (
      select place, count(*)::int as n from found
       where not careful or place = (select place from found where careful limit 1)
       group by place
    ), taken as (
      delete from pawl.due where ctid = any(array(select place from used))
      returning ctid as place, lane_id, run_at, id, type, ids
    ), put_back as (
      insert into pawl.due (lane_id, run_at, id, ids, type)
      select lane_id, run_at, ids[n + 1], ids[n + 1:], type
        from taken join used using (place)
       where cardinality(ids) > n
    ), moved as (
      update pawl.task t
         set state       = 'assigned',
             seq         = t.seq + 1,
             epoch       = t.epoch + 1,
             owner       = ${ask.worker},
             started_at  = null,
             lease_until = pawl.clock() + make_interval(secs => pawl.lease_seconds(t.settings, found.typed)),
             history     = t.history || row(greatest(pawl.clock(), (t.history[t.seq]).ts), t.epoch + 1, 'assigned',
                                            null, ${`worker:${ask.worker}`}, null, null)::pawl.step
        from found
       where (not found.careful or found.place in (select place from used))
         and t.id = any(array[found.id]) and t.state in (${open}) and t.run_at <= pawl.clock()
      returning ${wonColumns('found.typed')}, t.seq
    ), won as materialized (
      select ${gathered}, array_agg(seq) as seqs from moved
    ), noted as (
      insert into pawl.change (entity, ids, seqs) select 'task', ids, seqs from won where ids is not null
    ), watched as (
      insert into pawl.claim (look_at, ids, epochs) select look_at, ids, epochs from won where ids is not null
      returning id
    ), remembered as (
      update pawl.session
         set seen_at  = pawl.clock(),
             sync_id  = case when exists (select from watched) then ${ask.syncId}::text else sync_id end,
             claim_id = coalesce((select id from watched), claim_id)
       where id = ${ask.session}::uuid
    )
    select ${sent},
           (select json_agg(json_build_object('laneId', lane_id, 'runAtUs', us, 'id', id))
              from (select distinct on (lane_id) lane_id, (date_part('epoch', run_at) * 1000000)::bigint as us, id
                      from taken order by lane_id, run_at desc, id desc) as last) as places
      from won`
  return { tasks: claimedFrom(won!), places: won!.places ?? [] }
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
