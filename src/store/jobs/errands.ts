/**
 * What is done to many tasks of a stage, batch by batch, each under the lock of their job. A batch goes on behind the
 * task where the one before it stopped, so no task is looked at twice.
 */

import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { list, type Sql } from '../driver/sql.ts'

/** How far a batch came: the last task that it looked at, and how many it looked at. */
export interface Batch {
  readonly last: string | null
  readonly seen: number
}

const start = '00000000-0000-0000-0000-000000000000'

/** How far a batch of a stage's tasks goes: its last task; null: to the end. */
export async function endOfBatch(
  sql: Sql,
  { stageId, after, limit }: { stageId: string; after: string | null; limit: number },
): Promise<string | null> {
  const [last] = await sql<{ id: string }>`
    select id from pawl.task where stage_id = ${stageId}::uuid and id > ${after ?? start}::uuid
     order by id offset ${limit - 1}::int limit 1`
  return last?.id ?? null
}

/** A stage, and the task after which its next batch begins. */
export interface StageFrom {
  readonly id: string
  readonly errandAt: string | null
}

export interface PassedOver extends Batch {
  readonly stageId: string
  readonly skipped: number
}

/**
 * Passes the next blocked tasks of these stages over: their branch is not taken. Whoever asks adds them to the counts of
 * their stages. `limit`: of each; null: all.
 */
export function skipBlocked(
  sql: Sql,
  stages: readonly (StageFrom & { readonly endsCause: string | null })[],
  limit: number | null,
): Promise<PassedOver[]> {
  return sql<PassedOver>`
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

/** The next tasks of these stages, in the order of their ids. `limit`: of each; null: all. */
export function tasksAfter(
  sql: Sql,
  stages: readonly StageFrom[],
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

/** What conditions can see of stages, by their ids; null: it is larger than was asked for. */
export interface Outputs {
  /** The outputs of tasks, in their order; null where there is none. */
  readonly outputs: Readonly<Record<string, unknown[]>> | null
  /** What stages without tasks have given. */
  readonly values: Readonly<Record<string, unknown>> | null
  readonly bytes: number
}

/** Reads what stages have put out, if all of it has at most so many bytes. */
export async function outputsOf(
  sql: Sql,
  { tasksOf, valuesOf }: { tasksOf: readonly string[]; valuesOf: readonly string[] },
  mostBytes: number,
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
           case when bytes <= ${mostBytes}::bigint then (
             select coalesce(json_object_agg(s.id, coalesce(o.outputs, '[]'::json)), '{}'::json)
               from unnest(${tasksOf}::uuid[]) as s (id)
              cross join lateral (
                      select json_agg(coalesce(t.output, 'null'::json) order by t.id) as outputs
                        from pawl.task t where t.stage_id = ${viaIndex('s.id')}) as o) end as outputs,
           case when bytes <= ${mostBytes}::bigint then (
             select coalesce(json_object_agg(id, fan->0), '{}'::json) from pawl.stage
              where id = any(${valuesOf}::uuid[])) end as values
      from size`
  return row!
}

/** Tasks of a stage that succeeded, with what they were given and gave: what there is to undo. */
export function succeededIn(sql: Sql, stageId: string): Promise<{ id: string; payload: unknown; output: unknown }[]> {
  return sql`
    select id, payload, output from pawl.task
     where stage_id = ${stageId}::uuid and state = 'succeeded' order by id desc`
}

/** The next elements of the list that a stage keeps. */
export async function fanSlice(sql: Sql, stageId: string, from: number, limit: number): Promise<unknown[]> {
  const [row] = await sql<{ slice: unknown[] }>`
    select coalesce(json_agg(e.value order by e.n), '[]'::json) as slice
      from pawl.stage s cross join lateral json_array_elements(s.fan) with ordinality as e (value, n)
     where s.id = ${stageId}::uuid and e.n > ${from}::int and e.n <= ${from + limit}::int`
  return row!.slice
}
