/**
 * Task changes off the hot path. They all work the same way: lock the rows, let the kernel decide on each, write the
 * decisions. The rows stay locked all the time, so the decisions apply to exactly the rows that were read.
 */
import type { TaskFacts, TaskPatch, TaskStep, Verdict } from '../../kernel/decide.ts'
import { mayMove, statesOf } from '../../kernel/lifecycle.ts'
import { resolveSettings, type TaskSettings } from '../../kernel/settings.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, json, list, literal, type Sql } from '../driver/sql.ts'
import { decideFiles } from '../files/artifacts.ts'
import { appendTally } from '../jobs/jobs.ts'
import { longTaskBytes } from './enqueue.ts'

const heldStates = inList(statesOf(taskLifecycle, 'held'))
const claimable = inList(taskLifecycle.moves.claim.from)
const finalStates = inList(statesOf(taskLifecycle, 'final'))
const badStates = inList(statesOf(taskLifecycle).filter(state => taskLifecycle.states[state].outcome === 'bad'))

export interface LockedTask extends TaskFacts {
  readonly id: string
  readonly type: string
  readonly queue: string
  readonly seq: number
  readonly epoch: number
  readonly jobId: string | null
  readonly stageId: string | null
  readonly partial: boolean
  /** It has registered files. */
  readonly files: boolean
  readonly dedupeKey: string | null
  readonly payload: unknown
  readonly metadata: Record<string, unknown> | null
  /** Seconds since the lease expired; null: it has not. */
  readonly lapsedForSeconds: number | null
  /** Its time to live has passed. */
  readonly overdue: boolean
  readonly leaseUntil: Date | null
  readonly ranSeconds: number | null
  readonly cancelledForSeconds: number | null
  /** The estimated size of its events. */
  readonly historyBytes: number
}

interface LockedRow extends Omit<LockedTask, 'settings' | 'cancelling'> {
  readonly settings: Partial<TaskSettings> | null
  readonly typeSettings: Partial<TaskSettings> | null
}

/** The number of uncharged losses at the end of the history of an assigned task, with only claims between them. */
const lostBeforeStart = literal(`(
  with moves as (
    select n, state, state = 'retrying' and cause = 'lease_lost' and payload->'charged' = 'false' as is_lost
      from unnest(t.history) with ordinality as step (ts, epoch, state, type, actor, cause, payload, n)
     where type is null
  )
  select count(*)::int from moves
   where is_lost and n > coalesce((select max(n) from moves where state <> 'assigned' and is_lost is not true), 0))`)

/** `wait`: locks all named rows and waits for each. `pass over`, for chores: skips rows that are locked. */
export type LockMode = 'wait' | 'pass over'

export async function lockTasks(sql: Sql, ids: readonly string[], mode: LockMode = 'wait'): Promise<LockedTask[]> {
  const rows = await sql<LockedRow>`
    select t.id, t.type, l.queue, t.state, t.seq, t.epoch, t.failures, t.losses, t.job_id, t.stage_id, t.partial,
           t.files, t.dedupe_key, t.lease_until, coalesce(s.kind = 'undo', false) as undoes,
           t.payload, t.metadata, t.settings, tt.settings as type_settings,
           case when t.state = 'assigned' then ${lostBeforeStart} else 0 end as lost_before_start,
           case when t.lease_until <= pawl.clock() then date_part('epoch', pawl.clock() - t.lease_until) end
             as lapsed_for_seconds,
           coalesce(t.expire_at <= pawl.clock(), false) as overdue,
           extract(epoch from pawl.clock() - t.started_at)::float8 as ran_seconds,
           extract(epoch from pawl.clock() - t.cancel_at)::float8 as cancelled_for_seconds,
           pawl.estimated_bytes(t.history)::float8 as history_bytes
      from pawl.task t
      join pawl.lane l on l.id = t.lane_id
      left join pawl.task_type tt on tt.type = t.type
      left join pawl.stage s on s.id = t.stage_id
     where t.id = any(${ids}::uuid[])
     order by t.id
       for update of t ${literal(mode === 'wait' ? '' : 'skip locked')}`
  return rows.map(({ settings, typeSettings, ...row }) => ({
    ...row,
    cancelling: row.cancelledForSeconds !== null && taskLifecycle.states[row.state].kind === 'held',
    settings: resolveSettings(typeSettings, settings),
  }))
}

/** Returns the ids of the tasks that another transaction has locked. */
export async function findLockedTasks(sql: Sql, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const free = await sql<{ id: string }>`
    select id from pawl.task where id = any(${ids}::uuid[]) order by id for update skip locked`
  const there = await sql<{ id: string }>`select id from pawl.task where id = any(${ids}::uuid[])`
  const isFree = new Set(free.map(({ id }) => id))
  return new Set(there.flatMap(({ id }) => (isFree.has(id) ? [] : [id])))
}

export interface TaskUpdate {
  readonly task: LockedTask
  readonly steps: readonly TaskStep[]
  /** `edit`: the task's content changes but not its state, so nothing is counted. */
  readonly patch: TaskPatch & { payload?: unknown; metadata?: unknown; dedupeSlot?: string; edit?: true }
  /** The actor, if it is not the same for all updates; null: the worker that holds the lease. */
  readonly actor?: string | null
}

