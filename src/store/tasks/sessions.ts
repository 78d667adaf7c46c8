import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { maxPageBytes, type NamePaging, type PageRow } from '../driver/name-paging.ts'
import { heldTask, viaIndex, withTableScans } from '../driver/plans.ts'
import { inList, type Sql } from '../driver/sql.ts'
import { type Claimed, tasksFromColumns, aggregatedColumns, sent, leaseTermsOfTask, type ClaimedColumns, claimedTaskColumns } from './claimed.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

/** Makes the session's row, which its claims lock and are remembered in. */
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

/** A worker that is busy and claims nothing is heard of by its beats. */
export async function touchSession(sql: Sql, session: string): Promise<void> {
  await sql`update pawl.session set seen_at = pawl.clock() where id = ${session}::uuid`
}

/**
 * What an earlier sync of this id, or without one the last claim of the session, won and still holds: the answer that
 * was lost, given again. Lease lengths are what is left of them, so that the worker does not believe in more than it has.
 */
export async function readLastClaim(sql: Sql, session: string, syncId: string | null = null): Promise<Claimed[]> {
  const [won] = await sql<ClaimedColumns>`
    with mine as (
      select ${claimedTaskColumns(leaseTermsOfTask, 'tt.settings')}
        from pawl.session
        join pawl.claim on claim.id = session.claim_id
       cross join unnest(claim.ids, claim.epochs) as won (id, epoch)
        join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
        left join pawl.task_type tt on tt.type = t.type
       where session.id = ${session}::uuid and (${syncId}::text is null or session.sync_id = ${syncId}::text)
    ), won as (
      select ${aggregatedColumns} from mine
    )
    select ${sent} from won`
  return tasksFromColumns(won!)
}

/** Of these leases those that are still held, as they are now: what is left of them is shorter than it was. */
export async function readHeldTasks(
  sql: Sql,
  leases: readonly { readonly id: string; readonly epoch: number }[],
): Promise<Claimed[]> {
  const [won] = await sql<ClaimedColumns>`
    with mine as (
      select ${claimedTaskColumns(leaseTermsOfTask, 'tt.settings')}
        from unnest(${leases.map(({ id }) => id)}::uuid[], ${leases.map(({ epoch }) => epoch)}::int[]) as won (id, epoch)
        join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
        left join pawl.task_type tt on tt.type = t.type
    ), won as (
      select ${aggregatedColumns} from mine
    )
    select ${sent} from won`
  return tasksFromColumns(won!)
}

/**
 * What a worker of this name holds. `node/pod` is also known by its pod alone, unless another worker is called exactly so.
 * It is found through the claims, and so costs what is held by anybody.
 */
export async function leasesOf(sql: Sql, worker: string): Promise<{ id: string; epoch: number; owner: string }[]> {
  const rows = await sql<{ id: string; epoch: number; owner: string }>`
    select t.id, t.epoch, t.owner
      from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
      join pawl.task t on t.id = ${viaIndex('won.id')} and t.epoch = won.epoch and t.state in (${held})
     where t.owner = ${worker} or (strpos(t.owner, '/') > 0 and substr(t.owner, strpos(t.owner, '/') + 1) = ${worker})`
  const exact = rows.filter(({ owner }) => owner === worker)
  return exact.length > 0 ? exact : rows
}

export interface WorkerRow {
  /** Null, like what follows from it: one that claims without a session, and is known by what it holds. */
  readonly session: string | null
  readonly worker: string
  readonly queues: string[]
  readonly startedAt: Date | null
  readonly seenAt: Date | null
  /** How many tasks it does at once; null: it does not say. */
  readonly slots: number | null
  /** Tasks that are held under its name. */
  readonly leases: number
  readonly leasesByQueue: Record<string, number>
}

/** A worker's name is not its own, so a page begins behind a name and a session. */
export interface WorkerPaging extends NamePaging {
  /** Empty: a worker without a session. */
  readonly afterSession: string
}

/**
 * A page of worker processes that were heard of lately, and of whoever holds a task, by name. They may name many queues, so
 * a page is also bounded by its bytes.
 */
export function listWorkers(
  sql: Sql,
  withinSeconds: number,
  { after, afterSession, limit }: WorkerPaging,
): Promise<PageRow<WorkerRow>[]> {
  return withTableScans(
    sql,
    tx => tx<PageRow<WorkerRow>>`
    with seen as (
      select * from pawl.session where seen_at > pawl.clock() - make_interval(secs => ${withinSeconds}::float8)
    ), held as (
      select t.owner, t.queue, count(*)::int as leases
        from pawl.claim c cross join unnest(c.ids, c.epochs) as won (id, epoch)
       cross join lateral ${heldTask} as t
       group by t.owner, t.queue
    ), holding as (
      select owner, sum(leases)::int as leases, json_object_agg(queue, leases order by queue) as by_queue
        from held group by owner
    ), known as (
      select seen.id as session, coalesce(seen.worker, holding.owner) collate "C" as worker,
             coalesce(seen.id::text, '') collate "C" as session_text, coalesce(seen.queues, '{}') as queues,
             seen.started_at, seen.seen_at, seen.slots, coalesce(holding.leases, 0) as leases,
             coalesce(holding.by_queue, '{}') as leases_by_queue
        from seen full join holding on holding.owner = seen.worker
    ), page as (
      select *, octet_length(queues::text) + octet_length(leases_by_queue::text) as bytes
        from known where (worker, session_text) > (${after}, ${afterSession})
       order by worker, session_text limit ${limit}::int + 1
    ), measured as (
      select *, row_number() over by_name as place, sum(bytes) over by_name as bytes_so_far, count(*) over () as found
        from page window by_name as (order by worker, session_text)
    )
    select session, worker, queues, started_at, seen_at, slots, leases, leases_by_queue, place < found as more
      from measured
     where place <= ${limit}::int and (place = 1 or bytes_so_far <= ${maxPageBytes}::int)
     order by place`,
  )
}
