/** Ended jobs: what is left of them to be done again, and their removal. */
import { moveArtifacts } from './artifact-moves.ts'
import type { Sql } from './sql.ts'

/**
 * Payloads, as JSON texts, of the tasks of each stage that did not end well, or of all, where what was done is undone;
 * and then what is left of a list that was looked at and had not become tasks.
 */
export async function unfinishedPayloads(sql: Sql, jobId: string, all: boolean): Promise<Map<string, string[]>> {
  const rows = await sql<{ stageId: string; payload: string }>`
    select stage_id, payload
      from (select t.stage_id, t.id, 0 as n, t.payload::text as payload
              from pawl.stage s join pawl.task t on t.stage_id = any(array[s.id])
             where s.job_id = ${jobId}::uuid and s.kind = 'work'
               and (${all}::boolean or t.state not in ('succeeded', 'skipped') or s.state = 'skipped')
             union all
            select s.id, null, element.n, element.payload::text
              from pawl.stage s cross join json_array_elements(s.fan) with ordinality as element (payload, n)
             where s.job_id = ${jobId}::uuid and s.kind = 'work' and element.n > s.fanned) as unfinished
     order by id, n`
  const found = new Map<string, string[]>()
  for (const { stageId, payload } of rows) found.set(stageId, [...(found.get(stageId) ?? []), payload])
  return found
}

/** Removes some of an ended job's tasks; when there are none left, the job. True: it is gone. */
export async function removeJob(sql: Sql, id: string, limit: number): Promise<boolean> {
  const [job] = await sql`select id from pawl.job where id = ${id}::uuid and ended_at is not null for update`
  if (job === undefined) return true
  if ((await giveUpFiles(sql, id, limit)) === limit) return false
  const [row] = await sql<{ gone: number }>`
    with chosen as materialized (
      select t.id from pawl.stage s join pawl.task t on t.stage_id = any(array[s.id])
       where s.job_id = ${id}::uuid limit ${limit}::int
    ), gone as (
      delete from pawl.task t using chosen where t.id = any(array[chosen.id]) returning t.id
    ), mended as (
      delete from pawl.trouble using gone where task_id = any(array[gone.id])
    ), silenced as (
      delete from pawl.log using gone where task_id = any(array[gone.id])
    ), unfiled as (
      delete from pawl.artifact using gone where task_id = any(array[gone.id])
    ), unread as (
      delete from pawl.input using gone where task_id = any(array[gone.id])
    ), unlike as (
      delete from pawl.datum using gone where task_id = any(array[gone.id])
    )
    select count(*)::int as gone from gone`
  if (row!.gone === limit) return false
  await sql`delete from pawl.tally where job_id = ${id}::uuid`
  await sql`delete from pawl.lane where job_id = ${id}::uuid`
  await sql`delete from pawl.stage where job_id = ${id}::uuid`
  await sql`delete from pawl.listing where job_id = ${id}::uuid`
  await sql`delete from pawl.errand where job_id = ${id}::uuid`
  await sql`delete from pawl.job where id = ${id}::uuid`
  return true
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