/** Locks tasks, lets the kernel decide on each, and writes the decisions. A task whose move is refused stays as it is. */
export async function decideTasks(
  sql: Sql,
  ids: readonly string[],
  actor: string,
  decide: (task: LockedTask) => Verdict | undefined,
): Promise<void> {
  const updates = (await lockTasks(sql, ids)).flatMap((task): TaskUpdate[] => {
    const verdict = decide(task)
    return verdict?.ok ? [{ task, steps: verdict.steps, patch: verdict.patch }] : []
  })
  await writeTaskUpdates(sql, updates, actor)
}

/** The columns of a task `t` that a row `r` of `update_row` changes: by its end state, its steps and its patch `p`. */
const movedColumns = literal(`
             state       = r.to_state,
             seq         = t.seq + jsonb_array_length(r.steps),
             round       = t.round + case when r.p ? 'opensRound' then 1 else 0 end,
             failures    = coalesce((r.p->>'failures')::int, t.failures),
             losses      = coalesce((r.p->>'losses')::int, t.losses),
             careful     = coalesce((r.p->>'careful')::boolean, t.careful),
             run_at      = coalesce(pawl.clock() + make_interval(secs => (r.p->>'runInSeconds')::float8), t.run_at),
             started_at  = case when jsonb_array_length(r.steps) = 2 then ${nextTime('t').literal}
                                else t.started_at end,
             lease_until = case when r.to_state in (${heldStates.literal}) then t.lease_until end,
             ended_at    = case when r.to_state in (${finalStates.literal})
                                then coalesce(t.ended_at, ${nextTime('t').literal}) end,
             cancel_at   = case when r.p ? 'cancelRequested' then pawl.clock()
                                when r.p ? 'opensRound' then null else t.cancel_at end,
             expire_at   = case when r.p ? 'opensRound'
                                then pawl.clock() + make_interval(secs => (r.p->>'expireInSeconds')::float8)
                                else t.expire_at end,
             output      = case when r.p ? 'output' then nullif(r.p->'output', 'null')::json else t.output end,
             partial     = coalesce((r.p->>'partial')::boolean, t.partial),
             error       = case when r.p ? 'error' then nullif(r.p->'error', 'null') else t.error end,
             payload     = coalesce((r.p->'payload')::json, t.payload),
             metadata    = case when r.p ? 'metadata' then r.p->'metadata' else t.metadata end,
             dedupe_slot = coalesce(r.p->>'dedupeSlot', t.dedupe_slot),
             history     = t.history || array(
               select row(${nextTime('t').literal}, t.epoch, s->>'to', s->>'type',
                          r.actor, s->>'cause', nullif(s->'payload', '{}'))::pawl.step
                 from jsonb_array_elements(r.steps) with ordinality as e (s, n) order by n)`)

/**
 * Writes transitions, their events, and the rows that follow from them in other tables: the queue, pending cancels,
 * troubles. An update without steps changes nothing.
 */
export async function writeTaskUpdates(sql: Sql, updates: readonly TaskUpdate[], actor: string): Promise<void> {
  const moving = updates.filter(update => update.steps.length > 0)
  if (moving.length === 0) return
  const leaving = moving.filter(
    ({ task, steps }) => mayMove(taskLifecycle, task.state, 'claim') && steps.at(-1)!.to !== task.state,
  )
  if (leaving.length > 0)
    await leaveQueue(
      sql,
      leaving.map(({ task }) => task.id),
    )
  const written = await sql`
    with
    -- One row per task: its steps, the state that they end in, and the patch as JSON (p).
    update_row as materialized (
      select * from unnest(${moving.map(({ task }) => task.id)}::uuid[], ${moving.map(({ task }) => task.seq)}::int[],
                           ${moving.map(({ steps }) => json(steps))}::jsonb[], ${moving.map(endState)}::text[],
                           ${moving.map(({ task, patch }) => json(patchJson(task, patch)))}::jsonb[],
                           ${moving.map(update => (update.actor === undefined ? actor : update.actor))}::text[])
        as r (id, seq, steps, to_state, p, actor)
    ),
    -- The tasks move. Each is locked and still has the seq that was decided on.
    moved as (
      update pawl.task t
         set ${movedColumns}
        from update_row r
       where t.id = ${viaIndex('r.id')} and t.seq = r.seq
      returning t.id, t.lane_id, t.run_at, t.type, t.careful, t.epoch, t.seq, t.state, t.owner, t.expire_at, t.failures,
                t.losses, t.correlation_id, t.job_id, t.stage_id, t.error, t.ended_at, t.history, r.p, r.steps,
                pawl.estimated_bytes(t.payload) + pawl.estimated_bytes(t.checkpoint) as bytes
    ),
    -- Tasks that may be claimed again enter the queue.
    due_entry as (
      insert into pawl.due (lane_id, run_at, id, ids, careful, type, bytes)
      select lane_id, run_at, id, array[id], careful, type, case when bytes > ${longTaskBytes} then bytes end
        from moved where state in (${claimable}) and p ? 'runInSeconds'
    ),
    -- Tasks of a new round get a new time to live.
    expiry_entry as (
      insert into pawl.expiry (at, task_id)
      select expire_at, id from moved where p ? 'opensRound' and expire_at is not null
      on conflict do nothing
    ),
    -- Soft cancels wait for the worker, until the grace period is over.
    cancel_entry as (
      insert into pawl.cancel (task_id, epoch, owner, hard_at)
      select id, epoch, owner, pawl.clock() + make_interval(secs => (p->>'graceSeconds')::float8)
        from moved where p ? 'cancelRequested'
    ),
    -- Revived tasks leave the list of troubles.
    trouble_removed as (
      delete from pawl.trouble using moved where task_id = moved.id and moved.p ? 'opensRound'
    ),
    -- Tasks that ended badly enter it, dead letters with their evidence.
    trouble_entry as (
      insert into pawl.trouble (task_id, state, reason_code, evidence, type, lane_id, job_id, stage_id, gist, ended_at)
      select id, state, p->'deadLetter'->>'reasonCode', p->'deadLetter' || jsonb_build_object(
               'lastError', p->'error', 'attempts', pawl.tries(epoch, history), 'lastOwner', owner,
               'lastLeaseExpiresAt', p->'leaseUntil', 'correlationId', correlation_id),
             type, lane_id, job_id, stage_id, pawl.gist(error->>'message'), ended_at
        from moved where state in (${badStates}) and not p ? 'edit'
    ),
    -- Adds every step to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', array_agg(id), array_agg(seq - jsonb_array_length(steps) + n)
        from moved cross join generate_series(1, jsonb_array_length(steps)) as n having count(*) > 0
    )
    select id from moved`
  if (written.length !== moving.length) throw new Error('a locked task moved under its lock')
  await appendTally(
    sql,
    moving.filter(({ patch }) => patch.edit !== true),
  )
  await decideFilesOfEndedAttempts(sql, moving)
}

