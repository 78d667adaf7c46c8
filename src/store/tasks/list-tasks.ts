/** Lists of tasks, filtered and in pages. */
import { statesOf } from '../../kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { countFrame, type PageRow, type Paging, pageFrame, type StatementFrame } from '../driver/paging.ts'
import { withOwnPlan, withTableScans } from '../driver/plans.ts'
import { literal, type Sql } from '../driver/sql.ts'
import type { TaskRow } from './read-tasks.ts'

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

/**
 * A page of tasks, bounded by its rows and its bytes. Open and held tasks are often the newest ones, so the newest tasks
 * are read first. If too few of them match, the page is read through the smaller tables that name open and held tasks.
 */
export async function listTasks(sql: Sql, filter: TaskFilter, paging: Paging): Promise<PageRow<TaskRow>[]> {
  const frame = pageFrame({ columns: 'v.*', bytes: bytesOfTask, id: 'id' }, paging)
  const isNewestFirst = paging.order === 'newest' && paging.offset === 0
  if (isNewestFirst && isOfSmallTables(filter)) {
    const after = await findNth(sql, newestPerRow * paging.limit, frame.before)
    const rows = await queryTasks<PageRow<TaskRow>>(sql, filter, { ...frame, after }, 'newest')
    const isFull = rows.length > paging.limit || rows.at(-1)?.more === true
    if (isFull || after === null) return rows.slice(0, paging.limit)
  }
  const rows = await queryTasks<PageRow<TaskRow>>(sql, filter, frame)
  return rows.slice(0, paging.limit)
}

const isOfSmallTables = (filter: TaskFilter) => ['due and claim', 'unended stages'].includes(sourceOf(filter))

/** How many of the newest tasks are read for each row of the page. */
const newestPerRow = 4

/** The id of the nth task before this id; null: there are fewer. */
async function findNth(sql: Sql, n: number, before: string | null): Promise<string | null> {
  const [row] = await sql<{ id: string }>`
    select id from pawl.task
     where id < coalesce(${before}::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
     order by id desc offset ${n}::int - 1 limit 1`
  return row?.id ?? null
}

const bytesOfTask = `1000 + pawl.estimated_bytes(payload) + pawl.estimated_bytes(output)
           + pawl.estimated_bytes(progress) + pawl.estimated_bytes(checkpoint) + pawl.estimated_bytes(error)
           + pawl.estimated_bytes(metadata) + pawl.estimated_bytes(settings) + pawl.estimated_bytes(dead_letter)`

export async function countTasks(sql: Sql, filter: TaskFilter): Promise<number> {
  const [row] = await queryTasks<{ total: number }>(sql, filter, countFrame)
  return row!.total
}

/**
 * Queries tasks. Tasks of nearly all states are found through smaller tables, however rare they are: bad outcomes
 * through `trouble`, those that may be claimed through `due`, held ones through `claim`, and blocked ones through the
 * stages that have not ended. Timestamps in filters have milliseconds: a task created within the last one counts as
 * created by then.
 *
 * Each stage of the filter is read by itself, in the order of the index, and only as far as the page needs. In one
 * query for all stages, the planner would read all tasks of the store until it has found enough of them.
 */
function queryTasks<Row>(
  sql: Sql,
  filter: TaskFilter,
  frame: StatementFrame,
  from: Source = sourceOf(filter),
): Promise<Row[]> {
  const isOfStages = filter.stageId !== null || filter.jobId !== null
  const areBlocked = from === 'unended stages'
  const isByIndex = from === 'newest' || from === 'due and claim' || (from === 'all' && isOfStages)
  const run = isByIndex ? withOwnPlan : withTableScans
  const source =
    from === 'due and claim'
      ? unendedTasks(filter)
      : from === 'trouble'
        ? '(select v.* from pawl.trouble x join pawl.task_view v on v.id = x.task_id)'
        : 'pawl.task_view'
  return run(
    sql,
    tx => tx<Row>`
    ${frame.head}
      from unnest(case when ${isOfStages}::boolean
                       then array(select id from pawl.stage
                                   where (${filter.stageId}::uuid is null or id = ${filter.stageId}::uuid)
                                     and (${filter.jobId}::uuid is null or job_id = ${filter.jobId}::uuid))
                       when ${areBlocked}::boolean
                       then array(select s.id from pawl.job j join pawl.stage s on s.job_id = j.id
                                   where j.ended_at is null and s.ended_at is null)
                       else array[null::uuid] end) as asked (stage)
     cross join lateral (
    select v.* from ${literal(source)} as v
     where (not ${isOfStages || areBlocked}::boolean or v.stage_id = asked.stage)
       and (${filter.ids}::uuid[] is null or id = any(${filter.ids}::uuid[]))
       and (${filter.queue}::text is null or queue = ${filter.queue})
       and (${filter.queue}::text is null or exists (select from pawl.lane where queue = ${filter.queue}))
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

/** The tables through which tasks are found. `newest`: all tasks after a given one. */
type Source = 'all' | 'newest' | 'trouble' | 'due and claim' | 'unended stages'

function sourceOf({ states, stageId, jobId }: TaskFilter): Source {
  const areAll = (test: (state: TaskState) => boolean) => states.length > 0 && states.every(test)
  if (areAll(state => taskLifecycle.states[state].outcome === 'bad')) return 'trouble'
  if (stageId !== null || jobId !== null) return 'all'
  if (areAll(state => state === 'blocked')) return 'unended stages'
  return areAll(state => waiting.includes(state) || held.includes(state)) ? 'due and claim' : 'all'
}

const waiting: readonly TaskState[] = taskLifecycle.moves.claim.from
const held: readonly TaskState[] = statesOf(taskLifecycle, 'held')

/**
 * The tasks named in `due` and `claim`, in the order of their ids. Both may name tasks that have moved on since, and a
 * task twice.
 */
function unendedTasks({ states }: TaskFilter): string {
  const names = [
    ...(states.some(state => waiting.includes(state)) ? ['select unnest(ids) as id from pawl.due'] : []),
    ...(states.some(state => held.includes(state)) ? ['select unnest(ids) as id from pawl.claim'] : []),
  ]
  return `(
      select v.* from (select distinct id from (${names.join(' union all ')}) as named order by id desc) as x
        join pawl.task_view v on v.id = x.id)`
}
