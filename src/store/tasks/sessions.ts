import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { maxPageBytes, type NamePaging, type PageRow } from '../driver/paging.ts'
import { heldTask, viaIndex, withTableScans } from '../driver/plans.ts'
import { inList, type Sql } from '../driver/sql.ts'
import {
  aggregatedColumns,
  type Claimed,
  type ClaimedColumns,
  claimedTaskColumns,
  columnsAsJson,
  leaseTermsOfTask,
  tasksFromColumns,
} from './claimed.ts'
import type { LeaseRef } from './settle.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

/** Creates the session's row. Claims of the session lock it and are remembered in it. */
export async function openSession(
  sql: Sql,
  session: string,
  { worker, queues, slots }: { worker: string; queues: readonly string[]; slots: number | null },
): Promise<void> {
  await sql`
    insert into pawl.session (id, worker, queues, slots, started_at, seen_at)
    values (${session}::uuid, ${worker}, ${queues}::text[], ${slots}::int, pawl.clock(), pawl.clock())
        on conflict (id) do update
       set seen_at = excluded.seen_at, worker = excluded.worker, queues = excluded.queues, slots = excluded.slots`
}

/** Records that a worker is alive. A busy worker claims nothing and only sends heartbeats. */
export async function touchSession(sql: Sql, session: string): Promise<void> {
  await sql`update pawl.session set seen_at = pawl.clock() where id = ${session}::uuid`
}

/**
 * Tasks that are still held from an earlier sync with this id or, without an id, from the last claim of the session: a
 * lost response is sent again. The lease lengths are what is left of them, so the worker does not overestimate them.
 */
export async function readLastClaim(sql: Sql, session: string, syncId: string | null = null): Promise<Claimed[]> {
  const leases = await sql<LeaseRef>`
    select won.id, won.epoch
      from pawl.session
      join pawl.claim on claim.id = session.claim_id
     cross join unnest(claim.ids, claim.epochs) as won (id, epoch)
     where session.id = ${session}::uuid and (${syncId}::text is null or session.sync_id = ${syncId}::text)`
  return leases.length === 0 ? [] : readHeldTasks(sql, leases)
}

export interface LastClaim {
  readonly worker: string
  /** Null: the session has not claimed anything yet. */
  readonly claimId: string | null
  /** The leases of that claim that are still held. */
  readonly holding: readonly LeaseRef[] | null
}

/** The last claim of a session; undefined: it has no row. */
export async function findLastClaim(sql: Sql, session: string): Promise<LastClaim | undefined> {
  const [last] = await sql<LastClaim>`
    select s.worker, s.claim_id::text as claim_id,
           (select json_agg(json_build_object('id', t.id, 'epoch', t.epoch))
              from pawl.claim c
             cross join unnest(c.ids, c.epochs) as won (id, epoch)
              join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
             where c.id = s.claim_id) as holding
      from pawl.session s where s.id = ${session}::uuid`
  return last
}

/**
 * Maximum estimated number of bytes in the long values of claims that are answered again. It is beyond any single claim,
 * but checkpoints may have grown since.
 */
export const maxRepeatedBytes = 16 * maxPageBytes

/**
 * The tasks of these leases that are still held, with what is left of each lease. If they have become too large for an
 * answer, the first of them.
 */
export async function readHeldTasks(sql: Sql, leases: readonly LeaseRef[]): Promise<Claimed[]> {
  const [won] = await sql<ClaimedColumns>`
    with mine as (
      select ${claimedTaskColumns(leaseTermsOfTask, 'tt.settings')},
             sum(pawl.estimated_bytes(t.payload) + pawl.estimated_bytes(t.checkpoint))
               over (rows between unbounded preceding and 1 preceding) as bytes_before
        from unnest(${leases.map(({ id }) => id)}::uuid[], ${leases.map(({ epoch }) => epoch)}::int[]) as won (id, epoch)
        join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
        left join pawl.task_type tt on tt.type = t.type
    ), won as (
      select ${aggregatedColumns} from mine where coalesce(bytes_before, 0) < ${maxRepeatedBytes}::int
    )
    select ${columnsAsJson} from won`
  return tasksFromColumns(won!)
}

