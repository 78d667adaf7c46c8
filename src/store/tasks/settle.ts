/**
 * Reports of workers about tasks that they hold. Every statement is fenced by state and epoch in its WHERE clause, so a
 * worker that lost its lease changes nothing, whoever holds the task now.
 */
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, json, list, literal, type Sql } from '../driver/sql.ts'
import { leaseTermsOfTask, settingsUnderLease } from './claimed.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

export interface LeaseRef {
  readonly id: string
  readonly epoch: number
}

export interface Success extends LeaseRef {
  readonly output?: unknown
  readonly ranMs?: number
}

/** The columns of a task `t` that succeeds, as `report (id, epoch, output, ran_us)` says. */
export const succeededColumns = literal(`
             state       = 'succeeded',
             seq         = t.seq + case when t.state = 'assigned' then 2 else 1 end,
             ended_at    = ${nextTime('t').literal},
             lease_until = null,
             error       = null,
             output      = report.output,
             history     = t.history || case when t.state = 'assigned' then array[
               row(${nextTime('t', `pawl.clock() - report.ran_us * interval '1 microsecond'`).literal}, t.epoch,
                   'running', null, null, 'implied', null)::pawl.step] end ||
               row(${nextTime('t').literal}, t.epoch, 'succeeded', null, null, null, null)::pawl.step`)

/**
 * Ends attempts that succeeded. If the start was never reported, as for short tasks, both transitions are made at once:
 * two events, seq + 2. Returns the items that it did not change: they have files, or are not held under their epoch.
 */
export async function succeedTasks<Item extends Success>(
  sql: Sql,
  items: readonly Item[],
): Promise<{ missed: Item[]; stageIds: string[] }> {
  const outputs = items.some(item => item.output !== undefined) ? items.map(item => json(item.output)) : null
  const [done] = await sql<{ ids: string[] | null; stageIds: string[] | null }>`
    with
    -- The tasks succeed. Without a reported start, the start is implied at the time that the worker measured.
    moved as (
      update pawl.task t
         set ${succeededColumns}
        from unnest(${list(items.map(item => item.id))}::uuid[], ${list(items.map(item => item.epoch))}::int[],
                    ${outputs}::json[], ${list(items.map(item => Math.round((item.ranMs ?? 0) * 1000)))}::bigint[])
          as report (id, epoch, output, ran_us)
       where t.id = ${viaIndex('report.id')} and t.epoch = report.epoch and t.state in (${held}) and not t.files
      returning t.id, t.seq, t.job_id, t.stage_id, ((t.history[t.seq - 1]).cause = 'implied') is true as begins
    ),
    -- Their ids, and the ids with the seqs of all new events.
    done as materialized (
      select array_agg(id) as ids, array_agg(id) filter (where begins) || array_agg(id) as moved,
             array_agg(seq - 1) filter (where begins) || array_agg(seq) as seqs
        from moved
    ),
    -- Adds the events to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs) select 'task', moved, seqs from done where ids is not null
    ),
    -- Their stages get the changes of their counts.
    tally_entry as (
      insert into pawl.tally (job_id, stage_id, good, begun)
      select job_id, stage_id, count(*), count(*) filter (where begins)
        from moved where stage_id is not null group by job_id, stage_id
      returning stage_id
    )
    select case when cardinality(ids) = ${items.length} then null else coalesce(ids, '{}') end as ids,
           (select array_agg(stage_id) from tally_entry) as stage_ids
      from done`
  const stageIds = done!.stageIds ?? []
  if (done!.ids === null) return { missed: [], stageIds }
  const ended = new Set(done!.ids)
  return { missed: items.filter(item => !ended.has(item.id)), stageIds }
}

/**
 * Records starts, each reported by the worker at the same index. A task that is already running under the same epoch
 * also counts, because the first response was lost. Only the first start in a round of its stage changes the stage and
 * the job, and only that one is counted; a task claimed in a round was claimed after the round was opened, so a row
 * that says `begun` means this round.
 *
 * Rows are locked in the order of their ids, as in every batch, so two batches cannot deadlock.
 */
export async function startTasks(
  sql: Sql,
  items: readonly (LeaseRef & { agoMs?: number })[],
  workers: readonly (string | null)[],
): Promise<{ started: Set<string>; stageIds: string[] }> {
  const rows = await sql<{ id: string; begun: string | null }>`
    with
    -- The tasks that are held under their epoch, locked in the order of their ids.
    locked as materialized (
      select t.id, t.state, report.ago_ms, report.worker
        from unnest(${items.map(item => item.id)}::uuid[], ${items.map(item => item.epoch)}::int[],
                    ${items.map(item => item.agoMs ?? 0)}::float8[], ${workers}::text[]) as report (id, epoch, ago_ms, worker)
        join pawl.task t on t.id = ${viaIndex('report.id')} and t.epoch = report.epoch and t.state in (${held})
       order by t.id
         for update of t
    ),
    -- Assigned tasks start, at the time that the worker measured.
    moved as (
      update pawl.task t
         set state      = 'running',
             seq        = t.seq + 1,
             started_at = ${nextTime('t', 'pawl.clock() - make_interval(secs => locked.ago_ms / 1000)')},
             history    = t.history || row(
                            ${nextTime('t', 'pawl.clock() - make_interval(secs => locked.ago_ms / 1000)')},
                            t.epoch, 'running', null, 'worker:' || locked.worker, 'reported_start', null)::pawl.step
        from locked
       where t.id = ${viaIndex('locked.id')} and locked.state = 'assigned'
      returning t.id as moved_id, t.seq as moved_to, t.job_id as in_job, t.stage_id as in_stage
    ),
    -- Adds the events to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', array_agg(moved_id), array_agg(moved_to) from moved having count(*) > 0
    ),
    -- Stages that do not know yet that a task of theirs has started, or whose job does not.
    first_start as materialized (
      select in_job, in_stage, count(*) as tasks
        from moved
        join pawl.stage s on s.id = ${viaIndex('in_stage')}
        join pawl.job j on j.id = ${viaIndex('in_job')}
       where not (s.begun and j.begun)
       group by in_job, in_stage
    ),
    -- Only these get a row of counts.
    tally_entry as (
      insert into pawl.tally (job_id, stage_id, begun) select in_job, in_stage, tasks from first_start
    )
    select locked.id, first_start.in_stage as begun
      from locked left join moved on moved_id = locked.id left join first_start using (in_stage)`
  const begun = new Set(rows.flatMap(row => row.begun ?? []))
  return { started: new Set(rows.map(({ id }) => id)), stageIds: [...begun] }
}

