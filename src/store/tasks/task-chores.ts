/**
 * Queries of the babysitter's chores. Each finds candidates without locking them. The chore then locks them, checks
 * them again and skips those that are locked by others, so any number of babysitters may run at once.
 */
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, type Sql } from '../driver/sql.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

/**
 * Held tasks whose lease has expired or whose attempt has exceeded its timeout, found through claims that are due for a
 * check. A claim without held tasks is deleted; any other is due again when the next of its leases may end. Claims that
 * another babysitter is checking are skipped.
 */
export async function findExpiredLeases(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    with
    -- Claims that are due for a check.
    due as materialized (
      select id, ids, epochs from pawl.claim
       where look_at <= pawl.clock()
       order by look_at limit ${limit}::int
         for update skip locked
    ),
    -- Their tasks that are still held, with the end of each lease and attempt.
    held_task as materialized (
      select due.id as claim_id, t.id, t.epoch, t.lease_until,
             coalesce(t.started_at, pawl.clock())
               + make_interval(secs => pawl.setting(t.settings, tt.settings, 'timeoutSeconds')) as timeout_at
        from due
       cross join unnest(due.ids, due.epochs) as won (id, epoch)
        join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
        left join pawl.task_type tt on tt.type = t.type
    ),
    -- Claims without held tasks are deleted.
    gone as (
      delete from pawl.claim using due
       where claim.id = due.id and not exists (select from held_task where claim_id = due.id)
    ),
    -- The others keep only the held tasks, and are due again when the next of these may expire.
    claim_update as (
      update pawl.claim
         set ids = h.ids, epochs = h.epochs, look_at = greatest(h.look_at, pawl.clock() + interval '1 second')
        from (select claim_id, array_agg(id) as ids, array_agg(epoch) as epochs,
                     min(least(lease_until, timeout_at)) as look_at
                from held_task group by claim_id) as h
       where claim.id = h.claim_id
    )
    select id from held_task where lease_until <= pawl.clock() or timeout_at <= pawl.clock()`
  return rows.map(({ id }) => id)
}

/**
 * Tasks whose time to live has passed, among up to `limit` entries of `expiry`. Entries of tasks that have ended or got
 * a later time are deleted.
 */
export async function findExpiredTasks(sql: Sql, limit: number): Promise<{ ids: string[]; looked: number }> {
  const [row] = await sql<{ ids: string[]; looked: number }>`
    with passed as materialized (
      select at, task_id from pawl.expiry where at <= pawl.clock() order by at limit ${limit}::int
         for update skip locked
    ), stale as (
      delete from pawl.expiry e using passed p
       where e.at = p.at and e.task_id = p.task_id
         and not exists (select from pawl.task t
                          where t.id = p.task_id and t.expire_at <= pawl.clock() and t.ended_at is null)
    )
    select (select count(*) from passed) as looked, array(
             select t.id from passed p join pawl.task t on t.id = p.task_id
              where t.expire_at <= pawl.clock() and t.ended_at is null) as ids`
  return row!
}

/** Held tasks whose soft cancel has exceeded its grace period. Cancels of tasks that are no longer held are deleted. */
export async function findExpiredCancels(sql: Sql, limit: number): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    with stale as (
      delete from pawl.cancel c
       where ctid = any(array(
               select c.ctid from pawl.cancel c left join pawl.task t
                   on t.id = c.task_id and t.epoch = c.epoch and t.state in (${held})
                where t.id is null limit ${limit}::int for update of c skip locked))
    )
    select c.task_id as id from pawl.cancel c where c.hard_at <= pawl.clock() order by c.hard_at limit ${limit}::int`
  return rows.map(({ id }) => id)
}

/**
 * Ended tasks past their retention, found by scanning the table in the order of ids, one section per call. `next` is
 * where the next section begins; null: the end was reached.
 */
