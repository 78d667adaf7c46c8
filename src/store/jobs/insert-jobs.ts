/** Inserts small jobs complete: jobs, stages, lanes and tasks, in the states in which they begin, with their events. */
import type { JobPlan, Openness } from '../../kernel/plan.ts'
import { viaIndex } from '../driver/plans.ts'
import { json, list, type Sql } from '../driver/sql.ts'
import { longTaskBytes, tasksPerPlace } from '../tasks/enqueue.ts'
import { throwIfStale } from '../tasks/payload-schemas.ts'

export interface SmallJob {
  readonly id: string
  readonly plan: Omit<JobPlan, 'stages'>
  readonly actor: string
  readonly state: 'created' | 'pending'
  readonly stages: readonly SmallStage[]
  /** Versions of the payload schemas that its payloads were checked against. */
  readonly payloadVersions: ReadonlyMap<string, string>
}

export interface SmallStage {
  readonly id: string
  readonly name: string
  /** Type of its tasks; null: it has none. */
  readonly type: string | null
  /** The stage's plan as JSON text. */
  readonly plan: string
  readonly open: Openness
  readonly state: 'created' | 'pending'
  /** Whether its tasks are blocked until it opens. */
  readonly isBlocked: boolean
  /** Payloads are JSON text. */
  readonly tasks: readonly { readonly id: string; readonly payload: string }[]
}

/**
 * Inserts jobs, visible and with their first stages open. Returns the time of their events. The joins are nested loops
 * (plans.ts): the caller limits the number of stages and tasks. Throws `StaleSchemas` if a payload has to be checked
 * again.
 */