/** Decides on the files of attempts that end. */
async function decideFilesOfEndedAttempts(sql: Sql, updates: readonly TaskUpdate[]): Promise<void> {
  const isHeld = (state: TaskState) => taskLifecycle.states[state].kind === 'held'
  const ended = updates.filter(update => update.task.files && isHeld(update.task.state) && !isHeld(endState(update)))
  const [won, lost] = [true, false].map(wins =>
    ended.filter(update => (endState(update) === 'succeeded') === wins).map(({ task }) => task),
  )
  await decideFiles(sql, won!, lost!)
}

/** The ids that remain in a row `d` of `due`, in their order. Compared with a set that is hashed, since stages are large. */
const others = literal('array(select id from unnest(d.ids) as id where id not in (select id from leaving))')

/**
 * Removes tasks from the queue that end without having been claimed. A row that another transaction has locked, or has
 * just changed, is left to the next claim, which finds that the task has ended and drops it. Waiting for it could
 * deadlock, because a claim locks the row of `due` before the task.
 */
async function leaveQueue(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql`
    with
    leaving as materialized (select unnest(${list(ids)}::uuid[]) as id),
    -- Where they are in the queue. Those of a stage are at the same place, in many rows. A row is found by the lowest of
    -- its ids, so later rows hold none of them.
    place as materialized (
      select t.lane_id, t.run_at, (array_agg(t.id order by t.id desc))[1] as last_id
        from leaving join pawl.task t on t.id = ${viaIndex('leaving.id')} group by t.lane_id, t.run_at
    ),
    -- The rows that hold some of them. The other ids are those of the locked version.
    locked as materialized (
      select d.ctid as row_id, ${others} as others
        from place
        join pawl.due d on d.lane_id = place.lane_id and d.run_at = place.run_at and d.id <= place.last_id
       where cardinality(${others}) < cardinality(d.ids)
         for update of d skip locked
    ),
    emptied as (
      delete from pawl.due where ctid = any(array(select row_id from locked where others = '{}'))
    )
    update pawl.due set ids = others, id = others[1] from locked where due.ctid = row_id and others <> '{}'`
}

/**
 * Adds the values that follow from the patch: a new round gets a new time to live, a soft cancel its grace period, and
 * a dead letter remembers its last lease.
 */
function patchJson(task: LockedTask, patch: TaskUpdate['patch']) {
  const { opensRound, cancelRequested, ...rest } = patch
  return {
    ...rest,
    ...(opensRound === true && { opensRound, expireInSeconds: task.settings.expireInSeconds }),
    ...(cancelRequested === true && { cancelRequested, graceSeconds: task.settings.graceSeconds }),
    ...(rest.deadLetter && { leaseUntil: task.leaseUntil }),
  }
}

/** The stages whose counts these updates have changed. The caller must advance their jobs. */
export function stagesOfUpdates(updates: readonly TaskUpdate[]): string[] {
  return [
    ...new Set(
      updates.flatMap(({ task, steps }) => (task.stageId === null || steps.length === 0 ? [] : [task.stageId])),
    ),
  ]
}

function endState({ steps }: TaskUpdate): TaskState {
  return steps.at(-1)!.to
}
