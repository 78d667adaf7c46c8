/** Rows of jobs and stages. Whoever changes one holds the job's lock, so a job is changed by one at a time. */
import type { JobFacts, StageFacts } from '../../kernel/advance.ts'
import type { JobPlan } from '../../kernel/plan.ts'
import { list, literal, type Sql } from '../driver/sql.ts'

export interface JobRow extends JobFacts {
  readonly id: string
  readonly name: string
  readonly seq: number
  readonly round: number
  readonly priority: number
  readonly plan: Omit<JobPlan, 'stages' | 'input'>
  readonly visible: boolean
  readonly correlationId: string | null
  readonly traceparent: string | null
  readonly metadata: Record<string, unknown> | null
  readonly error: { message: string } | null
  readonly hasErrand: boolean
  /** Steps that its conditions have taken in this round. */
  readonly conditionSteps: number
  /** The database's clock when it was locked. */
  readonly now: Date
}

export interface StageRow extends StageFacts {
  readonly jobId: string
  readonly ordinal: number
  readonly seq: number
  readonly round: number
  readonly laneId: number | null
  readonly undoes: string | null
  readonly errand: Errand | null
  readonly errandAt: string | null
  readonly endsHard: boolean
  readonly fanned: number
  /** How far its inputs have become tasks. */
  readonly listAt: unknown
  /** Of the good ones, those that were passed over. */
  readonly skipped: number
  readonly given: readonly Approval[]
}

export type Errand = 'release' | 'fan out' | 'pass over' | 'call off' | 'revive' | 'reopen'

export interface Approval {
  readonly by: string
  readonly comment?: string
  readonly data?: unknown
}

const jobColumns = literal(`
  id, name, state, seq, round, priority, open, plan, visible, begun, ends_as, ends_cause, compensated, correlation_id,
  traceparent, metadata, error, condition_steps, pawl.clock() as now, exists (select from pawl.errand where job_id = job.id) as has_errand`)

/** Locks the job, which locks its stages too: nobody writes to a stage without its job. */
export async function lockJob(sql: Sql, id: string): Promise<JobRow | undefined> {
  const [row] = await sql<JobRow>`select ${jobColumns} from pawl.job where id = ${id}::uuid for update`
  return row
}

/** Locks those of several jobs that nobody has locked: whoever holds some waits for no other. */
export function lockFreeJobs(sql: Sql, ids: readonly string[]): Promise<JobRow[]> {
  return sql<JobRow>`
    select ${jobColumns} from pawl.job where id = any(${ids}::uuid[]) order by id for update skip locked`
}

/** What was given to the whole job: it can be large, and only conditions look at it. */
export async function readJobInput(sql: Sql, jobId: string): Promise<{ input: unknown; bytes: number }> {
  const [row] = await sql<{ input: unknown; bytes: number }>`
    select input, coalesce(octet_length(input::text), 0) as bytes from pawl.job where id = ${jobId}::uuid`
  return row!
}

const stageColumns = literal(`
  s.id, s.job_id, s.name, s.kind, s.undoes, s.ordinal, s.state, s.seq, s.round, s.lane_id, s.open, s.plan,
  s.total, s.good, s.bad, s.partial, s.skipped, s.good - s.skipped as undoable, s.begun, s.bad_before, s.blocked,
  s.ended_in, s.ends_as, s.ends_cause, s.ends_hard, s.held, jsonb_array_length(s.approvals) as approvals,
  s.approvals as given, s.opening, s.errand, s.errand_at, s.errand is not null as busy, s.called_off,
  s.fanned, coalesce(json_array_length(s.fan), 0) - s.fanned as unfanned, s.listing, s.list_at,
  s.plan->'files'->>'outputs' is not null
    and exists (select from pawl.artifact where stage_id = s.id and won and state = 'uploaded') as unstored,
  s.plan->'files'->>'outputs' is not null
    and exists (select from pawl.artifact where stage_id = s.id and won and state = 'error') as output_lost`)

/** The stages of a job, in their order. */
export function readStages(sql: Sql, jobId: string): Promise<StageRow[]> {
  return sql<StageRow>`
    select ${stageColumns} from pawl.stage s where s.job_id = ${jobId}::uuid order by s.ordinal`
}

/** What settles have appended to the counts of a stage. */
export interface Tally {
  readonly total: number
  readonly good: number
  readonly bad: number
  readonly partial: number
  readonly skipped: number
  /** So many tasks have started. */
  readonly begun: number
  readonly blocked: number
}

export interface StagesToRead {
  /** Locked jobs. */
  readonly jobIds: readonly string[]
  /** Those of them that are read whole. */
  readonly whole: readonly string[]
  /** Of the others, these stages and the last one. */
  readonly stageIds: readonly string[]
}

/**
 * Takes what settles have appended to the counts of locked jobs, and reads stages: those that are asked for and those
 * that something was appended to. Whoever takes it adds it to the stage in the same transaction.
 */
export function takeTallies(
  sql: Sql,
  { jobIds, whole, stageIds }: StagesToRead,
): Promise<(StageRow & { tally: Tally | null })[]> {
  const inPart = jobIds.filter(id => !whole.includes(id))
  return sql`
    with taken as (
      delete from pawl.tally where job_id = any(${list(jobIds)}::uuid[]) returning *
    ), sums as materialized (
      select stage_id, sum(total) as total, sum(good) as good, sum(bad) as bad, sum(partial) as partial,
             sum(skipped) as skipped, sum(begun) as begun, sum(blocked) as blocked
        from taken group by stage_id
    )
    select ${stageColumns}, case when sums.stage_id is not null then to_json(sums) end as tally
      from pawl.stage s left join sums on sums.stage_id = s.id
     where s.id = any(array(
             select id from pawl.stage where job_id = any(${list(whole)}::uuid[])
              union all
             select unnest(${list(stageIds)}::uuid[])
              union all
             select (select id from pawl.stage where job_id = j.id order by ordinal desc limit 1)
               from unnest(${list(inPart)}::uuid[]) as j (id)
              union all
             select stage_id from sums))
     order by s.job_id, s.ordinal`
}

/** So that the babysitter goes on if whoever works on the job dies; taken away when there is nothing left to do. */
export async function setErrand(sql: Sql, jobId: string, isOpen: boolean): Promise<void> {
  if (isOpen) {
    await sql`insert into pawl.errand (job_id) values (${jobId}::uuid) on conflict (job_id) do update set at = pawl.clock()`
  } else await sql`delete from pawl.errand where job_id = ${jobId}::uuid`
}