export async function insertJobs(sql: Sql, jobs: readonly SmallJob[]): Promise<Date> {
  const stages = jobs.flatMap((job, index) =>
    job.stages.map((stage, ordinal) => ({ ...stage, ordinal, job: index + 1 })),
  )
  const tasks = stages.flatMap(({ tasks }, index) =>
    tasks.map((task, place) => ({ ...task, stage: index + 1, place: Math.floor(place / tasksPerPlace) })),
  )
  const expected = jobs.flatMap(expectedTypes)
  const [done] = await sql<{ now: Date; stale: string[] | null }>`
    with
    -- Types with another schema than the payloads were checked against. If there is one, nothing is inserted.
    stale as materialized (
      select tt.type
        from unnest(${expected.map(({ type }) => type)}::text[], ${expected.map(({ version }) => version)}::text[])
          as c (type, version)
        join pawl.task_type tt on tt.type = ${viaIndex('c.type')} and tt.payload_version <> coalesce(c.version, '')
    ),
    -- One row per job. The plan holds what has no column of its own.
    new_job as materialized (
      select * from unnest(${list(jobs.map(({ id }) => id))}::uuid[], ${jobs.map(({ actor }) => actor)}::text[],
                           ${jobs.map(({ state }) => state)}::text[], ${jobs.map(({ plan }) => json(plan.input))}::json[],
                           ${jobs.map(({ plan: { input: _, id: _id, ...plan } }) => json(plan))}::jsonb[])
          with ordinality as j (id, actor, state, input, plan, n)
       where not exists (select from stale)
    ),
    -- One row per stage.
    new_stage as materialized (
      select s.*, j.id as job_id, j.actor, j.plan as job_plan, (j.plan->>'priority')::int as priority
        from unnest(${list(stages.map(({ id }) => id))}::uuid[], ${list(stages.map(({ job }) => job))}::int[],
                    ${list(stages.map(({ ordinal }) => ordinal))}::int[], ${stages.map(({ name }) => name)}::text[],
                    ${stages.map(({ plan }) => plan)}::jsonb[], ${stages.map(({ open }) => open)}::text[],
                    ${stages.map(({ state }) => state)}::text[], ${stages.map(({ isBlocked }) => isBlocked)}::boolean[],
                    ${list(stages.map(({ tasks }) => tasks.length))}::int[])
               with ordinality as s (id, job, ordinal, name, plan, open, state, is_blocked, total, n)
        join new_job j on j.n = s.job
    ),
    -- A lane is open if its stage is. The queue is that of the plan, else the type, else the name of the stage.
    new_lane as (
      insert into pawl.lane (queue, stage_id, priority, rank, open, job_id, parallelism, soft_at, hard_at)
      select coalesce(plan->>'queue', plan->>'task', name), id, priority, priority, state = 'pending', job_id,
             (plan->>'parallelism')::int,
             pawl.clock() + make_interval(secs => (job_plan->>'softDeadlineSeconds')::float8),
             pawl.clock() + make_interval(secs => (job_plan->>'hardDeadlineSeconds')::float8)
        from new_stage
      returning id, stage_id
    ),
    made_job as (
      insert into pawl.job (id, name, seq, round, state, priority, input, metadata, correlation_id, traceparent, plan, open,
                            stale_seconds, visible, deadline_at, history)
      select id, plan->>'name', cardinality(history), 1, state, (plan->>'priority')::int, input,
             nullif(plan->'metadata', 'null'), plan->>'correlationId', plan->>'traceparent', plan, plan->>'open',
             (plan->>'staleSeconds')::float8, true,
             case when state = 'pending'
                  then pawl.clock() + make_interval(secs => (plan->>'deadlineSeconds')::float8) end, history
        from new_job
       cross join lateral (
               select row(pawl.clock(), 0, 'created', 'job.created', actor, 'submitted', null)::pawl.step as created,
                      row(pawl.clock(), 0, 'pending', 'job.pending', actor, 'submitted', null)::pawl.step as started) as step
       cross join lateral (
               select case when state = 'created' then array[created] else array[created, started] end as history) as h
       order by n
      returning id, seq
    ),
    made_stage as (
      insert into pawl.stage (id, job_id, name, seq, round, state, ordinal, plan, metadata, lane_id, open, total, blocked,
                              listing, history)
      select s.id, job_id, name, cardinality(history), 1, state, ordinal, plan, nullif(plan->'metadata', 'null'),
             new_lane.id, open, total, case when is_blocked then total else 0 end,
             case when plan->'files'->'inputs' <> 'null' then 'wanted' end, history
        from new_stage s
        join new_lane on new_lane.stage_id = s.id
       cross join lateral (
               select row(pawl.clock(), 0, 'created', 'stage.created', actor, 'submitted', null)::pawl.step as created,
                      row(pawl.clock(), 0, 'pending', 'stage.pending', 'engine', 'needs_met', null)::pawl.step as opened)
                  as step
       cross join lateral (
               select case when state = 'created' then array[created] else array[created, opened] end as history) as h
       order by s.n
      returning id, seq
    ),
    -- One row per task, with what it has from its stage, job and type.
    new_task as materialized (
      select i.id, i.place, i.payload, s.id as stage_id, s.job_id, s.actor, new_lane.id as lane_id, s.plan->>'task' as type,
             case when s.is_blocked then 'blocked' else 'queued' end as state, s.plan->'taskMetadata' as metadata,
             s.plan->'settings' as settings, s.job_plan->>'correlationId' as correlation_id,
             greatest(pawl.clock(), (s.plan->>'runAt')::timestamptz) as run_at,
             coalesce(s.plan->>'traceparent', s.job_plan->>'traceparent') as traceparent,
             pawl.clock() + make_interval(secs => pawl.setting(s.plan->'settings', tt.settings, 'expireInSeconds'))
               as expire_at
        from unnest(${list(tasks.map(({ id }) => id))}::uuid[], ${list(tasks.map(({ stage }) => stage))}::int[],
                    ${list(tasks.map(placeOf))}::int[], ${tasks.map(({ payload }) => payload)}::json[])
          as i (id, stage, place, payload)
        join new_stage s on s.n = i.stage
        join new_lane on new_lane.stage_id = s.id
        left join pawl.task_type tt on tt.type = s.plan->>'task'
    ),
    made_task as (
      insert into pawl.task (id, lane_id, seq, round, epoch, state, type, run_at, expire_at, correlation_id, traceparent,
                             payload, settings, metadata, job_id, stage_id, history)
      select id, lane_id, 1, 1, 0, state, type, run_at, expire_at, correlation_id, traceparent, payload, settings, metadata,
             job_id, stage_id, array[row(pawl.clock(), 0, state, null, actor, null, null)::pawl.step]
        from new_task
    ),
    -- Queued tasks enter the queue, in groups that share a row of due.
    due_entry as (
      insert into pawl.due (lane_id, run_at, id, ids, type, bytes)
      select lane_id, run_at, (array_agg(id order by id))[1], array_agg(id order by id), type,
             case when place < 0 then max(pawl.estimated_bytes(payload)) end
        from new_task where state = 'queued' group by lane_id, run_at, type, place
    ),
    -- Times to live.
    expiry_entry as (
      insert into pawl.expiry (at, task_id) select expire_at, id from new_task where expire_at is not null
    ),
    -- First everything that was created, then the first moves.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'job', array_agg(id), array_agg(1) from made_job having count(*) > 0
       union all
      select 'stage', array_agg(id), array_agg(1) from made_stage having count(*) > 0
       union all
      select 'task', array_agg(id), array_agg(1) from new_task having count(*) > 0
       union all
      select 'stage', array_agg(id), array_agg(seq) from made_stage where seq > 1 having count(*) > 0
       union all
      select 'job', array_agg(id), array_agg(seq) from made_job where seq > 1 having count(*) > 0
    )
    select pawl.clock() as now, (select array_agg(type) from stale) as stale`
  throwIfStale(done!.stale ?? [])
  return done!.now
}

/** The types of a job's first tasks, each with the version of its schema that the payloads were checked against. */
function expectedTypes({ stages, payloadVersions }: SmallJob) {
  const types = stages.flatMap(({ type, tasks }) => (type !== null && tasks.length > 0 ? [type] : []))
  return [...new Set(types)].map(type => ({ type, version: payloadVersions.get(type) ?? null }))
}

/** Tasks with the same number share a row of `due`. The number of a long task is negative, and its own. */
function placeOf({ payload, place }: { readonly payload: string; readonly place: number }, index: number): number {
  return payload.length > longTaskBytes ? -1 - index : place
}
