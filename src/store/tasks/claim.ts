import { taskLifecycle } from '../../kernel/task.ts'
import { nextTime } from '../driver/clock.ts'
import { lookup } from '../driver/plans.ts'
import { among, json, literal, type Sql } from '../driver/sql.ts'
import { type Claimed, claimedFrom, gathered, leasedBy, sent, type Won, wonColumns } from './claimed.ts'

export interface ClaimAsk {
  readonly queues: readonly string[]
  readonly limit: number
  readonly worker: string
  readonly session: string | null
  readonly syncId: string | null
  /** What the claimer says of its leases, in place of the task and its type; it is kept in the claim's event. */
  readonly terms: LeaseTerms | null
  /** The heartbeat of tasks for which neither they, their type nor the terms have one. Default: that of the kernel. */
  readonly heartbeatSeconds?: number | undefined
  /** Where the living part of a lane begins, as far as this process remembers. */
  readonly hints: readonly Place[]
}

export interface LeaseTerms {
  readonly leaseSeconds?: number
  readonly heartbeatSeconds?: number | null
  /** The id of the key that claimed: workers of some dialects name no epoch, and are known by their key. */
  readonly key?: string
}

/** A row of `due`. Microseconds since 1970, for they must come back to the database as they were. */
export interface Place {
  readonly laneId: number
  readonly runAtUs: number
  readonly id: string
}

export interface ClaimAnswer {
  readonly tasks: Claimed[]
  /** The last rows of `due` that it emptied, one for each lane. */
  readonly places: Place[]
  /** False: the session has no row, or none any more. */
  readonly isOpen: boolean
  /** An earlier sync of this id has won something: this one has won nothing more. */
  readonly isRepeated: boolean
  /** The task that was first in line when the claim began went to another claimer. */
  readonly isBeaten: boolean
}

/** The terms of one task: with the claimer's default heartbeat, if nothing else says how far apart beats may be. */
const termsFound = `case when found.heartbeat is null or found.terms ? 'heartbeatSeconds'
                               or t.settings ? 'heartbeatSeconds' or found.typed ? 'heartbeatSeconds'
                              then found.terms
                              else coalesce(found.terms, '{}') || jsonb_build_object('heartbeatSeconds', found.heartbeat)
                          end`

const open = among(taskLifecycle.moves.claim.from)

/** So many lanes a claim looks through at least, for others may have taken what the first ones had. */
const lanesAtLeast = 200

/**
 * Claims up to `limit` due tasks, best lane first, oldest first within a lane.
 *
 * Two workers never get the same task: SKIP LOCKED hands them different rows of `due`, and taking a row out of it and
 * moving its tasks is one statement. Rows are pulled lane by lane, and only as far as the limit, so nothing is locked
 * in vain; what the last one holds beyond the limit is put back. Of tasks to be handled with care it gives out one at
 * a time. A task in `due` that is not open any more, or has another place by now, is a leftover: it goes, and wins nothing.
 *
 * A place that another wrote to just before it was locked is one that this statement can lock but not delete: then it
 * is all undone and tried again, for its tasks would be claimed and still have a place.
 *
 * `lanes` are those with something due, each with the place where that begins; the index gives them in order, so of
 * many only the first are read. A lane that is full is passed over before it counts. One with `parallelism` is locked
 * when it is reached, so that only one claim at a time gives out its slots; another passes it over.
 *
 * The session's row is locked first and remembers what was won: the same syncId again wins nothing more. One that won
 * nothing is not remembered, for it will ask again. Without that row nothing would be remembered, so nothing is won.
 */
