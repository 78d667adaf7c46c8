/** Stages whose input files are being listed, and tasks that are skipped because an earlier task did the same work. */
import type { DatumInput } from '../../kernel/datum.ts'
import { newId } from '../../kernel/id.ts'
import { nextTime } from '../driver/clock.ts'
import { list, type Sql } from '../driver/sql.ts'
import { moveArtifacts } from './artifacts.ts'

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
 * For each of these digests that was done before: the last task that did it and has all its files stored. Tasks with a
 * file that this job has written already are left out, because two tasks of a job cannot have the same file.
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

export interface Reused {
  readonly taskId: string
  /** The earlier task. */
  readonly doneBy: string
}

interface StageRef {
  readonly id: string
  readonly jobId: string
}

/** Skips blocked tasks of a stage. Each gets the output and the files of the earlier task. */
export async function skipReused(sql: Sql, stage: StageRef, reused: readonly Reused[]): Promise<void> {
  await skipTasks(sql, stage, reused)
  await linkArtifacts(sql, stage, reused)
}

/** Moves the tasks to `skipped` and appends to the counts of the stage. */
async function skipTasks(sql: Sql, { id: stageId, jobId }: StageRef, reused: readonly Reused[]): Promise<void> {
  await sql`
    with moved as (
      update pawl.task t
         set state    = 'skipped',
             seq      = t.seq + 1,
             output   = done.output,
             ended_at = ${nextTime('t')},
             history  = t.history || row(${nextTime('t')}, t.epoch, 'skipped', null, 'engine',
                                         'done_before', jsonb_build_object('doneBy', done.id))::pawl.step
        from unnest(${list(reused.map(({ taskId }) => taskId))}::uuid[],
                    ${list(reused.map(({ doneBy }) => doneBy))}::uuid[]) as r (id, done_by)
        join pawl.task done on done.id = r.done_by
       where t.id = r.id and t.state = 'blocked'
      returning t.id, t.seq
    ), feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', array_agg(id), array_agg(seq) from moved having count(*) > 0
    )
    insert into pawl.tally (job_id, stage_id, good, skipped, blocked)
    select ${jobId}::uuid, ${stageId}::uuid, count(*), count(*), -count(*) from moved having count(*) > 0`
}

/** Registers the files of the earlier task for this one as well. They are stored already, and nothing is copied. */
async function linkArtifacts(sql: Sql, { id: stageId, jobId }: StageRef, reused: readonly Reused[]): Promise<void> {
  const files = await sql<{ id: string; taskId: string }>`
    select a.id, r.id as task_id
      from unnest(${list(reused.map(({ taskId }) => taskId))}::uuid[],
                  ${list(reused.map(({ doneBy }) => doneBy))}::uuid[]) as r (id, done_by)
      join pawl.artifact a on a.task_id = r.done_by and a.state = 'stored'
     order by a.id`
  if (files.length === 0) return
  const ids = files.map(() => newId())
  await sql`
    with made as (
      insert into pawl.artifact (id, task_id, job_id, stage_id, name, uri, size, sha256, won, linked, seq, round, state, history)
      select n.id, n.task_id, ${jobId}::uuid, ${stageId}::uuid, a.name, a.uri, a.size, a.sha256, true, coalesce(a.linked, a.id),
             1, 1, 'registered', array[row(pawl.clock(), 0, 'registered', 'artifact.registered', 'engine', 'done_before',
                                           null)::pawl.step]
        from unnest(${list(ids)}::uuid[], ${list(files.map(({ taskId }) => taskId))}::uuid[],
                    ${list(files.map(({ id }) => id))}::uuid[]) as n (id, task_id, linked)
        join pawl.artifact a on a.id = n.linked
      returning id
    )
    insert into pawl.change (entity, ids, seqs)
    select 'artifact', array_agg(id), array_fill(1, array[count(*)::int]) from made`
  for (const to of ['uploaded', 'stored'] as const) {
    await moveArtifacts(sql, ids, { to, actor: 'engine', cause: 'done_before' })
  }
}
