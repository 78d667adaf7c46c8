import { taskLifecycle } from '../../kernel/task.ts'
import { nextTime } from '../driver/clock.ts'
import { maxPageBytes } from '../driver/paging.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, json, literal, type Sql } from '../driver/sql.ts'
import { toAssigned, toRunning } from './claim-transition.ts'
import {
  aggregatedColumns,
  type Claimed,
  type ClaimedColumns,
  claimedTaskColumns,
  columnsAsJson,
  settingsUnderLease,
  tasksFromColumns,
} from './claimed.ts'

export interface ClaimRequest {
  readonly queues: readonly string[]
  readonly limit: number
  /** The worker of each task, in the order of the queue. The last one gets all further tasks. */
  readonly workers: readonly string[]
  readonly session: string | null
  readonly syncId: string | null
  /** The claimer's lease terms, which override those of the task and its type. They are kept in the claim's event. */
  readonly terms: LeaseTerms | null
  /** The heartbeat of tasks where neither they, nor their type, nor the terms set one. Default: that of the kernel. */
  readonly heartbeatSeconds?: number | undefined
  /** Where the remaining rows of each lane begin, as far as this process knows. */
  readonly hints: readonly LaneHint[]
  /** The claim also starts the tasks: two transitions in one write. */
  readonly starts?: boolean
}

export interface LeaseTerms {
  readonly leaseSeconds?: number
  readonly heartbeatSeconds?: number | null
  /**
   * The id of the API key that claimed. Workers of some dialects do not report an epoch and are recognized by their
   * key.
   */
  readonly key?: string
}

/**
 * A row of `due`: where a claim starts to read a lane. Microseconds since 1970, because the value must return to the
 * database unchanged.
 */
export interface LaneHint {
  readonly laneId: number
  readonly runAtUs: number
  readonly id: string
}

export interface ClaimResult {
  readonly tasks: Claimed[]
  /** For each task, the index of its worker in `workers`. */
  readonly workerIndexes: number[]
  /** The last rows of `due` that the claim deleted, one per lane. */
  readonly places: LaneHint[]
  /** False: the session has no row, or no longer has one. */
  readonly isOpen: boolean
  /** An earlier sync with this id has claimed tasks, so this one has claimed nothing. */
  readonly isRepeated: boolean
  /** Another claim took the task that was first in line when this claim began. */
  readonly isBeaten: boolean
  /** Further tasks were free, but the answer would have become too large. */
  readonly isCut: boolean
  /** Stages of which the first task has started by this claim. */
  readonly stageIds: readonly string[]
}

interface WonColumns extends ClaimedColumns, Omit<ClaimResult, 'tasks' | 'workerIndexes' | 'places' | 'stageIds'> {
  readonly workerNumbers: number[] | null
  readonly places: LaneHint[] | null
  readonly startedStageIds: string[] | null
}

/**
 * The lease terms of a candidate: those of the claimer. The claimer's default heartbeat is added if neither the terms,
 * nor the task, nor its type set one.
 */
const leaseTerms = `case when candidate.heartbeat is null or candidate.terms ? 'heartbeatSeconds'
                               or t.settings ? 'heartbeatSeconds' or candidate.type_settings ? 'heartbeatSeconds'
                              then candidate.terms
                              else coalesce(candidate.terms, '{}')
                                   || jsonb_build_object('heartbeatSeconds', candidate.heartbeat)
                          end`

const open = inList(taskLifecycle.moves.claim.from)

/** Minimum number of lanes scanned per claim. Concurrent claims may already have emptied the first ones. */
const minLanes = 200

