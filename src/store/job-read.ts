/** Jobs and stages as people read them. Counts are what was counted plus what settles have appended since. */
import { jobLifecycle } from '../kernel/job.ts'
import { type Lifecycle, statesOf } from '../kernel/lifecycle.ts'
import { type StageState, stageLifecycle } from '../kernel/stage.ts'
import type { TaskState } from '../kernel/task.ts'
import type { JobRow, StageRow } from './jobs.ts'
import { widely } from './plans.ts'
import { literal, type Sql } from './sql.ts'

type JobFact =
  | ('id' | 'name' | 'state' | 'round' | 'seq' | 'priority' | 'open' | 'plan' | 'endsAs' | 'endsCause')
  | ('compensated' | 'correlationId' | 'traceparent' | 'metadata')

export interface JobReadRow extends Pick<JobRow, JobFact> {
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

/** When a task of it first began in its round: behind the last end that it was brought back from. */
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
  j.id, j.name, j.state, j.round, j.seq, j.priority, j.open, j.input, j.plan, j.ends_as, j.ends_cause, j.compensated,
  j.correlation_id, j.traceparent, j.metadata, j.cloned_from, j.deadline_at, (j.history[1]).ts as created_at,
  (j.history[j.seq]).ts as changed_at, ${startOf('j', jobLifecycle)} as started_at, j.ended_at`)

export async function getJob(sql: Sql, id: string): Promise<JobReadRow | undefined> {
  const [row] = await sql<JobReadRow>`select ${jobColumns} from pawl.job j where j.id = ${id}::uuid and j.visible`
  return row
}

export interface TaskCount {
  readonly state: TaskState
  /** Its time has come; of what is held or has ended, it had. */
  readonly due: boolean
  readonly count: number
}

/** The tasks of a job by their states: of each stage that it has, so that the index is used. */
export function countTasks(sql: Sql, jobId: string): Promise<TaskCount[]> {
  return widely(
    sql,
    tx => tx<TaskCount>`
      select t.state, t.run_at <= pawl.clock() as due, count(*)::float8 as count
        from pawl.task t
       where t.stage_id = any(array(select id from pawl.stage where job_id = ${jobId}::uuid))
       group by 1, 2`,
  )
}

export interface JobFilter {
  readonly name: string | null
  readonly states: readonly string[]
  readonly correlationId: string | null
}

/** Newest first. */
export function listJobs(
  sql: Sql,
  { name, correlationId, states }: JobFilter,
  { before, limit }: { readonly before: string | null; readonly limit: number },
): Promise<JobReadRow[]> {
  return widely(
    sql,
    tx => tx<JobReadRow>`
      select ${jobColumns} from pawl.job j
       where j.visible
         and (${before}::uuid is null or j.id < ${before}::uuid)
         and (${name}::text is null or j.name = ${name}::text)
         and (${correlationId}::text is null or j.correlation_id = ${correlationId}::text)
         and (cardinality(${states}::text[]) = 0 or j.state = any(${states}::text[]))
       order by j.id desc limit ${limit}::int`,
  )
}

export async function countJobs(sql: Sql, { name, correlationId, states }: JobFilter): Promise<number> {
  const [row] = await widely(
    sql,
    tx => tx<{ total: number }>`
      select count(*)::int as total from pawl.job j
       where j.visible
         and (${name}::text is null or j.name = ${name}::text)
         and (${correlationId}::text is null or j.correlation_id = ${correlationId}::text)
         and (cardinality(${states}::text[]) = 0 or j.state = any(${states}::text[]))`,
  )
  return row!.total
}

const stageColumns = literal(`
  s.id, s.job_id, s.name, s.ordinal, s.kind, s.state, s.round, s.seq, l.queue, s.plan, s.open,
  s.total + coalesce(t.total, 0)::int as total, s.good + coalesce(t.good, 0)::int as good,
  s.bad + coalesce(t.bad, 0)::int as bad, s.partial + coalesce(t.partial, 0)::int as partial,
  s.skipped + coalesce(t.skipped, 0)::int as skipped, s.ends_as, s.ends_cause, s.error, s.held, s.gate_until,
  s.approvals as given, s.metadata, case when s.plan ? 'gives' then s.fan->0 end as output,
  (s.history[1]).ts as created_at, (s.history[s.seq]).ts as changed_at,
  ${startOf('s', stageLifecycle)} as started_at, s.ended_at,
  case when s.ends_as = 'cancelled' and j.ends_as <> 'cancelled'
             and s.ends_cause = coalesce(j.ends_cause, 'job_' || j.ends_as)
       then (select h.state from unnest(s.history) with ordinality as h
              where h.state not in ('stopping', 'cancelled') order by h.ordinality desc limit 1)
   end as called_off_from`)

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

/** Oldest first: what has waited longest is to be seen first. */
export function listStages(
  sql: Sql,
  states: readonly string[],
  after: string | null,
  limit: number,
): Promise<StageReadRow[]> {
  return widely(
    sql,
    tx => tx<StageReadRow>`
      select ${stageColumns} from pawl.stage s ${counted}
       where j.visible and s.state = any(${states}::text[]) and (${after}::uuid is null or s.id > ${after}::uuid)
       order by s.id limit ${limit}::int`,
  )
}

/** The job of a stage or of a task; null: there is none. */
export async function jobOf(sql: Sql, entity: 'stage' | 'task', id: string): Promise<string | null | undefined> {
  const [row] = await sql<{ jobId: string | null }>`
    select job_id from pawl.${literal(entity)} where id = ${id}::uuid`
  return row === undefined ? undefined : row.jobId
}
