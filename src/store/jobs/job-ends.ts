/** Ended jobs: which of their tasks a clone repeats, and their deletion. */
import type { TaskSettings } from '../../kernel/settings.ts'
import { viaIndex } from '../driver/plans.ts'
import { list, type Sql } from '../driver/sql.ts'
import { moveArtifacts } from '../files/artifacts.ts'
import { deleteTaskData } from '../tasks/task-chores.ts'

export interface TaskToClone {
  readonly stageId: string
  /** JSON text. */
  readonly payload: string
  /** The task's own type; null: that of its stage. The same applies to the settings and the metadata. */
  readonly type: string | null
  readonly settings: Partial<TaskSettings> | null
  readonly metadata: Record<string, unknown> | null
  /** The earlier task that did the work and has all its files stored; null: the work is still to be done. */
  readonly doneBy: string | null
}

/**
 * The tasks for a clone of a job. For each stage: the tasks that did not succeed or whose files are not stored, then
 * the elements of its list that have not become tasks. With `all`, every task is treated as unfinished, because its
 * work was undone. Stages in `whole` also contribute their finished tasks.
 */
export function findTasksToClone(
  sql: Sql,
  jobId: string,
  all: boolean,
  whole: readonly string[],
): Promise<TaskToClone[]> {
  return sql<TaskToClone>`
    select stage_id, payload, type, settings, metadata, done_by
      from (select t.stage_id, t.id, 0 as n, t.payload::text as payload,
                   nullif(t.type, s.plan->>'task') as type, nullif(t.settings, s.plan->'settings') as settings,
                   t.metadata, case when not o.is_open then t.id end as done_by
              from pawl.stage s
              join pawl.task t on t.stage_id = ${viaIndex('s.id')}
             cross join lateral (
                     select ${all}::boolean or t.state not in ('succeeded', 'skipped') or s.state = 'skipped'
                            or (t.files and exists (select from pawl.artifact a
                                                     where a.task_id = t.id and a.won and a.state <> 'stored')) as is_open) as o
             where s.job_id = ${jobId}::uuid and s.kind = 'work' and (o.is_open or s.id = any(${list(whole)}::uuid[]))
             union all
            select s.id, null, element.n, element.payload::text, null, null, null, null
              from pawl.stage s cross join json_array_elements(s.fan) with ordinality as element (payload, n)
             where s.job_id = ${jobId}::uuid and s.kind = 'work' and element.n > s.fanned) as unfinished
     order by id, n`
}

/** Prevents the deletion of the job until the transaction ends. */
export async function lockJobAgainstDeletion(sql: Sql, id: string): Promise<void> {
  await sql`select id from pawl.job where id = ${id}::uuid for share`
}

/** Deletes an ended job in batches. */
export async function removeJob(sql: Sql, id: string, limit = 1000): Promise<'gone' | 'not ended'> {
  for (;;) {
    const left = await sql.begin(tx => removeBatchOfJob(tx, id, limit))
    if (left !== 'some') return left
  }
}

/**
 * Deletes some tasks of an ended job or, when none are left, the job itself. The first batch hides the job, because
 * reviving or reading half a job would be wrong. The job gets an errand, so that the babysitter continues if this
 * process dies.
 */
export async function removeBatchOfJob(sql: Sql, id: string, limit: number): Promise<'gone' | 'some' | 'not ended'> {
  const [job] = await sql<{ isEnded: boolean }>`
    with mine as materialized (
      select id, visible, ended_at from pawl.job where id = ${id}::uuid for update
    ), hidden as (
      update pawl.job j set visible = false from mine where j.id = mine.id and mine.ended_at is not null and mine.visible
      returning j.id
    ), errand_entry as (
      insert into pawl.errand (job_id) select id from hidden on conflict do nothing
    )
    select ended_at is not null as is_ended from mine`
  if (job === undefined) {
    // Nobody will add these counts up any more.
    await sql`delete from pawl.tally where job_id = ${id}::uuid`
    await sql`delete from pawl.errand where job_id = ${id}::uuid`
    return 'gone'
  }
  if (!job.isEnded) return 'not ended'
  if ((await discardOpenFiles(sql, id, limit)) === limit) return 'some'
  const gone = await sql<{ id: string }>`
    with chosen as materialized (
      select t.id from pawl.stage s join pawl.task t on t.stage_id = ${viaIndex('s.id')}
       where s.job_id = ${id}::uuid limit ${limit}::int
    )
    delete from pawl.task t using chosen where t.id = ${viaIndex('chosen.id')} returning t.id`
  await deleteTaskData(
    sql,
    gone.map(task => task.id),
  )
  if (gone.length === limit) return 'some'
  await sql`delete from pawl.tally where job_id = ${id}::uuid`
  // A claim that had rows of `due` locked while the stage ended may have put some of them back.
  await sql`delete from pawl.due where lane_id in (select id from pawl.lane where job_id = ${id}::uuid)`
  await sql`delete from pawl.lane where job_id = ${id}::uuid`
  await sql`delete from pawl.stage where job_id = ${id}::uuid`
  await sql`delete from pawl.listing where job_id = ${id}::uuid`
  await sql`delete from pawl.errand where job_id = ${id}::uuid`
  await sql`delete from pawl.job where id = ${id}::uuid`
  await sql`update pawl.chosen_id set freed_at = pawl.clock() where id = ${id}::uuid`
  return 'gone'
}

/**
 * Gives up files of a deleted job that are not stored yet, because nobody would know whose they are. An index lists
 * them, so no task is read. Returns how many there were.
 */
async function discardOpenFiles(sql: Sql, jobId: string, limit: number): Promise<number> {
  const open = await sql<{ id: string; won: boolean }>`
    select id, won from pawl.artifact where job_id = ${jobId}::uuid and ended_at is null limit ${limit}::int`
  const idsOf = (won: boolean) => open.flatMap(file => (file.won === won ? [file.id] : []))
  await moveArtifacts(sql, idsOf(true), { to: 'error', actor: 'engine', cause: 'job_deleted' })
  await moveArtifacts(sql, idsOf(false), { to: 'discarded', actor: 'engine', cause: 'job_deleted' })
  return open.length
}
