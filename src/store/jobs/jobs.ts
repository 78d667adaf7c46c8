/**
 * Rows of jobs and stages. They are only changed under the job's lock, so by one transaction at a time. A transaction
 * that moves a task only appends a row to the counts of its stage (`tally`) and locks nothing; the rows are added up
 * under the job's lock.
 */
import type { JobFacts, StageFacts } from '../../kernel/advance.ts'
import type { TaskPatch, TaskStep } from '../../kernel/decide.ts'
import type { JobPlan } from '../../kernel/plan.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
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
  /** The database's clock when the row was locked. */
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
  /** How many of the good tasks were skipped. */
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

/** Locks the job, and thereby its stages, because stages are only written under the lock of their job. */
export async function lockJob(sql: Sql, id: string): Promise<JobRow | undefined> {
  const [row] = await sql<JobRow>`select ${jobColumns} from pawl.job where id = ${id}::uuid for update`
  return row
}

/** Locks those of these jobs that are not locked. It never waits while it holds locks. */
export function lockFreeJobs(sql: Sql, ids: readonly string[]): Promise<JobRow[]> {
  return sql<JobRow>`
    select ${jobColumns} from pawl.job where id = any(${ids}::uuid[]) order by id for update skip locked`
}

/** The input of the job. It can be large, and only conditions need it. */
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

/** Changes that settles have appended to the counts of a stage. */
export interface Tally {
  readonly total: number
  readonly good: number
  readonly bad: number
  readonly partial: number
  readonly skipped: number
  /** Number of tasks that have started. */
  readonly begun: number
  readonly blocked: number
}

export interface StagesToRead {
  /** Locked jobs. */
  readonly jobIds: readonly string[]
  /** The jobs whose stages are all read. */
  readonly whole: readonly string[]
  /** For the other jobs, these stages and the last one are read. */
  readonly stageIds: readonly string[]
}

/**
 * Deletes and returns the appended counts of locked jobs, and reads stages: the requested ones and those that have
 * appended counts. The caller must add the counts to the stages in the same transaction.
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

/** Creates or deletes the job's errand, by which the babysitter continues the work if this process dies. */
export async function setErrand(sql: Sql, jobId: string, isOpen: boolean): Promise<void> {
  if (isOpen) {
    await sql`insert into pawl.errand (job_id) values (${jobId}::uuid) on conflict (job_id) do update set at = pawl.clock()`
  } else await sql`delete from pawl.errand where job_id = ${jobId}::uuid`
}

/** The changes of one task's transition to the counts of its stage. */
interface Delta extends Omit<Tally, 'total'> {
  readonly jobId: string
  readonly stageId: string
}

interface Moved {
  readonly task: {
    readonly state: TaskState
    readonly partial: boolean
    readonly jobId: string | null
    readonly stageId: string | null
  }
  readonly steps: readonly TaskStep[]
  readonly patch: TaskPatch
}

/** Returns nothing for a stand-alone task. */
function deltasOf({ task, steps, patch }: Moved): Delta[] {
  const { jobId, stageId } = task
  if (jobId === null || stageId === null) return []
  const before = countsOf(task.state, task.partial)
  const after = countsOf(steps.at(-1)!.to, patch.partial ?? task.partial)
  return [
    {
      jobId,
      stageId,
      good: after.good - before.good,
      bad: after.bad - before.bad,
      partial: after.partial - before.partial,
      skipped: after.skipped - before.skipped,
      begun: steps.some(({ to, type }) => to === 'running' && type === undefined) ? 1 : 0,
      blocked: after.blocked - before.blocked,
    },
  ]
}

function countsOf(state: TaskState, isPartial: boolean) {
  const { outcome } = taskLifecycle.states[state]
  return {
    good: outcome === 'good' ? 1 : 0,
    bad: outcome === 'bad' ? 1 : 0,
    partial: outcome === 'good' && isPartial ? 1 : 0,
    skipped: state === 'skipped' ? 1 : 0,
    blocked: state === 'blocked' ? 1 : 0,
  }
}

/** Appends the changes of these transitions to the counts of their stages. */
export async function appendTally(sql: Sql, moves: readonly Moved[]): Promise<void> {
  const deltas = moves.flatMap(deltasOf)
  if (deltas.length === 0) return
  await sql`
    insert into pawl.tally (job_id, stage_id, good, bad, partial, skipped, begun, blocked)
    select job_id, stage_id, sum(good), sum(bad), sum(partial), sum(skipped), sum(begun), sum(blocked)
      from unnest(${list(deltas.map(({ jobId }) => jobId))}::uuid[],
                  ${list(deltas.map(({ stageId }) => stageId))}::uuid[], ${list(deltas.map(({ good }) => good))}::int[],
                  ${list(deltas.map(({ bad }) => bad))}::int[], ${list(deltas.map(({ partial }) => partial))}::int[],
                  ${list(deltas.map(({ skipped }) => skipped))}::int[], ${list(deltas.map(({ begun }) => begun))}::int[],
                  ${list(deltas.map(({ blocked }) => blocked))}::int[])
        as d (job_id, stage_id, good, bad, partial, skipped, begun, blocked)
     group by job_id, stage_id`
}

export interface StageCount {
  readonly id: string
  readonly jobId: string
  readonly state: string
  readonly failFast: boolean
  /** It limits how many tasks run at once. */
  readonly isLimited: boolean
  readonly tolerate: { count?: number; percent?: number }
  readonly total: number
  readonly good: number
  readonly bad: number
  readonly badBefore: number
  readonly begun: boolean
  /** A task has started, and the job row does not say so yet. */
  readonly beginsJob: boolean
  /** Number of appended rows that are not added up yet. */
  readonly appended: number
}

/** The current counts of stages, including appended rows, without locks. */
export function readStageCounts(sql: Sql, stageIds: readonly string[]): Promise<StageCount[]> {
  return sql<StageCount>`
    select s.id, s.job_id, s.state, coalesce((s.plan->>'failFast')::boolean, true) as fail_fast,
           coalesce(s.plan->'tolerate', '{}') as tolerate, s.bad_before, s.plan->>'parallelism' is not null as is_limited,
           (s.total + t.total)::int as total, (s.good + t.good)::int as good, (s.bad + t.bad)::int as bad,
           s.begun or t.begun > 0 as begun, t.begun > 0 and not j.begun as begins_job, t.appended
      from pawl.stage s
      join pawl.job j on j.id = s.job_id
     cross join lateral (
             select coalesce(sum(total), 0) as total, coalesce(sum(good), 0) as good, coalesce(sum(bad), 0) as bad,
                    coalesce(sum(begun), 0) as begun, count(*)::int as appended
               from pawl.tally where job_id = s.job_id and stage_id = s.id) as t
     where s.id = any(${stageIds}::uuid[])`
}
