/** Jobs and stages for readers. Counts include what settles have appended since they were last added up. */
import { jobLifecycle } from '../../kernel/job.ts'
import { type Lifecycle, statesOf } from '../../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'
import {
  countFrame,
  maxPageBytes,
  type PageRow,
  type Paging,
  pageFrame,
  type StatementFrame,
} from '../driver/paging.ts'
import { viaIndex, withTableScans } from '../driver/plans.ts'
import { literal, type Sql } from '../driver/sql.ts'
import type { JobRow, StageRow } from './jobs.ts'

type JobFact =
  | ('id' | 'name' | 'state' | 'round' | 'seq' | 'priority' | 'open' | 'plan' | 'endsAs' | 'endsCause')
  | ('compensated' | 'correlationId' | 'traceparent' | 'metadata')

export interface JobReadRow extends Pick<JobRow, JobFact> {
  /** The order in which jobs were submitted. */
  readonly n: number
  readonly input: unknown
  readonly clonedFrom: string | null
  readonly deadlineAt: Date | null
  readonly createdAt: Date
  readonly changedAt: Date
  readonly startedAt: Date | null
  readonly endedAt: Date | null
}

type StageFact =
  | ('id' | 'jobId' | 'name' | 'ordinal' | 'kind' | 'state' | 'round' | 'seq' | 'plan' | 'open' | 'total' | 'good')
  | ('bad' | 'partial' | 'skipped' | 'endsAs' | 'endsCause' | 'held' | 'given')

export interface StageReadRow extends Pick<StageRow, StageFact> {
  readonly queue: string
  readonly output: unknown
  readonly error: { message: string } | null
  readonly gateUntil: Date | null
  readonly calledOffFrom: StageState | null
  readonly metadata: Record<string, unknown> | null
  readonly createdAt: Date
  readonly changedAt: Date
  readonly startedAt: Date | null
  readonly endedAt: Date | null
}

/** When a task of it first started in its current round, which is after the last final state that it left. */
function startOf(row: 'j' | 's', lifecycle: Lifecycle): string {
  const final = statesOf(lifecycle, 'final')
    .map(state => `'${state}'`)
    .join(', ')
  return `(select min(h.ts) from unnest(${row}.history) with ordinality as h
            where h.state = 'running' and h.ordinality > coalesce((
                    select max(e.ordinality) from unnest(${row}.history) with ordinality as e
                     where e.state in (${final}) and (${row}.history[e.ordinality + 1]).state not in (${final})), 0))`
}

const jobColumns = literal(`
  j.id, j.n, j.name, j.state, j.round, j.seq, j.priority, j.open, j.input, j.plan, j.ends_as, j.ends_cause, j.compensated,
  j.correlation_id, j.traceparent, j.metadata, j.cloned_from, j.deadline_at, (j.history[1]).ts as created_at,
  (j.history[j.seq]).ts as changed_at, ${startOf('j', jobLifecycle)} as started_at, j.ended_at`)

export async function getJob(sql: Sql, id: string): Promise<JobReadRow | undefined> {
  const [row] = await sql<JobReadRow>`select ${jobColumns} from pawl.job j where j.id = ${id}::uuid and j.visible`
  return row
}

export interface JobFilter {
  readonly name: string | null
  readonly search: string | null
  readonly states: readonly string[]
  readonly correlationId: string | null
  readonly createdFrom: Date | null
  readonly createdTo: Date | null
  readonly priorityFrom: number | null
  readonly priorityTo: number | null
}

/** A page of jobs, bounded by its rows and by the bytes of the jobs and their stages. */
export async function listJobs(sql: Sql, filter: JobFilter, paging: Paging): Promise<PageRow<JobReadRow>[]> {
  const page = { columns: jobColumns.literal, bytes: bytesOfJob, id: 'j.n', by: orders[paging.order] }
  const rows = await queryJobs<PageRow<JobReadRow>>(sql, filter, pageFrame(page, paging))
  return rows.slice(0, paging.limit)
}

const bytesOfStage = `1000 + pawl.estimated_bytes(s.plan) + pawl.estimated_bytes(s.error) + pawl.estimated_bytes(s.approvals)
           + pawl.estimated_bytes(s.metadata) + case when s.plan ? 'gives' then pawl.estimated_bytes(s.fan) else 0 end`

const bytesOfJob = `1000 + pawl.estimated_bytes(j.input) + pawl.estimated_bytes(j.plan)
           + pawl.estimated_bytes(j.metadata)
           + (select coalesce(sum(${bytesOfStage}), 0) from pawl.stage s where s.job_id = j.id)`