/**
 * The leases of a worker with this name. `node/pod` also matches its pod alone, unless a worker has exactly that name.
 * They are found through the claims, so the cost depends on the number of all held tasks.
 */
export async function findLeasesOfWorker(sql: Sql, worker: string): Promise<(LeaseRef & { owner: string })[]> {
  const rows = await sql<LeaseRef & { owner: string }>`
    select t.id, t.epoch, t.owner
      from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
      join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
     where t.owner = ${worker} or (strpos(t.owner, '/') > 0 and substr(t.owner, strpos(t.owner, '/') + 1) = ${worker})`
  const exact = rows.filter(({ owner }) => owner === worker)
  return exact.length > 0 ? exact : rows
}

export interface WorkerRow {
  /**
   * Null, like the fields that depend on it, for a worker that claims without a session and is known only by its
   * leases.
   */
  readonly session: string | null
  readonly worker: string
  readonly queues: string[]
  readonly startedAt: Date | null
  readonly seenAt: Date | null
  /** How many tasks it runs at once; null: not reported. */
  readonly slots: number | null
  /** Number of tasks that are held under its name. */
  readonly leases: number
  readonly leasesByQueue: Record<string, number>
}

/** Several workers may share a name, so a page begins after a name and a session. */
export interface WorkerPaging extends NamePaging {
  /** Empty: a worker without a session. */
  readonly afterSession: string
}

/**
 * A page of worker processes that were seen recently or hold a task, by name. They may list many queues, so a page is
 * also bounded by its bytes.
 */
export function listWorkers(
  sql: Sql,
  withinSeconds: number,
  { after, afterSession, limit }: WorkerPaging,
): Promise<PageRow<WorkerRow>[]> {
  return withTableScans(
    sql,
    tx => tx<PageRow<WorkerRow>>`
    with
    -- Sessions that were seen recently.
    seen as (
      select * from pawl.session where seen_at > pawl.clock() - make_interval(secs => ${withinSeconds}::float8)
    ),
    -- Held tasks by owner and queue.
    held as (
      select t.owner, t.queue, count(*)::int as leases
        from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
       cross join lateral ${heldTask} as t
       group by t.owner, t.queue
    ),
    -- Held tasks by owner.
    holding as (
      select owner, sum(leases)::int as leases, json_object_agg(queue, leases order by queue) as by_queue
        from held group by owner
    ),
    -- Sessions with their held tasks, and owners without a session.
    known as (
      select seen.id as session, coalesce(seen.worker, holding.owner) collate "C" as worker,
             coalesce(seen.id::text, '') collate "C" as session_text, coalesce(seen.queues, '{}') as queues,
             seen.started_at, seen.seen_at, seen.slots, coalesce(holding.leases, 0) as leases,
             coalesce(holding.by_queue, '{}') as leases_by_queue
        from seen full join holding on holding.owner = seen.worker
    ),
    -- One row more than the page has, to know whether others follow.
    page as (
      select *, octet_length(queues::text) + octet_length(leases_by_queue::text) as bytes
        from known where (worker, session_text) > (${after}, ${afterSession})
       order by worker, session_text limit ${limit}::int + 1
    ),
    -- The page with the bytes up to each row.
    measured as (
      select *, row_number() over by_name as place, sum(bytes) over by_name as bytes_so_far, count(*) over () as found
        from page window by_name as (order by worker, session_text)
    )
    select session, worker, queues, started_at, seen_at, slots, leases, leases_by_queue, place < found as more
      from measured
     where place <= ${limit}::int and (place = 1 or bytes_so_far <= ${maxPageBytes}::int)
     order by place`,
  )
}
