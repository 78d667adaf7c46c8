import type { TaskSettings } from '../../kernel/settings.ts'
import type { TaskState } from '../../kernel/task.ts'
import { json, list, literal, type Sql } from '../driver/sql.ts'
import { kindName, ownDeadlines, plainLaneOf } from '../flow/task-lanes.ts'
import { throwIfStale } from './payload-schemas.ts'

/** A validated task. Times are relative to the database's clock, so the caller sends durations. */
export interface NewTask {
  readonly id: string
  readonly queue: string
  readonly type: string
  readonly priority: number
  /** JSON text. */
  readonly payload: string
  /** Version of the payload schema of its type that the payload was checked against. */
  readonly payloadVersion?: string
  readonly settings?: Partial<TaskSettings>
  readonly runAt?: Date
  readonly runInSeconds?: number
  readonly keepUntil?: Date
  readonly dedupeKey?: string
  readonly correlationId?: string
  readonly traceparent?: string
  readonly metadata?: Record<string, unknown>
}

export interface Enqueued {
  readonly id: string
  readonly state: TaskState
  /** True: this is an earlier task with the same dedupeKey, and nothing was queued. */
  readonly deduplicated: boolean
}

/** Inserts all tasks with their first events, or none. Throws `StaleSchemas` if a payload has to be checked again. */
export async function insertTasks(sql: Sql, tasks: readonly NewTask[], actor: string): Promise<Enqueued[]> {
  const plain = tasks.filter(task => task.dedupeKey === undefined)
  const keyed = tasks.filter(task => task.dedupeKey !== undefined)
  if (keyed.length === 0) {
    await insert(sql, plain, actor, '')
    return plain.map(({ id }) => ({ id, state: 'queued', deduplicated: false }))
  }
  return sql.begin(async tx => {
    if (plain.length > 0) await insert(tx, plain, actor, '')
    const found = await insertKeyed(tx, keyed, actor)
    return tasks.map(task => {
      const earlier = task.dedupeKey === undefined ? undefined : found.get(task.id)
      return earlier ?? { id: task.id, state: 'queued', deduplicated: false }
    })
  })
}

/**
 * Inserts tasks that have a dedupe key. Returns, for those whose key is taken, the task that holds it.
 *
 * The unique index on dedupe_slot decides: if two transactions queue the same key at once, the second waits for the
 * first to commit and then finds its task. A slot whose task ended more than dedupeSeconds ago is freed first.
 */
async function insertKeyed(sql: Sql, tasks: readonly NewTask[], actor: string): Promise<Map<string, Enqueued>> {
  const found = new Map<string, Enqueued>()
  let open = tasks
  for (let tries = 0; open.length > 0; tries++) {
    if (tries === 10) throw new Error('dedupe keys kept changing hands; nothing was queued')
    await freeSlots(sql, open.map(slotOf))
    const made = await insert(sql, open, actor, 'on conflict (dedupe_slot) where dedupe_slot is not null do nothing')
    const taken = open.filter(task => !made.has(task.id))
    const holders = await sql<{ id: string; state: TaskState; dedupeSlot: string }>`
      select id, state, dedupe_slot from pawl.task where dedupe_slot = any(${taken.map(slotOf)}::text[])`
    const bySlot = new Map(holders.map(({ id, state, dedupeSlot }) => [dedupeSlot, { id, state }]))
    // If a holder lost its key between the two statements, the next try takes it.
    open = taken.filter(task => {
      const holder = bySlot.get(slotOf(task))
      if (holder !== undefined) found.set(task.id, { ...holder, deduplicated: true })
      return holder === undefined
    })
  }
  return found
}

export function slotOf(task: { queue: string; dedupeKey?: string }): string {
  return `${task.queue.length}:${task.queue}:${task.dedupeKey}`
}

/** The task that holds a dedupe slot, if there is one. */
export async function findSlotHolder(sql: Sql, slot: string): Promise<string | undefined> {
  const [row] = await sql<{ id: string }>`select id from pawl.task where dedupe_slot = ${slot}`
  return row?.id
}