/**
 * The size of what people wrote into the stages of a job, which every view of the job shows. Compressed values are read
 * only if their estimated size is more than a page.
 */
export async function bytesOfStages(sql: Sql, jobId: string): Promise<number> {
  const [row] = await sql<{ bytes: number }>`
    select (case when estimated <= ${maxPageBytes}::int then estimated
                 else (select sum(octet_length((plan - 'metadata')::text) + octet_length(approvals::text)
                                  + coalesce(octet_length(metadata::text), 0))
                         from pawl.stage where job_id = ${jobId}::uuid) end)::float8 as bytes
      from (select coalesce(sum(pawl.estimated_bytes(plan) + pawl.estimated_bytes(metadata)
                                + pawl.estimated_bytes(approvals)), 0) as estimated
              from pawl.stage where job_id = ${jobId}::uuid) as stages`
  return row!.bytes
}

/** The estimated size of the events of a job, stage or task, which are in its row. */
export async function bytesOfHistory(sql: Sql, entity: 'job' | 'stage' | 'task', id: string): Promise<number> {
  const [row] = await sql<{ bytes: number }>`
    select pawl.estimated_bytes(history)::float8 as bytes from pawl.${literal(entity)} where id = ${id}::uuid`
  return row?.bytes ?? 0
}

const orders: Readonly<Record<string, string>> = {
  name: 'lower(j.name)',
  priority: 'j.priority desc',
  changed: '(j.history[j.seq]).ts desc',
  longest: 'coalesce(j.ended_at, pawl.clock()) - (j.history[1]).ts desc',
}

export async function countJobs(sql: Sql, filter: JobFilter): Promise<number> {
  const [row] = await queryJobs<{ total: number }>(sql, filter, countFrame)
  return row!.total
}

/** Timestamps in filters have milliseconds: a job created within the last one counts as created by then. */
function queryJobs<Row>(sql: Sql, filter: JobFilter, frame: StatementFrame): Promise<Row[]> {
  const { states, priorityFrom, priorityTo } = filter
  return withTableScans(
    sql,
    tx => tx<Row>`
      ${frame.head} from pawl.job j
       where j.visible
         and (${frame.before}::bigint is null or j.n < ${frame.before}::bigint)
         and (${frame.after}::bigint is null or j.n > ${frame.after}::bigint)
         and (${filter.name}::text is null or j.name = ${filter.name}::text)
         and (${filter.search}::text is null
              or position(lower(${filter.search}::text) in lower(j.name)) > 0
              or starts_with(j.id::text, lower(${filter.search}::text))
              or j.correlation_id = ${filter.search}::text)
         and (${filter.correlationId}::text is null or j.correlation_id = ${filter.correlationId}::text)
         and (cardinality(${states}::text[]) = 0 or j.state = any(${states}::text[]))
         and (${filter.createdFrom}::timestamptz is null or (j.history[1]).ts >= ${filter.createdFrom}::timestamptz)
         and (${filter.createdTo}::timestamptz is null
              or date_trunc('milliseconds', (j.history[1]).ts) <= ${filter.createdTo}::timestamptz)
         and (${priorityFrom}::int is null or j.priority >= ${priorityFrom}::int)
         and (${priorityTo}::int is null or j.priority <= ${priorityTo}::int)
       ${frame.order} limit ${frame.limit}::int offset ${frame.offset}::bigint ${frame.end}`,
  )
}

/** The state that stage `s` had when the bad end of job `j` cancelled it. */
export const calledOffFrom = literal(`
  case when s.ends_as = 'cancelled' and j.ends_as <> 'cancelled'
             and s.ends_cause = coalesce(j.ends_cause, 'job_' || j.ends_as)
       then (select h.state from unnest(s.history) with ordinality as h
              where h.state not in ('stopping', 'cancelled') order by h.ordinality desc limit 1)
   end`)

const stageColumns = literal(`
  s.id, s.job_id, s.name, s.ordinal, s.kind, s.state, s.round, s.seq, l.queue, s.plan, s.open,
  s.total + coalesce(t.total, 0)::int as total, s.good + coalesce(t.good, 0)::int as good,
  s.bad + coalesce(t.bad, 0)::int as bad, s.partial + coalesce(t.partial, 0)::int as partial,
  s.skipped + coalesce(t.skipped, 0)::int as skipped, s.ends_as, s.ends_cause, s.error, s.held, s.gate_until,
  s.approvals as given, s.metadata, case when s.plan ? 'gives' then s.fan->0 end as output,
  (s.history[1]).ts as created_at, (s.history[s.seq]).ts as changed_at,
  ${startOf('s', stageLifecycle)} as started_at, s.ended_at, ${calledOffFrom.literal} as called_off_from`)

