import type { TaskError } from '../../kernel/decide.ts'
import { jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import type { TaskSettings } from '../../kernel/settings.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { maxPageBytes, type NamePaging, type PageRow } from '../driver/paging.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, literal, type Sql } from '../driver/sql.ts'

export interface TaskRow {
  readonly id: string
  readonly queue: string
  readonly type: string
  readonly state: TaskState
  readonly priority: number
  readonly seq: number
  readonly round: number
  readonly epoch: number
  readonly failures: number
  readonly losses: number
  readonly tries: number
  readonly careful: boolean
  readonly runAt: Date
  readonly createdAt: Date
  readonly changedAt: Date
  readonly startedAt: Date | null
  readonly endedAt: Date | null
  readonly leaseUntil: Date | null
  readonly cancelAt: Date | null
  readonly expireAt: Date | null
  readonly keepUntil: Date | null
  readonly owner: string | null
  readonly jobId: string | null
  readonly stageId: string | null
  readonly dedupeKey: string | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  readonly payload: unknown
  readonly settings: Partial<TaskSettings> | null
  readonly metadata: Record<string, unknown> | null
  readonly progress: unknown
  readonly checkpoint: unknown
  readonly output: unknown
  readonly error: TaskError | null
  readonly deadLetter: Record<string, unknown> | null
  readonly partial: boolean
}

export async function getTask(sql: Sql, id: string): Promise<TaskRow | undefined> {
  const [row] = await sql<TaskRow>`select * from pawl.task_view where id = ${id}::uuid`
  return row
}

/** Returns the tasks that exist, in no particular order. */
export function getTasks(sql: Sql, ids: readonly string[]): Promise<TaskRow[]> {
  return sql<TaskRow>`
    select v.* from unnest(${list(ids)}::uuid[]) as asked (id) join pawl.task_view v on v.id = ${viaIndex('asked.id')}`
}

/** The task, and the API key of each of its claims by epoch; null: the claimer had no key, or it is not known. */
export async function getClaimedTask(
  sql: Sql,
  id: string,
): Promise<
  (TaskRow & { readonly claims: { readonly epoch: number; readonly key: string | null }[] | null }) | undefined
> {
  const [row] = await sql<TaskRow & { claims: { epoch: number; key: string | null }[] | null }>`
    select v.*, (select json_agg(json_build_object('epoch', h.epoch, 'key', h.payload->>'key'))
                   from pawl.task t cross join unnest(t.history) as h
                  where t.id = v.id and h.state = 'assigned' and h.type is null) as claims
      from pawl.task_view v where v.id = ${id}::uuid`
  return row
}

/** If `schema` is undefined, the stored one is kept: the process that queues a task may not know it. */
export async function putTaskType(
  sql: Sql,
  type: string,
  settings: Partial<TaskSettings>,
  schema: string | null | undefined,
): Promise<void> {
  const text = JSON.stringify(settings)
  const isGiven = schema !== undefined
  // An upsert locks the row even if it changes nothing, and transactions of callers would wait for each other.
  await sql`
    insert into pawl.task_type as known (type, settings, payload_schema)
    select ${type}, ${text}::jsonb, ${schema ?? null}::json
     where not exists (
             select from pawl.task_type
              where type = ${type} and settings = ${text}::jsonb
                and (not ${isGiven}::boolean or payload_schema::text is not distinct from ${schema ?? null}::text))
        on conflict (type) do update
       set settings = excluded.settings, changed_at = pawl.clock(),
           payload_schema = case when ${isGiven} then excluded.payload_schema else known.payload_schema end
     where known.settings is distinct from excluded.settings
        or ${isGiven} and known.payload_schema::text is distinct from excluded.payload_schema::text`
}

/** Whether `putTaskType` would change nothing. */
export async function hasTaskType(
  sql: Sql,
  type: string,
  settings: Partial<TaskSettings>,
  schema: string | null | undefined,
): Promise<boolean> {
  const rows = await sql`
    select from pawl.task_type
     where type = ${type} and settings = ${JSON.stringify(settings)}::jsonb
       and (not ${schema !== undefined}::boolean or payload_schema::text is not distinct from ${schema ?? null}::text)`
  return rows.length > 0
}

