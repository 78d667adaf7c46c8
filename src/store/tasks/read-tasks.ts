import type { TaskError } from '../../kernel/decide.ts'
import type { TaskSettings } from '../../kernel/settings.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import {
  countFrame,
  maxPageBytes,
  type NamePaging,
  type PageRow,
  type Paging,
  pageFrame,
  type StatementFrame,
} from '../driver/paging.ts'
import { viaIndex, withTableScans } from '../driver/plans.ts'
import { literal, type Sql } from '../driver/sql.ts'

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

export interface TaskFilter {
  /** Only these ids; null: any. */
  readonly ids: readonly string[] | null
  readonly jobId: string | null
  readonly stageId: string | null
  readonly queue: string | null
  readonly type: string | null
  readonly states: readonly TaskState[]
  readonly correlationId: string | null
  readonly reasonCode: string | null
  readonly message: string | null
  readonly createdFrom: Date | null
  readonly createdTo: Date | null
}

export function listTasks(sql: Sql, filter: TaskFilter, paging: Paging): Promise<TaskRow[]> {
  return queryTasks(sql, filter, pageFrame('v.*', 'id', paging))
}

export async function countTasks(sql: Sql, filter: TaskFilter): Promise<number> {
  const [row] = await queryTasks<{ total: number }>(sql, filter, countFrame)
  return row!.total
}

/**
 * Queries tasks. If only states with a bad outcome are asked for, they are found through `trouble`, however rare they
 * are. Timestamps in filters have milliseconds: a task created within the last one counts as created by then.
 *
 * Each stage of the filter is read by itself, in the order of the index, and only as far as the page needs. In one
 * query for all stages, the planner would read all tasks of the store until it has found enough of them.
 */
function queryTasks<Row>(sql: Sql, filter: TaskFilter, frame: StatementFrame): Promise<Row[]> {
  const troubled =
    filter.states.length > 0 && filter.states.every(state => taskLifecycle.states[state].outcome === 'bad')
  const source = troubled
    ? '(select v.* from pawl.trouble x join pawl.task_view v on v.id = x.task_id)'
    : 'pawl.task_view'
  const isOfStages = filter.stageId !== null || filter.jobId !== null
  return withTableScans(
    sql,
    tx => tx<Row>`
    ${frame.head}
      from unnest(case when ${isOfStages}::boolean
                       then array(select id from pawl.stage
                                   where (${filter.stageId}::uuid is null or id = ${filter.stageId}::uuid)
                                     and (${filter.jobId}::uuid is null or job_id = ${filter.jobId}::uuid))
                       else array[null::uuid] end) as asked (stage)
     cross join lateral (
    select v.* from ${literal(source)} as v
     where (not ${isOfStages}::boolean or v.stage_id = asked.stage)
       and (${filter.ids}::uuid[] is null or id = any(${filter.ids}::uuid[]))
       and (${filter.queue}::text is null or queue = ${filter.queue})
       and (${filter.type}::text is null or type = ${filter.type})
       and (cardinality(${filter.states}::text[]) = 0 or state = any(${filter.states}::text[]))
       and (${filter.correlationId}::text is null or correlation_id = ${filter.correlationId})
       and (${filter.reasonCode}::text is null or dead_letter->>'reasonCode' = ${filter.reasonCode})
       and (${filter.message}::text is null or pawl.gist(error->>'message') = pawl.gist(${filter.message}))
       and (${filter.createdFrom}::timestamptz is null or created_at >= ${filter.createdFrom}::timestamptz)
       and (${filter.createdTo}::timestamptz is null
            or date_trunc('milliseconds', created_at) <= ${filter.createdTo}::timestamptz)
       and (${frame.before}::uuid is null or id < ${frame.before}::uuid)
       and (${frame.after}::uuid is null or id > ${frame.after}::uuid)
     ${frame.order} limit ${frame.limit}::int + ${frame.offset}::int) as v
     ${frame.order} limit ${frame.limit}::int offset ${frame.offset}::int ${frame.end}`,
  )
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
  await sql`
    insert into pawl.task_type as known (type, settings, payload_schema)
    values (${type}, ${text}::jsonb, ${schema ?? null}::json)
        on conflict (type) do update
       set settings = excluded.settings, changed_at = pawl.clock(),
           payload_schema = case when ${isGiven} then excluded.payload_schema else known.payload_schema end
     where known.settings is distinct from excluded.settings
        or ${isGiven} and known.payload_schema::text is distinct from excluded.payload_schema::text`
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