/** Frees the slots of tasks that ended longer ago than their dedupeSeconds. */
export async function freeSlots(sql: Sql, slots: readonly string[]): Promise<void> {
  await sql`
    update pawl.task t
       set dedupe_slot = null
      from pawl.task old
      left join pawl.task_type using (type)
     where old.id = t.id
       and old.dedupe_slot = any(${slots}::text[])
       and old.ended_at + make_interval(secs => pawl.setting(old.settings, task_type.settings, 'dedupeSeconds'))
           <= pawl.clock()`
}

/** Maximum number of task ids in one row of `due`. */
export const tasksPerPlace = 50

/**
 * A task with a longer payload has a row of `due` of its own, which says how long it is. A claim counts these bytes, so
 * that its answer stays small.
 */
export const longTaskBytes = 16 * 2 ** 10

/**
 * Maximum number of kinds in one statement. For each task, the statement reads through all kinds to find its own, so
 * with thousands of them it would take minutes.
 */
export const maxKinds = 500

/** Inserts tasks. Returns the ids of those that were inserted, if conflicts are ignored. */
async function insert(sql: Sql, tasks: readonly NewTask[], actor: string, onConflict: string): Promise<Set<string>> {
  const [first = [], ...others] = splitByKind(tasks)
  if (others.length === 0) return insertFewKinds(sql, first, actor, onConflict)
  return sql.begin(async tx => {
    const made: string[] = []
    for (const some of [first, ...others]) made.push(...(await insertFewKinds(tx, some, actor, onConflict)))
    return new Set(made)
  })
}

function splitByKind(tasks: readonly NewTask[]): NewTask[][] {
  const partOf = new Map<string, number>()
  const parts: NewTask[][] = []
  for (const task of tasks) {
    const name = kindName(task)
    const part = partOf.get(name) ?? Math.floor(partOf.size / maxKinds)
    partOf.set(name, part)
    parts[part] ??= []
    parts[part].push(task)
  }
  return parts
}

/**
 * Inserts tasks and their rows of `due` in one statement. Values that most tasks share (queue, type, priority) are sent
 * once per kind, and fields that few tasks have as one JSON. Payloads are sent as one JSON array: its elements keep their
 * text, and an array of json would escape each of their quotes. Tasks of one kind that are due at the same time share a
 * row of `due`. A kind without deadlines finds its lane by the join alone; `lane_for` is called only for a kind with
 * deadlines, for a lane that is missing, or for a type that has just got deadlines. If a payload was checked against a
 * schema that is not the current one, nothing is inserted.
 */