export interface LeaseRenewal extends LeaseRef {
  readonly progress?: unknown
  readonly checkpoint?: unknown
}

/**
 * Renews leases and stores progress and checkpoints. Rows that another transaction has locked are skipped: that
 * transaction moves or renews the task, and the next heartbeat follows soon. So a heartbeat never waits, and is never
 * part of a deadlock. Returns the tasks that are no longer held under their epoch, and those that were skipped.
 */
export async function renewLeases(
  sql: Sql,
  items: readonly LeaseRenewal[],
): Promise<{ lost: Set<string>; passedOver: Set<string> }> {
  const rows = await sql<{ id: string; renewed: boolean; held: boolean }>`
    with
    -- One row per heartbeat.
    report as materialized (
      select * from unnest(${items.map(item => item.id)}::uuid[], ${items.map(item => item.epoch)}::int[],
                           ${items.map(item => json(item.progress))}::json[],
                           ${items.map(item => json(item.checkpoint))}::json[])
        as s (id, epoch, progress, checkpoint)
    ),
    -- The tasks that are held under their epoch. Rows that others have locked are skipped.
    locked as materialized (
      select t.id, t.type, report.progress, report.checkpoint, ${literal(leaseTermsOfTask)} as terms
        from report join pawl.task t on t.id = ${viaIndex('report.id')} and t.epoch = report.epoch and t.state in (${held})
       order by t.id
         for update of t skip locked
    ),
    -- Their leases begin anew, for the time of the terms under which they were claimed.
    renewed as (
      update pawl.task t
         set lease_until = pawl.clock() + make_interval(secs => pawl.lease_seconds(${settingsUnderLease('locked.terms')}, tt.settings)),
             progress    = coalesce(locked.progress, t.progress),
             checkpoint  = coalesce(locked.checkpoint, t.checkpoint)
        from locked left join pawl.task_type tt on tt.type = locked.type
       where t.id = ${viaIndex('locked.id')}
      returning t.id, t.epoch, locked.progress
    ),
    -- The heartbeats are recorded.
    pulse_entry as (
      insert into pawl.pulse (entity_id, epoch, ts, type, payload)
      select id, epoch, pawl.clock(), case when progress is null then 'task.heartbeat' else 'task.progress' end,
             progress::jsonb
        from renewed
    )
    select report.id, renewed.id is not null as renewed, t.id is not null as held
      from report
      left join renewed on renewed.id = report.id
      left join pawl.task t on t.id = ${viaIndex('report.id')} and t.epoch = report.epoch and t.state in (${held})`
  return {
    lost: new Set(rows.flatMap(row => (row.held ? [] : [row.id]))),
    passedOver: new Set(rows.flatMap(row => (row.held && !row.renewed ? [row.id] : []))),
  }
}

/**
 * The event that ended each (task, epoch). It distinguishes a settle that is sent again from that of a zombie worker.
 */
export function findEndEvents(
  sql: Sql,
  items: readonly LeaseRef[],
): Promise<{ id: string; epoch: number; actor: string; cause: string; stageId: string | null }[]> {
  return sql`
    select e.entity_id as id, e.epoch, e.actor, e.cause, t.stage_id
      from unnest(${items.map(item => item.id)}::uuid[], ${items.map(item => item.epoch)}::int[]) as s (id, epoch)
      join pawl.task t on t.id = ${viaIndex('s.id')}
     cross join generate_series(1, t.seq) as n
     cross join lateral pawl.event_of(t.id, t.history, n) as e
     where e.epoch = s.epoch and e.from_state in (${held}) and e.to_state not in (${held})`
}

/** The soft cancels that a worker must be told about. */
export function findSoftCancels(
  sql: Sql,
  worker: string,
): Promise<{ id: string; epoch: number; graceSeconds: number }[]> {
  return sql`
    select t.id, t.epoch, greatest(0, extract(epoch from c.hard_at - pawl.clock()))::float8 as grace_seconds
      from pawl.cancel c join pawl.task t on t.id = c.task_id and t.epoch = c.epoch and t.state in (${held})
     where c.owner = ${worker}`
}