export async function claimTasks(sql: Sql, ask: ClaimAsk): Promise<ClaimAnswer> {
  const { hints } = ask
  const terms = json(ask.terms)
  const [won] = await sql<Won & Omit<ClaimAnswer, 'tasks' | 'places'> & { places: Place[] | null }>`
    with me as materialized (
      select sync_id from pawl.session where id = ${ask.session}::uuid for update
    ), lanes as materialized (
      select l.*
        from unnest(${[...new Set(ask.queues)]}::text[]) as q (queue)
       cross join lateral (
               select l.id, l.rank, l.parallelism, front.run_at, front.id as front_id
                 from pawl.lane l
                 left join unnest(${hints.map(h => h.laneId)}::int[], ${hints.map(h => h.runAtUs)}::bigint[],
                                  ${hints.map(h => h.id)}::uuid[]) as h (lane_id, us, id) on h.lane_id = l.id
                cross join lateral (
                        select run_at, id
                          from pawl.due
                         where lane_id = l.id
                           and run_at <= pawl.clock()
                           and (run_at, id) > (coalesce('epoch'::timestamptz + h.us * interval '1 microsecond', '-infinity'),
                                               coalesce(h.id, '00000000-0000-0000-0000-000000000000'))
                         order by run_at, id
                         limit 1) as front
                where l.queue = q.queue and l.open
                  and (l.parallelism is null
                       or l.parallelism > (select count(*) from pawl.held_slots(l.slots, l.slot_epochs)
                                            where front.id is not null))
                order by l.rank desc, l.id
                limit greatest(${ask.limit}::int, ${lanesAtLeast}::int)) as l
       order by l.rank desc, l.id
    ), found as materialized (
      select t.place, t.run_at, t.careful, t.typed, t.id, slots.lane_id as limited, ${terms}::jsonb as terms,
             ${ask.heartbeatSeconds ?? null}::float8 as heartbeat
        from lanes l
        left join lateral (
               select id as lane_id,
                      greatest(0, parallelism - (select count(*) from pawl.held_slots_now(slots, slot_epochs))) as free
                 from (select id, parallelism, slots, slot_epochs
                         from pawl.lane
                        where id = l.id and l.parallelism is not null and open
                          for update skip locked) as locked) as slots on true
       cross join lateral (
               select d.place, d.run_at, d.careful, tt.settings as typed, unnest(d.ids) as id
                 from (select ctid as place, run_at, careful, type, ids
                         from pawl.due
                        where lane_id = l.id
                          and run_at <= pawl.clock()
                          and (run_at, id) >= (l.run_at, l.front_id)
                        order by run_at, id
                        limit ${ask.limit}::int
                          for update skip locked) as d
                 left join pawl.task_type tt on tt.type = d.type
                limit least(${ask.limit}::int, slots.free)) as t
       where l.parallelism is null or slots.lane_id is not null
       limit case when (select sync_id from me) = ${ask.syncId} then 0
                  when ${ask.session}::uuid is not null and not exists (select from me) then 0
                  else ${ask.limit}::int end
    ), used as materialized (
      select place, count(*)::int as n from found
       where not careful or place = (select place from found where careful limit 1)
       group by place
    ), taken as (
      delete from pawl.due where ctid = any(array(select place from used))
      returning ctid as place, lane_id, run_at, id, type, ids
    ), broached as materialized (
      select * from taken where (place, cardinality(ids)) not in (select place, n from used)
    ), put_back as (
      insert into pawl.due (lane_id, run_at, id, ids, type)
      select lane_id, run_at, ids[n + 1], ids[n + 1:], type from broached join used using (place)
    ), moved as (
      update pawl.task t
         set state       = 'assigned',
             seq         = t.seq + 1,
             epoch       = t.epoch + 1,
             owner       = ${ask.worker},
             started_at  = null,
             lease_until = pawl.clock() + make_interval(secs => pawl.lease_seconds(${leasedBy(termsFound)}, found.typed)),
             history     = t.history || row(${nextTime('t')}, t.epoch + 1, 'assigned',
                                            null, ${`worker:${ask.worker}`}, null, ${literal(termsFound)})::pawl.step
        from found
       where (not found.careful or found.place in (select place from used))
         and t.id = ${lookup('found.id')} and t.state in (${open}) and t.run_at = found.run_at
      returning ${wonColumns(termsFound, 'found.typed')}, t.seq, found.limited
    ), won as materialized (
      select ${gathered}, array_agg(seq) as seqs from moved
    ), noted as (
      insert into pawl.change (entity, ids, seqs) select 'task', ids, seqs from won where ids is not null
    ), watched as (
      insert into pawl.claim (look_at, ids, epochs) select look_at, ids, epochs from won where ids is not null
      returning id
    ), slotted as (
      update pawl.lane l
         set (slots, slot_epochs) = (
               select array_agg(id), array_agg(epoch)
                 from (select * from pawl.held_slots_now(l.slots, l.slot_epochs)
                        union all
                       select * from unnest(w.ids, w.epochs)) as s (id, epoch))
        from (select limited, array_agg(id) as ids, array_agg(epoch) as epochs
                from moved
               where (select bool_or(parallelism is not null) from lanes) and limited is not null
               group by limited) as w
       where l.id = w.limited
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
                      from taken order by lane_id, run_at desc, id desc) as last) as places,
           ${ask.session}::uuid is null or exists (select from me) as is_open,
           coalesce((select sync_id from me) = ${ask.syncId}, false) as is_repeated,
           exists (select from lanes)
             and (select front_id from lanes limit 1) not in (select id from taken) as is_beaten,
           case when (select count(*) from taken) <> (select count(*) from used) then pawl.try_again() end as whole
      from won`
  const { places, isOpen, isRepeated, isBeaten } = won!
  return { tasks: claimedFrom(won!), places: places ?? [], isOpen, isRepeated, isBeaten }
}

/**
 * In how many seconds the next task of these queues comes due; null: none waits. 0: one is due in a lane that has a
 * slot for it, so a claim that did not win it only came while another had the lane. Tasks that lack a slot do not count.
 */
export async function nextDueSeconds(sql: Sql, queues: readonly string[]): Promise<number | null> {
  const [row] = await sql<{ seconds: number | null }>`
    select extract(epoch from min(next.run_at) - pawl.clock())::float8 as seconds
      from pawl.lane l
     cross join lateral (
             select case when l.parallelism is not null
                          and l.parallelism > (select count(*) from pawl.held_slots(l.slots, l.slot_epochs))
                         then '-infinity' else pawl.clock() end as after) as look
     cross join lateral (
             select run_at from pawl.due
              where lane_id = l.id and run_at > look.after
              order by run_at limit 1) as next
     where l.queue = any(${queues}::text[]) and l.open`
  const { seconds } = row!
  if (seconds === null) return null
  return seconds > 0 ? Math.max(0.001, seconds) : 0
}

/**
 * In how many seconds each of these queues has something for a claim; 0 or less: now. One look for all who wait.
 * Tasks that lack a slot do not count.
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
