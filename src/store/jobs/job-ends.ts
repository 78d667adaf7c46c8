/** Ended jobs: what is left of them to be done again, and their removal. */
import type { TaskSettings } from '../../kernel/settings.ts'
import { viaIndex } from '../driver/plans.ts'
import { list, type Sql } from '../driver/sql.ts'
import { moveArtifacts } from '../files/artifact-moves.ts'
import { deleteTaskData } from '../tasks/task-chores.ts'

export interface TaskToClone {
  readonly stageId: string
  /** JSON text. */
  readonly payload: string
  /** What it had of its own; null: what its stage says, or nothing. */
  readonly type: string | null
  readonly settings: Partial<TaskSettings> | null
  readonly metadata: Record<string, unknown> | null
  /** The task that did it, and whose files are all in their places; null: it is to be done. */
  readonly doneBy: string | null
}

/**
 * What a clone of a job is made of: the tasks of each stage that did not end well or whose files are not in their places,
 * or all as if none had, where what was done is undone; then what is left of a list that was looked at and had not become
 * tasks. Of the stages in `whole`, what was done as well.
 */
export function tasksToClone(sql: Sql, jobId: string, all: boolean, whole: readonly string[]): Promise<TaskToClone[]> {
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

/** Nobody deletes it until the transaction ends. */
export async function lockJobAgainstDeletion(sql: Sql, id: string): Promise<void> {
  await sql`select id from pawl.job where id = ${id}::uuid for share`
}

/** Removes an ended job, batch by batch. */
export async function removeJob(sql: Sql, id: string, limit = 1000): Promise<'gone' | 'not ended'> {
  for (;;) {
    const left = await sql.begin(tx => removeBatchOfJob(tx, id, limit))
    if (left !== 'some') return left
  }
}

/**
 * Removes some of an ended job's tasks; when there are none left, the job. From the first of them on nobody sees it: who
 * would bring it back, or look at its counts, would find half of it. It has an errand, so that the babysitter goes on
 * should whoever removes it die.
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
    // Nobody will add these up any more.
    await sql`delete from pawl.tally where job_id = ${id}::uuid`
    await sql`delete from pawl.errand where job_id = ${id}::uuid`
    return 'gone'
  }
  if (!job.isEnded) return 'not ended'
  if ((await giveUpFiles(sql, id, limit)) === limit) return 'some'
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
  // A claim that had places while their stage ended may have put some of them back.
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
 * Files that are not in their places yet will not get there: nobody would know whose they are. Gives up some of them,
 * which an index holds: however many tasks the job has, none is read. Answers with how many there were.
 */
async function giveUpFiles(sql: Sql, jobId: string, limit: number): Promise<number> {
  const open = await sql<{ id: string; won: boolean }>`
    select id, won from pawl.artifact where job_id = ${jobId}::uuid and ended_at is null limit ${limit}::int`
  const idsOf = (won: boolean) => open.flatMap(file => (file.won === won ? [file.id] : []))
  await moveArtifacts(sql, idsOf(true), { to: 'error', actor: 'engine', cause: 'job_deleted' })
  await moveArtifacts(sql, idsOf(false), { to: 'discarded', actor: 'engine', cause: 'job_deleted' })
  return open.length
}