/**
 * Claims up to `limit` due tasks: the highest lane first, the oldest task first within a lane. It is one statement, so it
 * takes effect completely or not at all.
 *
 * 1. `my_session` locks the row of the worker's session, so two syncs of one session claim one after the other.
 * 2. `lanes` lists the open lanes that have a due row and a free slot, best first, and locks nothing.
 * 3. `locked` goes through these lanes and locks rows of `due`; rows that another claim has locked are skipped. If long
 *    tasks among them exceed the bytes of an answer, the `candidates` end there, and the other rows stay in the queue.
 * 4. A lane with `parallelism` is locked before its rows of `due`, and skipped if another claim has it locked, so
 *    only one claim at a time hands out its slots.
 * 5. The lateral joins read lane by lane and stop at the limit, so hardly any row is locked in vain.
 * 6. `deleted` removes the locked rows from `due`, and `put_back` inserts the ids beyond the limit again.
 * 7. `claimed` moves the tasks to assigned under a new epoch; a task that is no longer claimable, or is due at another
 *    time, left its row in `due` behind, and that row is deleted without effect.
 * 8. Locks are taken in the order session, lane, due, task; statements that end tasks skip locked rows of `due`, so
 *    neither side waits for the other in a circle.
 * 9. Two claims at once are safe, because only one of them can lock a row of `due`, and a task is claimed only through it.
 * 10. If a row of `due` changed just before it was locked, `deleted` misses it; then `pawl.try_again` rolls everything
 *    back and the caller repeats the claim, because otherwise its tasks would be claimed and still be in the queue.
 *
 * The session remembers its last claim, so the same `syncId` claims nothing more. A claim that found nothing is not
 * remembered, because a sync that waits claims again under its id. Without a row for the session nothing could be
 * remembered, so nothing is claimed: the caller creates the row and repeats the claim.
 */
