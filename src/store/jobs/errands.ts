/**
 * Changes to many tasks of a stage, made in batches under the lock of the job. Each batch continues after the last task
 * of the previous one, so no task is read twice.
 */

import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { list, type Sql } from '../driver/sql.ts'

/** The progress of a batch: the last task that it read, and how many it read. */
export interface Batch {
  readonly last: string | null
  readonly seen: number
}

const start = '00000000-0000-0000-0000-000000000000'

/** The last task of a stage's next batch; null: the batch reaches the end. */
export async function findEndOfBatch(
  sql: Sql,
  { stageId, after, limit }: { stageId: string; after: string | null; limit: number },
): Promise<string | null> {
  const [last] = await sql<{ id: string }>`
    select id from pawl.task where stage_id = ${stageId}::uuid and id > ${after ?? start}::uuid
     order by id offset ${limit - 1}::int limit 1`
  return last?.id ?? null
}

/** A stage, and the task after which its next batch begins. */
export interface StageCursor {
  readonly id: string
  readonly errandAt: string | null
}

export interface SkippedBatch extends Batch {
  readonly stageId: string
  readonly skipped: number
}

/**
 * Skips the next blocked tasks of these stages, because their branch is not taken. The caller adds them to the counts
 * of their stages. `limit` applies to each stage; null: all tasks.
 */
export function skipBlocked(
  sql: Sql,
  stages: readonly (StageCursor & { readonly endsCause: string | null })[],
  limit: number | null,
): Promise<SkippedBatch[]> {
  return sql<SkippedBatch>`
    with batch as materialized (
      select t.id, t.stage_id, s.cause
        from unnest(${list(stages.map(({ id }) => id))}::uuid[],
                    ${list(stages.map(({ errandAt }) => errandAt ?? start))}::uuid[],
                    ${stages.map(({ endsCause }) => endsCause ?? 'skipped')}::text[]) as s (id, after, cause)
       cross join lateral (
               select id, stage_id from pawl.task
                where stage_id = s.id and id > s.after order by id limit ${limit}::int) as t
    ), moved as (
      update pawl.task t
         set state    = 'skipped',
             seq      = t.seq + 1,
             ended_at = ${nextTime('t')},
             history  = t.history || row(${nextTime('t')}, t.epoch, 'skipped', null,
                                         'engine', batch.cause, null)::pawl.step
        from batch where t.id = ${viaIndex('batch.id')} and t.state = 'blocked'
      returning t.id, t.stage_id, t.seq
    ), feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', array_agg(id), array_agg(seq) from moved having count(*) > 0
    )
    select stage_id, (array_agg(id order by id desc))[1] as last, count(*)::int as seen,
           count(*) filter (where id = any(array(select id from moved)))::int as skipped
      from batch group by stage_id`
}

/** The next tasks of these stages, in the order of their ids. `limit` applies to each stage; null: all tasks. */
export function tasksAfter(
  sql: Sql,
  stages: readonly StageCursor[],
  limit: number | null,
): Promise<{ id: string; isEnded: boolean }[]> {
  return sql<{ id: string; isEnded: boolean }>`
    select t.*
      from unnest(${list(stages.map(({ id }) => id))}::uuid[],
                  ${list(stages.map(({ errandAt }) => errandAt ?? start))}::uuid[]) as s (id, after)
     cross join lateral (
             select id, ended_at is not null as is_ended from pawl.task
              where stage_id = s.id and id > s.after order by id limit ${limit}::int) as t
     order by t.id`
}

/** The outputs of stages, by stage id, for conditions. Null if they are larger than the limit. */
export interface Outputs {
  /** The outputs of tasks, in their order; null for a task without output. */
  readonly outputs: Readonly<Record<string, unknown[]>> | null
  /** The values of stages without tasks. */
  readonly values: Readonly<Record<string, unknown>> | null
  readonly bytes: number
}

/** Reads the outputs of stages, if they have at most `maxBytes` bytes in total. */
export async function readOutputs(
  sql: Sql,
  { tasksOf, valuesOf }: { tasksOf: readonly string[]; valuesOf: readonly string[] },
  maxBytes: number,
): Promise<Outputs> {
  if (tasksOf.length === 0) return { outputs: {}, values: {}, bytes: 0 }
  const [row] = await sql<Outputs>`
    with size as materialized (
      select coalesce((select sum(octet_length(output::text)) from pawl.task
                        where stage_id = any(${tasksOf}::uuid[])), 0)
           + coalesce((select sum(octet_length(fan::text)) from pawl.stage
                        where id = any(${valuesOf}::uuid[])), 0) as bytes
    )
    select bytes::float8 as bytes,
           case when bytes <= ${maxBytes}::bigint then (
             select coalesce(json_object_agg(s.id, coalesce(o.outputs, '[]'::json)), '{}'::json)
               from unnest(${tasksOf}::uuid[]) as s (id)
              cross join lateral (
                      select json_agg(coalesce(t.output, 'null'::json) order by t.id) as outputs
                        from pawl.task t where t.stage_id = ${viaIndex('s.id')}) as o) end as outputs,
           case when bytes <= ${maxBytes}::bigint then (
             select coalesce(json_object_agg(id, fan->0), '{}'::json) from pawl.stage
              where id = any(${valuesOf}::uuid[])) end as values
      from size`
  return row!
}

/** The succeeded tasks of a stage, which a compensation undoes. */
export function readSucceededTasks(
  sql: Sql,
  stageId: string,
): Promise<{ id: string; payload: unknown; output: unknown }[]> {
  return sql`
    select id, payload, output from pawl.task
     where stage_id = ${stageId}::uuid and state = 'succeeded' order by id desc`
}

/** The next elements of the list that a stage turns into tasks. */
export async function readListElements(sql: Sql, stageId: string, from: number, limit: number): Promise<unknown[]> {
  const [row] = await sql<{ slice: unknown[] }>`
    select coalesce(json_agg(e.value order by e.n), '[]'::json) as slice
      from pawl.stage s cross join lateral json_array_elements(s.fan) with ordinality as e (value, n)
     where s.id = ${stageId}::uuid and e.n > ${from}::int and e.n <= ${from + limit}::int`
  return row!.slice
}
