/** Inserts the tasks of stages in batches, for one stage or many. */
import type { TaskSettings } from '../../kernel/settings.ts'
import { viaIndex } from '../driver/plans.ts'
import { json, list, type Sql } from '../driver/sql.ts'
import { tasksPerPlace } from '../tasks/enqueue.ts'

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

/** Inserts rows, first events and, for queued tasks, rows of `due`. The caller counts them. */
export async function insertStageTasks(
  sql: Sql,
  job: JobOfTasks,
  stages: readonly StageTasks[],
  actor: string,
): Promise<void> {
  const rows = stages.flatMap(({ tasks }, stage) =>
    tasks.map((task, index) => ({ ...task, stage: stage + 1, place: Math.floor(index / tasksPerPlace) })),
  )
  if (rows.length === 0) return
  const owned = rows.some(({ own }) => own !== undefined) ? rows.map(({ own }) => json(own)) : null
  await sql`
    with
    -- One row per stage, with the values that its tasks share.
    kind as materialized (
      select k.n, k.stage_id, k.state, k.settings, s.lane_id, s.plan->'taskMetadata' as metadata,
             greatest(pawl.clock(), (s.plan->>'runAt')::timestamptz) as run_at,
             coalesce(s.plan->>'traceparent', ${job.traceparent}::text) as traceparent
        from unnest(${list(stages.map(({ stageId }) => stageId))}::uuid[], ${stages.map(({ state }) => state)}::text[],
                    ${stages.map(({ settings }) => json(settings))}::jsonb[]) with ordinality as k (stage_id, state, settings, n)
        join pawl.stage s on s.id = ${viaIndex('k.stage_id')}
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
      insert into pawl.due (lane_id, run_at, id, ids, type)
      select lane_id, run_at, (array_agg(id order by id))[1], array_agg(id order by id), type
        from input where state = 'queued' group by lane_id, run_at, type, place
    ),
    -- Their times to live.
    expiry_entry as (
      insert into pawl.expiry (at, task_id) select expire_at, id from input where expire_at is not null
    )
    insert into pawl.change (entity, ids, seqs)
    select 'task', array_agg(id), array_fill(1, array[count(*)::int]) from input`
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