export async function findTasksPastRetention(
  sql: Sql,
  after: string,
  stretch: number,
): Promise<{ ids: string[]; next: string | null }> {
  const [row] = await sql<{ ids: string[] | null; seen: number; next: string | null }>`
    with stretch as materialized (
      select t.id, t.ended_at is not null
                   and pawl.kept_until(t.state, t.keep_until, t.ended_at, t.settings, tt.settings) <= pawl.clock() as old
        from pawl.task t left join pawl.task_type tt using (type)
       where t.id > ${after}::uuid and t.job_id is null
       order by t.id limit ${stretch}::int
    )
    select array_agg(id) filter (where old) as ids, count(*) as seen, max(id::text)::uuid as next from stretch`
  return { ids: row!.ids ?? [], next: row!.seen < stretch ? null : row!.next }
}

/**
 * Deletes tasks, and with them their events, if they are still ended. Tasks that are locked by others are left for
 * later.
 */
export async function deleteTasks(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const gone = await sql<{ id: string }>`
    with locked as materialized (
      select id from pawl.task t where id = any(${ids}::uuid[]) and ended_at is not null
         and not (t.files and exists (select from pawl.artifact where task_id = t.id and ended_at is null))
       order by id for update skip locked
    )
    delete from pawl.task t using locked where t.id = ${viaIndex('locked.id')} returning t.id`
  const removed = gone.map(({ id }) => id)
  await deleteTaskData(sql, removed)
  return removed
}

/** Deletes the data of deleted tasks from other tables, in the same transaction. Each index is read once for all tasks. */
export async function deleteTaskData(sql: Sql, taskIds: readonly string[]): Promise<void> {
  if (taskIds.length === 0) return
  const ids = list(taskIds)
  await sql`
    with ids_freed as (
      update pawl.chosen_id set freed_at = pawl.clock() where id = any(${ids}::uuid[])
    ), trouble_removed as (
      delete from pawl.trouble where task_id = any(${ids}::uuid[])
    ), logs_removed as (
      delete from pawl.log where task_id = any(${ids}::uuid[])
    ), artifacts_removed as (
      delete from pawl.artifact where task_id = any(${ids}::uuid[])
    ), inputs_removed as (
      delete from pawl.input where task_id = any(${ids}::uuid[])
    )
    delete from pawl.datum where task_id = any(${ids}::uuid[])`
}

/**
 * Deletes records that are only useful for a while, in batches: heartbeats, idempotency keys, sessions, the content of
 * the last change.
 */
export async function deleteExpiredRecords(sql: Sql): Promise<{ pulses: number; keys: number; sessions: number }> {
  const [row] = await sql<{ pulses: number; keys: number; sessions: number }>`
    with pulses as (
      delete from pawl.pulse where ctid = any(array(
        select ctid from pawl.pulse where ts < pawl.clock() - interval '1 day' limit 5000)) returning 1
    ), keys as (
      delete from pawl.idempotency where created_at < pawl.clock() - interval '24 hours' returning 1
    ), sessions as (
      -- A worker with leases may ask for them again, however long it has been busy.
      delete from pawl.session s where seen_at < pawl.clock() - interval '1 day'
         and not exists (select from pawl.claim where id = s.claim_id) returning 1
    ), runs as (
      delete from pawl.run where stopped_at < pawl.clock() - interval '1 day'
    ), emptied as (
      -- The newest change is never deleted, because the cursors of up-to-date readers name it.
      update pawl.change set ids = '{}', seqs = '{}'
        from (select tx, n, ids from pawl.change order by tx desc, n desc limit 1) as newest
       where change.tx = newest.tx and change.n = newest.n and change.at < pawl.clock() - interval '1 day'
         and cardinality(change.ids) > 0
         and not exists (select from pawl.task where id = any(newest.ids))
         and not exists (select from pawl.stage where id = any(newest.ids))
         and not exists (select from pawl.job where id = any(newest.ids))
         and not exists (select from pawl.artifact where id = any(newest.ids))
    )
    select (select count(*) from pulses) as pulses, (select count(*) from keys) as keys,
           (select count(*) from sessions) as sessions`
  return row!
}
