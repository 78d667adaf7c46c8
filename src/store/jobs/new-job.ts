/** Inserts a new job, its stages and, in batches, their tasks, each with its first event. */
import type { JobPlan, Openness, StagePlan } from '../../kernel/plan.ts'
import type { TaskSettings } from '../../kernel/settings.ts'
import { viaIndex } from '../driver/plans.ts'
import { json, list, type Sql } from '../driver/sql.ts'
import { longTaskBytes, tasksPerPlace } from '../tasks/enqueue.ts'
import { expectedVersions, type PayloadVersions, throwIfStale } from '../tasks/payload-schemas.ts'

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

export interface StageTasks {
  readonly stageId: string
  /** Blocked until the stage opens; queued if it is open. */
  readonly state: 'blocked' | 'queued'
  readonly settings: Partial<TaskSettings> | null
  readonly tasks: readonly StageTask[]
}

export interface StageTask {
  readonly id: string
  readonly type: string
  /** JSON text. */
  readonly payload: string
  /** Values that few tasks have of their own. */
  readonly own?: {
    /** They override the settings of the stage. */
    readonly settings?: Partial<TaskSettings>
    readonly metadata?: Record<string, unknown>
    /** Null: none, whatever its stage or job has. */
    readonly traceparent?: string | null
  }
}

export interface JobOfTasks {
  readonly id: string
  readonly correlationId: string | null
  readonly traceparent: string | null
}

/**
 * Inserts tasks of one stage or many: rows, first events and, for queued tasks, rows of `due`. The caller counts them.
 * Throws `StaleSchemas`, and inserts nothing, if a payload was checked against a schema that is not the current one.
 */
export async function insertStageTasks(
  sql: Sql,
  job: JobOfTasks,
  stages: readonly StageTasks[],
  actor: string,
  versions: PayloadVersions,
): Promise<void> {
  const rows = stages.flatMap(({ tasks }, stage) =>
    tasks.map((task, index) => ({ ...task, stage: stage + 1, place: placeOf(task, index) })),
  )
  if (rows.length === 0) return
  const owned = rows.some(({ own }) => own !== undefined) ? rows.map(({ own }) => json(own)) : null
  const expected = expectedVersions(
    rows.map(({ type }) => type),
    versions,
  )
  const stale = await sql<{ type: string }>`
    with
    -- Types with another schema than the payloads were checked against. If there is one, nothing is inserted.
    stale as materialized (
      select tt.type
        from unnest(${expected.types}::text[], ${expected.versions}::text[]) as c (type, version)
        join pawl.task_type tt on tt.type = ${viaIndex('c.type')} and tt.payload_version <> coalesce(c.version, '')
    ),
    -- One row per stage, with the values that its tasks share.
    kind as materialized (
      select k.n, k.stage_id, k.state, k.settings, s.lane_id, s.plan->'taskMetadata' as metadata,
             greatest(pawl.clock(), (s.plan->>'runAt')::timestamptz) as run_at,
             coalesce(s.plan->>'traceparent', ${job.traceparent}::text) as traceparent
        from unnest(${list(stages.map(({ stageId }) => stageId))}::uuid[], ${stages.map(({ state }) => state)}::text[],
                    ${stages.map(({ settings }) => json(settings))}::jsonb[]) with ordinality as k (stage_id, state, settings, n)
        join pawl.stage s on s.id = ${viaIndex('k.stage_id')}
       where not exists (select from stale)
    ),
    -- One row per task: its own values, else those of its stage.
    resolved as (
      select i.id, i.type, i.payload, i.place, i.own, kind.stage_id, kind.state, kind.lane_id, kind.run_at,
             coalesce(i.own->'metadata', kind.metadata) as metadata,
             case when i.own ? 'settings' then coalesce(kind.settings, '{}') || (i.own->'settings')
                  else kind.settings end as settings,
             case when i.own ? 'traceparent' then i.own->>'traceparent' else kind.traceparent end as traceparent
        from unnest(${list(rows.map(({ id }) => id))}::uuid[], ${list(rows.map(({ stage }) => stage))}::int[],
                    ${list(rows.map(({ place }) => place))}::int[], ${rows.map(({ type }) => type)}::text[],
                    ${rows.map(({ payload }) => payload)}::json[], ${owned}::jsonb[])
          as i (id, stage, place, type, payload, own)
        join kind on kind.n = i.stage
    ),
    -- The same with its time to live, which may come from its type.
    input as materialized (
      select resolved.*,
             pawl.clock() + make_interval(secs => pawl.setting(resolved.settings, tt.settings, 'expireInSeconds')) as expire_at
        from resolved left join pawl.task_type tt on tt.type = resolved.type
    ),
    -- Rows and first events.
    made as (
      insert into pawl.task (id, lane_id, seq, round, epoch, state, type, run_at, expire_at, correlation_id, traceparent,
                             payload, settings, metadata, job_id, stage_id, history)
      select id, lane_id, 1, 1, 0, state, type, run_at, expire_at, ${job.correlationId}::text, traceparent,
             payload, settings, metadata, ${job.id}::uuid, stage_id,
             array[row(pawl.clock(), 0, state, null, ${actor}::text, null, null)::pawl.step]
        from input
    ),
    -- Queued tasks enter the queue, in groups that share a row of due.
    due_entry as (
      insert into pawl.due (lane_id, run_at, id, ids, type, bytes)
      select lane_id, run_at, (array_agg(id order by id))[1], array_agg(id order by id), type,
             case when place < 0 then max(pawl.estimated_bytes(payload)) end
        from input where state = 'queued' group by lane_id, run_at, type, place
    ),
    -- Their times to live.
    expiry_entry as (
      insert into pawl.expiry (at, task_id) select expire_at, id from input where expire_at is not null
    ),
    -- Adds the events to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', array_agg(id), array_fill(1, array[count(*)::int]) from input having count(*) > 0
    )
    select type from stale`
  throwIfStale(stale.map(({ type }) => type))
}

/** Tasks with the same number share a row of `due`. The number of a long task is negative, and its own. */
function placeOf({ payload }: StageTask, index: number): number {
  return payload.length > longTaskBytes ? -1 - index : Math.floor(index / tasksPerPlace)
}

/** Appends blocked tasks that were inserted to the counts of their stage. */
export async function countBlocked(
  sql: Sql,
  { id, jobId }: { readonly id: string; readonly jobId: string },
  tasks: number,
): Promise<void> {
  await sql`
    insert into pawl.tally (job_id, stage_id, total, blocked)
    values (${jobId}::uuid, ${id}::uuid, ${tasks}::int, ${tasks}::int)`
}