const counted = literal(`
  left join lateral (
    select sum(total) as total, sum(good) as good, sum(bad) as bad, sum(partial) as partial, sum(skipped) as skipped
      from pawl.tally where job_id = s.job_id and stage_id = s.id) as t on true
  join pawl.lane l on l.id = s.lane_id
  join pawl.job j on j.id = s.job_id`)

export function stagesOf(sql: Sql, jobIds: readonly string[]): Promise<StageReadRow[]> {
  return sql<StageReadRow>`
    select ${stageColumns} from pawl.stage s ${counted}
     where s.job_id = any(${jobIds}::uuid[]) order by s.job_id, s.ordinal`
}

export async function getStage(sql: Sql, id: string): Promise<StageReadRow | undefined> {
  const [row] = await sql<StageReadRow>`
    select ${stageColumns} from pawl.stage s ${counted} where j.visible and s.id = ${id}::uuid`
  return row
}

export interface StageFilter {
  readonly states: readonly string[]
  readonly jobId: string | null
  readonly queue: string | null
}

/** A page of stages, bounded by its rows and its bytes. */
export async function listStages(sql: Sql, filter: StageFilter, paging: Paging): Promise<PageRow<StageReadRow>[]> {
  const page = { columns: stageColumns.literal, bytes: bytesOfStage, id: 's.id' }
  const rows = await queryStages<PageRow<StageReadRow>>(sql, filter, pageFrame(page, paging))
  return rows.slice(0, paging.limit)
}

export async function countStages(sql: Sql, filter: StageFilter): Promise<number> {
  const [row] = await queryStages<{ total: number }>(sql, filter, countFrame)
  return row!.total
}

function queryStages<Row>(sql: Sql, { states, jobId, queue }: StageFilter, frame: StatementFrame): Promise<Row[]> {
  return withTableScans(
    sql,
    tx => tx<Row>`
      ${frame.head} from pawl.stage s ${counted}
       where j.visible
         and (cardinality(${states}::text[]) = 0 or s.state = any(${states}::text[]))
         and (${jobId}::uuid is null or s.job_id = ${jobId}::uuid)
         and (${queue}::text is null or l.queue = ${queue}::text)
         and (${frame.before}::uuid is null or s.id < ${frame.before}::uuid)
         and (${frame.after}::uuid is null or s.id > ${frame.after}::uuid)
       ${frame.order} limit ${frame.limit}::int offset ${frame.offset}::int ${frame.end}`,
  )
}

export interface TaskCount {
  readonly stageId: string
  readonly state: TaskState
  /** Its scheduled time has passed, which is always so for held and ended tasks. */
  readonly due: boolean
  readonly count: number
}

/** Counts the tasks of these stages by state. */
export function countTasks(sql: Sql, stageIds: readonly string[]): Promise<TaskCount[]> {
  return sql`
    select s.id as stage_id, counted.*
      from unnest(${stageIds}::uuid[]) as s (id)
     cross join lateral (
       select t.state, t.run_at <= pawl.clock() as due, count(*)::float8 as count
         from pawl.task t where t.stage_id = s.id
        group by 1, 2) as counted`
}

/** The job of a stage or task. Null: the task is stand-alone. Undefined: there is no such stage or task. */
export async function findJobOf(sql: Sql, entity: 'stage' | 'task', id: string): Promise<string | null | undefined> {
  const [row] = await sql<{ jobId: string | null }>`
    select job_id from pawl.${literal(entity)} where id = ${id}::uuid`
  return row === undefined ? undefined : row.jobId
}

/** The stages of a task's job, each with the type of its tasks. `isOwn`: the task is in it. */
export function readTypesOfStages(
  sql: Sql,
  taskId: string,
): Promise<{ name: string; type: string | null; isOwn: boolean }[]> {
  return sql`
    select s.name, coalesce(s.plan->>'task', s.plan->>'queue') as type, s.id = t.stage_id as is_own
      from pawl.task t join pawl.stage s on s.job_id = ${viaIndex('t.job_id')}
     where t.id = ${taskId}::uuid and (s.kind = 'work' or s.id = t.stage_id)`
}