export interface TaskTypeRow {
  readonly type: string
  readonly settings: Partial<TaskSettings>
  readonly payloadSchema: Readonly<Record<string, unknown>> | null
}

export async function getTaskType(sql: Sql, type: string): Promise<TaskTypeRow | undefined> {
  const [row] = await sql<TaskTypeRow>`
    select type, settings, payload_schema from pawl.task_type where type = ${type}`
  return row
}

/** A page of task types, by name, or only the type `only`. Schemas may be long, so a page is also bounded by its bytes. */
export function listTaskTypes(
  sql: Sql,
  { after, limit }: NamePaging,
  only: string | undefined,
): Promise<PageRow<TaskTypeRow>[]> {
  return sql`
    with page as (
      select type, settings, payload_schema,
             octet_length(settings::text) + coalesce(octet_length(payload_schema::text), 0) as bytes
        from pawl.task_type
       where type > ${after} and (${only ?? null}::text is null or type = ${only ?? null}) order by type limit ${limit}::int + 1
    ), measured as (
      select *, row_number() over by_name as place, sum(bytes) over by_name as bytes_so_far, count(*) over () as found
        from page window by_name as (order by type)
    )
    select type, settings, payload_schema, place < found as more
      from measured
     where place <= ${limit}::int and (place = 1 or bytes_so_far <= ${maxPageBytes}::int)
     order by type`
}

/** The types of these tasks. */
export function typesOf(sql: Sql, ids: readonly string[]): Promise<TaskTypeRow[]> {
  return sql`
    select type, settings, payload_schema
      from pawl.task_type
     where type in (select t.type from unnest(${ids}::uuid[]) as x (id) join pawl.task t on t.id = ${viaIndex('x.id')})`
}

export async function queuesOfTasks(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ queue: string }>`
    select distinct l.queue
      from unnest(${ids}::uuid[]) as x (id)
      join pawl.task t on t.id = ${viaIndex('x.id')}
      join pawl.lane l on l.id = ${viaIndex('t.lane_id')}`
  return rows.map(({ queue }) => queue)
}

export interface TraceRow {
  readonly id: string
  readonly correlationId: string | null
  readonly traceparent: string | null
}

const ended = inList(statesOf(taskLifecycle, 'final'))
const endedJob = inList(statesOf(jobLifecycle, 'final'))

/** Returns the tasks and jobs in this list that have ended. Deleted ones had ended. */
export async function findEnded(sql: Sql, ids: readonly string[]): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select t.id from pawl.task t where t.id = any(${ids}::uuid[]) and t.state in (${ended})
     union all
    select j.id from pawl.job j where j.id = any(${ids}::uuid[]) and j.state in (${endedJob})
     union all
    select i.id from unnest(${ids}::uuid[]) as i (id)
     where not exists (select from pawl.task where id = i.id) and not exists (select from pawl.job where id = i.id)`
  return rows.map(({ id }) => id)
}

/** The correlation ids and traces with which these are logged. */
export function tracesOf(sql: Sql, entity: 'task' | 'job', ids: readonly string[]): Promise<TraceRow[]> {
  return sql<TraceRow>`
    select id, correlation_id, traceparent from pawl.${literal(entity)} where id = any(${ids}::uuid[])`
}

/** Why each of these tasks is in its state: the reason that was given, else the cause of the transition. */
export async function reasonsOf(sql: Sql, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await sql<{ id: string; reason: string | null }>`
    select t.id, (select coalesce(h.payload->>'reason', h.cause) from unnest(t.history) with ordinality as h
                   where h.state = t.state and h.type is null order by h.ordinality desc limit 1) as reason
      from pawl.task t where t.id = any(${ids}::uuid[])`
  return new Map(rows.flatMap(({ id, reason }) => (reason === null ? [] : [[id, reason]])))
}
