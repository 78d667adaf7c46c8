/** Stages whose input files are being listed. */
import type { DatumInput } from '../../kernel/datum.ts'
import type { Sql } from '../driver/sql.ts'

/** Starts the listing of a stage's inputs. */
export async function startListing(sql: Sql, { id, jobId }: { id: string; jobId: string }): Promise<void> {
  await sql`
    insert into pawl.listing (stage_id, job_id) values (${id}::uuid, ${jobId}::uuid)
    on conflict (stage_id) do update set at = pawl.clock(), tries = 0, error = null`
}

export interface Listing {
  readonly stageId: string
  readonly jobId: string
  /** How often it was taken since it last made progress, this time included. */
  readonly tries: number
  /** The last error; null: the process ended without reporting one. */
  readonly error: string | null
}

/**
 * Takes a listing that no other process takes for a minute. If two have it after all, the position where each batch
 * begins detects that.
 */
export async function takeListing(sql: Sql): Promise<Listing | undefined> {
  const [row] = await sql<Listing>`
    update pawl.listing l
       set at = pawl.clock() + interval '1 minute', tries = l.tries + 1
      from (select stage_id from pawl.listing where at <= pawl.clock() order by at limit 1 for update skip locked) as due
     where l.stage_id = due.stage_id
    returning l.stage_id, l.job_id, l.tries, l.error`
  return row
}

/** Whether inputs of a job are still being listed. */
export async function isListing(sql: Sql, jobId: string): Promise<boolean> {
  const rows = await sql`select 1 from pawl.listing where job_id = ${jobId}::uuid limit 1`
  return rows.length > 0
}

/** Extends the time for which no other process takes it. */
export async function extendListing(sql: Sql, stageId: string): Promise<void> {
  await sql`update pawl.listing set at = pawl.clock() + interval '1 minute' where stage_id = ${stageId}::uuid`
}

/** Extends the time and clears the error, because the listing made progress. */
export async function recordListingProgress(sql: Sql, stageId: string): Promise<void> {
  await sql`
    update pawl.listing set at = pawl.clock() + interval '1 minute', tries = 1, error = null where stage_id = ${stageId}::uuid`
}

export async function retryListingLater(sql: Sql, stageId: string, error: string, seconds: number): Promise<void> {
  await sql`
    update pawl.listing set error = ${error}, at = pawl.clock() + make_interval(secs => ${seconds}::float8)
     where stage_id = ${stageId}::uuid`
}

export async function endListing(sql: Sql, stageId: string): Promise<void> {
  await sql`delete from pawl.listing where stage_id = ${stageId}::uuid`
}

/** Whether the stage may have tasks of an earlier listing: it was revived, or its job is a clone. */
export async function wasListed(sql: Sql, stageId: string): Promise<boolean> {
  const [row] = await sql<{ was: boolean }>`
    select s.round > 1 or j.cloned_from is not null as was
      from pawl.stage s join pawl.job j on j.id = s.job_id where s.id = ${stageId}::uuid`
  return row?.was ?? false
}

/** The inputs of those tasks of a stage that read one of these files or folders. */
export async function readInputsOfTasks(
  sql: Sql,
  stageId: string,
  uris: readonly string[],
): Promise<(readonly DatumInput[])[]> {
  const rows = await sql<{ inputs: readonly DatumInput[] }>`
    select t.payload->'inputs' as inputs
      from (select distinct i.task_id
              from unnest(${uris}::text[]) as f (uri)
              join pawl.input i on md5(i.uri) = md5(f.uri) and i.uri = f.uri) as given
      join pawl.task t on t.id = given.task_id
     where t.stage_id = ${stageId}::uuid`
  return rows.map(({ inputs }) => inputs)
}

/** Records the inputs of tasks that were submitted with a job instead of being listed. */
export async function recordInputsOfJob(sql: Sql, jobId: string): Promise<void> {
  await sql`
    insert into pawl.input (task_id, uri)
    select t.id, given->>'uri'
      from pawl.stage s
      join pawl.task t on t.stage_id = s.id
     cross join lateral json_array_elements(
             case when json_typeof(t.payload) = 'object' and json_typeof(t.payload->'inputs') = 'array'
                  then t.payload->'inputs' else '[]' end) as given
     where s.job_id = ${jobId}::uuid and s.plan->'files' is not null
       and json_typeof(given) = 'object' and given->>'uri' is not null`
}

/** Records the inputs of tasks, by URI, and the digests by which identical work is recognized. */
export async function recordInputs(
  sql: Sql,
  inputs: readonly { readonly taskId: string; readonly uri: string }[],
  digests: readonly { readonly taskId: string; readonly digest: string }[],
): Promise<void> {
  if (inputs.length > 0) {
    await sql`
      insert into pawl.input (task_id, uri)
      select * from unnest(${inputs.map(({ taskId }) => taskId)}::uuid[], ${inputs.map(({ uri }) => uri)}::text[])`
  }
  if (digests.length > 0) {
    await sql`
      insert into pawl.datum (task_id, digest)
      select * from unnest(${digests.map(({ taskId }) => taskId)}::uuid[], ${digests.map(({ digest }) => digest)}::text[])`
  }
}

/**
 * Of these datums, those that were done before: the last task that did each, with all its files in their places. Not if
 * this job has put out one of them already: two of its tasks cannot have the same file.
 */
export async function doneBefore(sql: Sql, jobId: string, digests: readonly string[]): Promise<Map<string, string>> {
  const rows = await sql<{ digest: string; taskId: string }>`
    select distinct on (d.digest) d.digest, d.task_id
      from unnest(${digests}::text[]) as wanted (digest)
      join pawl.datum d on d.digest = wanted.digest
      join pawl.task t on t.id = d.task_id and t.state = 'succeeded'
     where not exists (select from pawl.artifact a where a.task_id = t.id and a.won and a.state <> 'stored')
       and not exists (select from pawl.artifact a join pawl.artifact mine on mine.job_id = ${jobId}::uuid
                                                   and md5(mine.uri) = md5(a.uri)
                                                   and mine.state in ('registered', 'uploaded', 'stored')
                        where a.task_id = t.id and a.state = 'stored')
     order by d.digest, d.task_id desc`
  return new Map(rows.map(({ digest, taskId }) => [digest, taskId]))
}