export async function claimTasks(sql: Sql, request: ClaimRequest): Promise<ClaimResult> {
  const { hints } = request
  const terms = json(request.terms)
  const { state, events, startedAt, startEvent, ids, seqs, counts, begun } = request.starts ? toRunning : toAssigned
  const [won] = await sql<WonColumns>`
    with
    -- The worker's session, locked. It has no row before the first claim.
    my_session as materialized (
      select sync_id from pawl.session where id = ${request.session}::uuid for update
    ),
    -- Lanes with a due row and a free slot, best first, each with the first due row behind its hint.
    lanes as materialized (
      select l.*
        from unnest(${[...new Set(request.queues)]}::text[]) as q (queue)
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
                limit greatest(${request.limit}::int, ${minLanes}::int)) as l
       order by l.rank desc, l.id
    ),
    -- Up to limit task ids from locked rows of due. place is the row, limited the lane if its slots are limited.
    locked as (
      select t.place, t.bytes, t.run_at, t.careful, t.type_settings, t.id, slots.lane_id as limited,
             ${terms}::jsonb as terms, ${request.heartbeatSeconds ?? null}::float8 as heartbeat
        from lanes l
        left join lateral (
               select id as lane_id,
                      greatest(0, parallelism - (select count(*) from pawl.held_slots_now(slots, slot_epochs))) as free
                 from (select id, parallelism, slots, slot_epochs
                         from pawl.lane
                        where id = l.id and l.parallelism is not null and open
                          for update skip locked) as locked) as slots on true
       cross join lateral (
               select d.place, d.bytes, d.run_at, d.careful, tt.settings as type_settings, unnest(d.ids) as id
                 from (select ctid as place, bytes, run_at, careful, type, ids
                         from pawl.due
                        where lane_id = l.id
                          and run_at <= pawl.clock()
                          and (run_at, id) >= (l.run_at, l.front_id)
                        order by run_at, id
                        limit ${request.limit}::int
                          for update skip locked) as d
                 left join pawl.task_type tt on tt.type = d.type
                limit least(${request.limit}::int, slots.free)) as t
       where l.parallelism is null or slots.lane_id is not null
       limit case when (select sync_id from my_session) = ${request.syncId} then 0
                  when ${request.session}::uuid is not null and not exists (select from my_session) then 0
                  else ${request.limit}::int end
    ),
    -- The first of these, until the long tasks among them exceed the bytes of an answer. Each has its worker.
    candidates as materialized (
      select *, (${request.workers}::text[])[worker_number] as worker
        from (select *, sum(bytes) over before as bytes_before,
                     least(row_number() over before, ${request.workers.length}::int) as worker_number
                from locked window before as (rows between unbounded preceding and 1 preceding)) as locked
       where coalesce(bytes_before, 0) < ${maxPageBytes}::int
    ),
    -- The rows of due to take, and how many ids of each. Tasks marked careful are claimed one at a time.
    used as materialized (
      select place, count(*)::int as n from candidates
       where not careful or place = (select place from candidates where careful limit 1)
       group by place
    ),
    -- These rows leave the queue.
    deleted as (
      delete from pawl.due where ctid = any(array(select place from used))
      returning ctid as place, lane_id, run_at, id, type, ids
    ),
    -- Deleted rows that hold more ids than the limit allowed.
    partly_used as materialized (
      select * from deleted where (place, cardinality(ids)) not in (select place, n from used)
    ),
    -- The remaining ids of these rows return to the queue. Careful rows are never split: each holds one id.
    put_back as (
      insert into pawl.due (lane_id, run_at, id, ids, type)
      select lane_id, run_at, ids[n + 1], ids[n + 1:], type from partly_used join used using (place)
    ),
    -- The tasks move to assigned, each with a new epoch, a lease and its event. Stale ids match nothing.
    claimed as (
      update pawl.task t
         set state       = ${state},
             seq         = t.seq + ${literal(String(events))},
             epoch       = t.epoch + 1,
             owner       = candidate.worker,
             started_at  = ${startedAt},
             lease_until = pawl.clock()
                           + make_interval(secs => pawl.lease_seconds(${settingsUnderLease(leaseTerms)}, candidate.type_settings)),
             history     = t.history || row(${nextTime('t')}, t.epoch + 1, 'assigned',
                                            null, 'worker:' || candidate.worker, null, ${literal(leaseTerms)})::pawl.step
                                         ${startEvent}
        from candidates candidate
       where (not candidate.careful or candidate.place in (select place from used))
         and t.id = ${viaIndex('candidate.id')} and t.state in (${open}) and t.run_at = candidate.run_at
      returning ${claimedTaskColumns(leaseTerms, 'candidate.type_settings')}, t.seq, candidate.limited,
                candidate.worker_number
    ),
    -- The claimed tasks as one row of arrays (claimed.ts); its arrays are null if nothing was claimed.
    batch as materialized (
      select ${aggregatedColumns}, ${ids} as moved, ${seqs} as seqs,
             array_agg(worker_number) as worker_numbers
        from claimed
    ),
    -- Adds the events to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs) select 'task', moved, seqs from batch where ids is not null
    ),
    -- Records the leases for the rescue, which finds expired ones.
    lease_entry as (
      insert into pawl.claim (look_at, ids, epochs) select look_at, ids, epochs from batch where ids is not null
      returning id
    ),
    -- Records the leases in the slots of locked lanes, and removes those that have ended.
    slots_update as (
      update pawl.lane l
         set (slots, slot_epochs) = (
               select array_agg(id), array_agg(epoch)
                 from (select * from pawl.held_slots_now(l.slots, l.slot_epochs)
                        union all
                       select * from unnest(w.ids, w.epochs)) as s (id, epoch))
        from (select limited, array_agg(id) as ids, array_agg(epoch) as epochs
                from claimed
               where (select bool_or(parallelism is not null) from lanes) and limited is not null
               group by limited) as w
       where l.id = w.limited
    ),
    ${counts}
    -- The session remembers the claim under its sync id, unless nothing was claimed.
    session_update as (
      update pawl.session
         set seen_at  = pawl.clock(),
             sync_id  = case when exists (select from lease_entry) then ${request.syncId}::text else sync_id end,
             claim_id = coalesce((select id from lease_entry), claim_id)
       where id = ${request.session}::uuid
    )
    -- The result. places are the last deleted rows of each lane; is_beaten tells whether another claim was first. The
    -- guard is not read: if fewer rows were deleted than used, it rolls the statement back, and the caller repeats it.
    select ${columnsAsJson}, array_to_json(worker_numbers) as worker_numbers,
           (select json_agg(json_build_object('laneId', lane_id, 'runAtUs', us, 'id', id))
              from (select distinct on (lane_id) lane_id, (date_part('epoch', run_at) * 1000000)::bigint as us, id
                      from deleted order by lane_id, run_at desc, id desc) as last) as places,
           ${request.session}::uuid is null or exists (select from my_session) as is_open,
           coalesce((select sync_id from my_session) = ${request.syncId}, false) as is_repeated,
           exists (select from lanes)
             and (select front_id from lanes limit 1) not in (select id from deleted) as is_beaten,
           (select count(*) from candidates) < (select count(*) from locked) as is_cut, ${begun} as started_stage_ids,
           case when (select count(*) from deleted) <> (select count(*) from used) then pawl.try_again() end as guard
      from batch`
  const { places, workerNumbers, isOpen, isRepeated, isBeaten, isCut, startedStageIds } = won!
  return {
    tasks: tasksFromColumns(won!),
    workerIndexes: (workerNumbers ?? []).map(number => number - 1),
    places: places ?? [],
    ...{ isOpen, isRepeated, isBeaten, isCut },
    stageIds: startedStageIds ?? [],
  }
}
