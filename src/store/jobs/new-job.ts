/** Inserts a new job and its stages, each with its first event. The tasks follow in batches (stage-tasks.ts). */
import type { JobPlan, Openness, StagePlan } from '../../kernel/plan.ts'
import { json, type Sql } from '../driver/sql.ts'

export interface NewJob {
  readonly id: string
  readonly plan: Omit<JobPlan, 'stages'>
  readonly clonedFrom: string | null
}

/** Inserts a job that is invisible and does not run until it is shown. */
export async function insertJob(sql: Sql, { id, plan, clonedFrom }: NewJob, actor: string): Promise<void> {
  const { input, ...rest } = plan
  await sql`
    with made as (
      insert into pawl.job (id, name, seq, round, state, priority, input, metadata, correlation_id, traceparent, plan, open,
                            stale_seconds, cloned_from, history)
      values (${id}::uuid, ${plan.name}, 1, 1, 'created', ${plan.priority}, ${json(input)}::json,
              ${json(plan.metadata)}::jsonb, ${plan.correlationId}, ${plan.traceparent}, ${json(rest)}::jsonb, ${plan.open},
              ${plan.staleSeconds}::float8, ${clonedFrom}::uuid,
              array[row(pawl.clock(), 0, 'created', 'job.created', ${actor}::text, 'submitted', null)::pawl.step])
      returning id, seq
    )
    insert into pawl.change (entity, ids, seqs) select 'job', array[id], array[seq] from made`
}

/**
 * Marks a submission that is written in batches as active, so that the babysitter does not delete it. Returns false if
 * it was deleted already.
 */
export async function touchSubmission(sql: Sql, jobId: string): Promise<boolean> {
  const rows = await sql`
    update pawl.job set progress_at = pawl.clock()
     where id = ${jobId}::uuid and not visible and ended_at is null and ends_as is null
    returning id`
  return rows.length > 0
}

export interface NewStage {
  readonly id: string
  readonly ordinal: number
  readonly kind: 'work' | 'undo'
  readonly undoes: string | null
  readonly plan: StagePlan
  readonly open: Openness
  /** A list whose elements become tasks when the stage opens. */
  readonly fan: readonly unknown[] | null
  /** Number of tasks that follow, and how many of them are blocked until the stage opens. */
  readonly total: number
  readonly blocked: number
}

interface JobOfStages {
  readonly id: string
  readonly priority: number
  readonly plan: Pick<JobPlan, 'softDeadlineSeconds' | 'hardDeadlineSeconds'>
}

/**
 * Maximum number of stages per statement. Statements join with nested loops (plans.ts), so their cost grows with the
 * square of this.
 */
export const stagesPerStatement = 250

/**
 * Inserts stages with closed lanes. The queue is that of the plan, else the type, else the name of the stage. The
 * deadlines of a stage that is added later are those of its job, counted from its submission.
 */
export async function insertStages(
  sql: Sql,
  job: JobOfStages,
  stages: readonly NewStage[],
  actor = 'engine',
): Promise<void> {
  for (let from = 0; from < stages.length; from += stagesPerStatement) {
    await insertStageBatch(sql, job, stages.slice(from, from + stagesPerStatement), actor)
  }
}

async function insertStageBatch(sql: Sql, job: JobOfStages, stages: readonly NewStage[], actor: string): Promise<void> {
  const { softDeadlineSeconds: soft, hardDeadlineSeconds: hard } = job.plan
  await sql`
    with new as materialized (
      select * from unnest(${stages.map(({ id }) => id)}::uuid[], ${stages.map(({ ordinal }) => ordinal)}::int[],
                           ${stages.map(({ kind }) => kind)}::text[], ${stages.map(({ undoes }) => undoes)}::uuid[],
                           ${stages.map(({ plan }) => plan.name)}::text[],
                           ${stages.map(({ plan: { payloads: _, taskId: _id, ...plan } }) => json(plan))}::jsonb[],
                           ${stages.map(({ open }) => open)}::text[], ${stages.map(({ fan }) => json(fan))}::json[],
                           ${stages.map(({ total }) => total)}::int[], ${stages.map(({ blocked }) => blocked)}::int[])
        as n (id, ordinal, kind, undoes, name, plan, open, fan, total, blocked)
    ), lanes as (
      insert into pawl.lane (queue, stage_id, priority, rank, open, job_id, parallelism, soft_at, hard_at)
      select coalesce(plan->>'queue', plan->>'task', name), id, ${job.priority}, ${job.priority}, false, ${job.id}::uuid,
             (plan->>'parallelism')::int, j.begun_at + make_interval(secs => ${soft}::float8),
             j.begun_at + make_interval(secs => ${hard}::float8)
        from new cross join (select (history[1]).ts as begun_at from pawl.job where id = ${job.id}::uuid) as j
      returning id, stage_id
    ), made as (
      insert into pawl.stage (id, job_id, name, seq, round, state, ordinal, kind, undoes, plan, metadata, lane_id, open, fan,
                              total, blocked, listing, history)
      select new.id, ${job.id}::uuid, name, 1, 1, 'created', ordinal, kind, undoes, plan, nullif(plan->'metadata', 'null'),
             lanes.id, open, fan, total + coalesce(json_array_length(fan), 0), blocked,
             case when plan->'files'->'inputs' <> 'null' then 'wanted' end,
             array[row(pawl.clock(), 0, 'created', 'stage.created', ${actor}::text, 'submitted', null)::pawl.step]
        from new join lanes on lanes.stage_id = new.id
      returning id, seq, ordinal
    )
    insert into pawl.change (entity, ids, seqs)
    select 'stage', array_agg(id order by ordinal), array_agg(seq order by ordinal) from made`
}