async function insertFewKinds(
  sql: Sql,
  tasks: readonly NewTask[],
  actor: string,
  onConflict: string,
): Promise<Set<string>> {
  const { kinds, kindOf, placeOf, rare } = groupByKind(tasks)
  const payloads = `[${tasks.map(task => task.payload).join(',')}]`
  const made = await sql<{ id: string | null; stale: string | null }>`
    with
    -- The kinds of tasks, each with its lane, which is created if it is missing.
    kind as materialized (
      select k.n, k.type, (tt.settings->>'expireInSeconds')::float8 as expire_in,
             tt.payload_version <> coalesce(k.version, '') as is_stale,
             case when l.id is null or k.own is not null
                       or tt.settings ?| '{softDeadlineSeconds,hardDeadlineSeconds}'
                  then pawl.lane_for(k.queue, k.priority, k.own, tt.settings) else l.id end as lane_id
        from unnest(${kinds.map(task => task.queue)}::text[], ${kinds.map(task => task.priority)}::int[],
                    ${kinds.map(task => task.type)}::text[], ${kinds.map(ownDeadlines)}::jsonb[],
                    ${kinds.map(task => task.payloadVersion ?? null)}::text[])
             with ordinality as k (queue, priority, type, own, version, n)
        left join ${plainLaneOf('k')} as l on true
        left join pawl.task_type tt on tt.type = k.type
    ),
    -- The tasks, each with its lane and the times that follow from its delays. x holds the fields that few tasks have.
    input as materialized (
      select i.id, i.place, i.payload, i.x, kind.lane_id, kind.type,
             greatest(pawl.clock(), (i.x->>'runAt')::timestamptz,
                      pawl.clock() + make_interval(secs => (i.x->>'runInSeconds')::float8)) as run_at,
             (i.x->>'bytes')::bigint as bytes,
             pawl.clock() + make_interval(secs =>
               case when i.x->'settings' ? 'expireInSeconds' then (i.x->'settings'->>'expireInSeconds')::float8
                    else kind.expire_in end) as expire_at
        from rows from (unnest(${list(tasks.map(task => task.id))}::uuid[]), unnest(${list(kindOf)}::int[]),
                        unnest(${list(placeOf)}::int[]), json_array_elements(${payloads}::json), unnest(${rare}::jsonb[]))
               as i (id, kind, place, payload, x)
        left join kind on kind.n = i.kind
       where not exists (select from kind where is_stale)
    ),
    -- Rows and first events. A task whose dedupe slot is taken is not inserted.
    made as (
      insert into pawl.task (id, lane_id, seq, round, epoch, state, type, run_at, expire_at, keep_until, dedupe_key,
                             dedupe_slot, correlation_id, traceparent, payload, settings, metadata, history)
      select id, lane_id, 1, 1, 0, 'queued', type, run_at, expire_at, (x->>'keepUntil')::timestamptz, x->>'dedupeKey',
             x->>'dedupeSlot', x->>'correlationId', x->>'traceparent', payload, x->'settings', x->'metadata',
             array[row(pawl.clock(), 0, 'queued', null, ${actor}, null, null)::pawl.step]
        from input
      ${literal(onConflict)}
      returning id
    ),
    -- The tasks that were inserted: all of them, unless conflicts are ignored.
    queued as materialized (
      select input.* from input where ${onConflict === ''}::boolean
       union all
      select input.* from made join input using (id) where ${onConflict !== ''}::boolean
    ),
    -- Their places in the queue.
    due_entry as (
      insert into pawl.due (lane_id, run_at, id, ids, type, bytes)
      select lane_id, run_at, (array_agg(id order by id))[1], array_agg(id order by id), type, max(bytes)
        from queued group by place, lane_id, run_at, type
    ),
    -- Their times to live.
    expiry_entry as (
      insert into pawl.expiry (at, task_id) select expire_at, id from queued where expire_at is not null
    ),
    -- Adds the events to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', array_agg(id), array_fill(1, array[count(*)::int]) from queued having count(*) > 0
    )
    select id, null as stale from made where ${onConflict !== ''}::boolean
     union all
    select null, type from kind where is_stale`
  throwIfStale(made.flatMap(({ stale }) => stale ?? []))
  return new Set(made.flatMap(({ id }) => id ?? []))
}

/** Groups tasks by kind, and assigns each to a row of `due`. */
function groupByKind(tasks: readonly NewTask[]) {
  const kinds = new Map<string, { number: number; task: NewTask; place: number; left: number }>()
  let places = 0
  const kindOf: number[] = []
  const placeOf: number[] = []
  const rare = tasks.map(task => {
    const name = `${kindName(task)}\0${task.payloadVersion ?? ''}`
    const kind = kinds.get(name) ?? { number: kinds.size + 1, task, place: 0, left: 0 }
    kinds.set(name, kind)
    const fields = rareFields(task)
    if (fields === null && kind.left === 0) {
      kind.place = ++places
      kind.left = tasksPerPlace
    }
    kindOf.push(kind.number)
    placeOf.push(fields === null ? kind.place : ++places)
    if (fields === null) kind.left -= 1
    return fields
  })
  const isAnyRare = rare.some(fields => fields !== null)
  return { kinds: [...kinds.values()].map(({ task }) => task), kindOf, placeOf, rare: isAnyRare ? rare : null }
}

function rareFields(task: NewTask): string | null {
  const { id: _, queue, type: _type, priority: _priority, payload, payloadVersion: _version, ...rare } = task
  const isLong = payload.length > longTaskBytes
  if (Object.keys(rare).length === 0 && !isLong) return null
  const { dedupeKey } = task
  return json({
    ...rare,
    ...(dedupeKey !== undefined && { dedupeSlot: slotOf({ queue, dedupeKey }) }),
    ...(isLong && { bytes: payload.length }),
  })
}
