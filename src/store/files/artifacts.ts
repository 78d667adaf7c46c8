/**
 * The ledger of the files that tasks write. Reports of workers are fenced like all others: by the state and epoch of
 * the task in the WHERE clause, with the task's row locked. The end of the task decides, in the same transaction, which
 * attempt's files count. Any process does the rest from the ledger.
 */
import { type ArtifactState, artifactLifecycle } from '../../kernel/artifact.ts'
import { newId } from '../../kernel/id.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, type Sql } from '../driver/sql.ts'
import type { LeaseRef } from '../tasks/settle.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

export interface NewArtifact {
  readonly name: string
  readonly uri: string
  readonly stagedUri: string | null
}

export interface HeldFiles {
  readonly jobId: string | null
  readonly stageId: string | null
  readonly owner: string | null
  /** The folder for its files, if its payload names one. */
  readonly outputs: string | null
}

/**
 * Locks a task that is held under this epoch and marks that it has files, by writing its row (`succeedWithFiles`).
 * Undefined: it is not held.
 */
export async function lockForFiles(sql: Sql, { id, epoch }: LeaseRef): Promise<HeldFiles | undefined> {
  const [row] = await sql<HeldFiles>`
    update pawl.task set files = true
     where id = ${id}::uuid and epoch = ${epoch}::int and state in (${held})
    returning job_id, stage_id, owner,
              case when json_typeof(payload) = 'object' and json_typeof(payload->'inputs') = 'array'
                        and payload->>'outputs' like '%://%/' then payload->>'outputs' end as outputs`
  return row
}

export interface UriOwner {
  readonly uri: string
  readonly taskId: string
  readonly epoch: number
  readonly name: string
  /** The file counts, or will as soon as it is stored. */
  readonly isFinal: boolean
}

/**
 * Registers files that an attempt will write. Returns those whose URI belongs to another attempt, with that attempt.
 */
export async function registerArtifacts(
  sql: Sql,
  task: LeaseRef & HeldFiles,
  files: readonly NewArtifact[],
): Promise<UriOwner[]> {
  // Sorted, so that two transactions that register the same files cannot deadlock.
  const sorted = files.toSorted(byUri)
  const [made] = await sql<{ registered: number }>`
    with made as (
      insert into pawl.artifact (id, task_id, job_id, stage_id, epoch, name, uri, staged_uri, seq, round, state, history)
      select f.id, ${task.id}::uuid, ${task.jobId}::uuid, ${task.stageId}::uuid, ${task.epoch}::int, f.name, f.uri, f.staged,
             1, 1, 'registered', array[row(pawl.clock(), 0, 'registered', 'artifact.registered',
                                           ${`worker:${task.owner}`}::text, 'registered', null)::pawl.step]
        from unnest(${list(sorted.map(newId))}::uuid[], ${sorted.map(file => file.name)}::text[],
                    ${sorted.map(file => file.uri)}::text[], ${sorted.map(file => file.stagedUri)}::text[])
          as f (id, name, uri, staged)
      on conflict (coalesce(job_id, task_id), md5(uri)) where state in ('registered', 'uploaded', 'stored') do nothing
      returning id
    ), feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'artifact', array_agg(id), array_fill(1, array[count(*)::int]) from made having count(*) > 0
    )
    select count(*)::int as registered from made`
  if (made!.registered === files.length) return []
  return sql<UriOwner>`
    select a.uri, a.task_id, a.epoch, a.name, a.won or a.state = 'stored' as is_final
      from unnest(${files.map(({ uri }) => uri)}::text[]) as f (uri)
      join pawl.artifact a on coalesce(a.job_id, a.task_id) = coalesce(${task.jobId}::uuid, ${task.id}::uuid)
                          and md5(a.uri) = md5(f.uri) and a.state in ('registered', 'uploaded', 'stored')
     where (a.task_id, a.epoch) <> (${task.id}::uuid, ${task.epoch}::int)`
}

const byUri = (one: NewArtifact, other: NewArtifact) => (one.uri < other.uri ? -1 : 1)

export interface Upload {
  readonly uri: string
  /** Null, like the next field, if the worker that stored the file did not report it. */
  readonly size: number | null
  readonly sha256: string | null
}

/**
 * Records uploads in one statement, because most reports of files are uploads. Each file is found by its URI: found by
 * task, all files of the attempt would be read for each of them. Returns the files that were not registered; all of
 * them, if the task is not held under this epoch.
 */
export async function recordUploads(
  sql: Sql,
  { id, epoch }: LeaseRef,
  files: readonly Upload[],
): Promise<{ missed: Upload[] }> {
  const [row] = await sql<{ uris: string[] | null }>`
    with mine as materialized (
      select id, owner, job_id from pawl.task
       where id = ${id}::uuid and epoch = ${epoch}::int and state in (${held}) for update
    ), moved as (
      update pawl.artifact a
         set state   = 'uploaded',
             seq     = a.seq + 1,
             at      = pawl.clock(),
             size    = coalesce(f.size, case when a.staged_uri is not null then 0 end),
             sha256  = coalesce(f.sha256, case when a.staged_uri is not null then '' end),
             history = a.history || row(${nextTime('a')}, 0, 'uploaded', 'artifact.uploaded',
                                        'worker:' || mine.owner, 'reported_upload', null)::pawl.step
        from mine
       cross join unnest(${files.map(({ uri }) => uri)}::text[], ${files.map(({ size }) => size)}::bigint[],
                    ${files.map(({ sha256 }) => sha256)}::text[]) as f (uri, size, sha256)
       cross join lateral (
               select id, task_id, epoch, uri from pawl.artifact
                where coalesce(job_id, task_id) = coalesce(mine.job_id, mine.id) and md5(uri) = md5(f.uri)
                  and state = 'registered' offset 0) as placed
       where placed.task_id = mine.id and placed.epoch = ${epoch}::int and placed.uri = f.uri
         and a.id = ${viaIndex('placed.id')} and a.state || '' = 'registered'
      returning a.id, a.seq, a.uri
    ), feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'artifact', array_agg(id), array_agg(seq) from moved having count(*) > 0
    )
    select array_agg(uri) as uris from moved`
  const moved = new Set(row!.uris)
  return { missed: files.filter(({ uri }) => !moved.has(uri)) }
}

/** The files among these that the attempt has registered, in any state. */
export async function findRegistered(sql: Sql, { id, epoch }: LeaseRef, uris: readonly string[]): Promise<Set<string>> {
  const rows = await sql<{ uri: string }>`
    select uri from pawl.artifact where task_id = ${id}::uuid and epoch = ${epoch}::int and uri = any(${uris}::text[])`
  return new Set(rows.map(({ uri }) => uri))
}

/** All files that the attempt has registered, in any state. */
export async function registeredUris(sql: Sql, { id, epoch }: LeaseRef): Promise<Set<string>> {
  const rows = await sql<{ uri: string }>`
    select distinct uri from pawl.artifact where task_id = ${id}::uuid and epoch = ${epoch}::int`
  return new Set(rows.map(({ uri }) => uri))
}

/** Records files that could not be written. Their URIs are free again. */
export async function recordFileErrors(
  sql: Sql,
  task: LeaseRef & HeldFiles,
  files: readonly { readonly uri: string; readonly error: string }[],
): Promise<void> {
  await sql`
    update pawl.artifact a
       set error = f.error
      from unnest(${files.map(({ uri }) => uri)}::text[], ${files.map(({ error }) => error)}::text[]) as f (uri, error)
     where a.task_id = ${task.id}::uuid and a.epoch = ${task.epoch}::int and a.uri = f.uri and a.ended_at is null`
  const chosen = await sql<{ id: string }>`
    select id from pawl.artifact
     where task_id = ${task.id}::uuid and epoch = ${task.epoch}::int and uri = any(${files.map(({ uri }) => uri)}::text[])
       and state in ('registered', 'uploaded') and not won`
  await moveArtifacts(sql, idsOf(chosen), { to: 'error', actor: `worker:${task.owner}`, cause: 'reported_error' })
}

/** Tasks that cannot succeed because registered files are missing, each with the name of one such file. */
export async function findUnfinishedFiles(sql: Sql, tasks: readonly LeaseRef[]): Promise<Map<string, string>> {
  if (tasks.length === 0) return new Map()
  const rows = await sql<{ taskId: string; name: string }>`
    select distinct on (a.task_id) a.task_id, a.name
      from unnest(${list(tasks.map(({ id }) => id))}::uuid[], ${list(tasks.map(({ epoch }) => epoch))}::int[]) as t (id, epoch)
      join pawl.artifact a on a.task_id = t.id and a.epoch = t.epoch and a.state = 'registered'`
  return new Map(rows.map(({ taskId, name }) => [taskId, name]))
}

/**
 * Decides on files in the transaction that ends their attempt. Files of an attempt that won count, and are stored at
 * once if they were written to their place directly. Files of any other attempt never count.
 */
export async function decideFiles(sql: Sql, won: readonly LeaseRef[], lost: readonly LeaseRef[]): Promise<void> {
  const all = [...won, ...lost]
  if (all.length === 0) return
  const rows = await sql<{ id: string; won: boolean; isThere: boolean }>`
    with mine as materialized (
      select a.id, coalesce(a.epoch = t.epoch and t.won and a.state = 'uploaded', false) as won,
             a.staged_uri is null as is_there
        from unnest(${list(all.map(({ id }) => id))}::uuid[], ${list(all.map(({ epoch }) => epoch))}::int[],
                    ${all.map((_, index) => index < won.length)}::boolean[]) as t (id, epoch, won)
        join pawl.artifact a on a.task_id = t.id and a.state in ('registered', 'uploaded') and not a.won
    ), counted as (
      update pawl.artifact a set won = true, at = pawl.clock() from mine where a.id = ${viaIndex('mine.id')} and mine.won
    )
    select id, won, won and is_there as is_there from mine`
  const placed = rows.filter(({ isThere }) => isThere)
  await moveArtifacts(sql, idsOf(placed), { to: 'stored', actor: 'engine', cause: 'put_in_place' })
  const over = rows.filter(file => !file.won)
  await moveArtifacts(sql, idsOf(over), { to: 'discarded', actor: 'engine', cause: 'attempt_over' })
}

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)

const finals = inList(statesOf(artifactLifecycle, 'final'))

/**
 * Moves artifacts, each with its event, and returns those that it moved. An artifact that has changed its state in the
 * meantime is skipped, and so is one whose attempt has won, if it is to be discarded: both are checked again under the
 * lock. Rows are locked in the order of their ids, as in every batch. A stage that may have waited for an artifact gets
 * an empty row of counts: if this process dies before it advances the job, the babysitter finds that row.
 */
export async function moveArtifacts(
  sql: Sql,
  ids: readonly string[],
  { to, actor, cause }: { to: ArtifactState; actor: string; cause: string },
): Promise<{ id: string }[]> {
  if (ids.length === 0) return []
  return sql`
    with locked as materialized (
      select id from pawl.artifact
       where id = any(${list(ids)}::uuid[]) and state in (${inList(sourcesOf(to))})
         and not (${to}::text = 'discarded' and won)
       order by id for update
    ), moved as (
      update pawl.artifact a
         set state    = ${to}::text,
             seq      = a.seq + 1,
             at       = pawl.clock(),
             ended_at = case when ${to}::text in (${finals}) then ${nextTime('a')} end,
             history  = a.history || row(${nextTime('a')}, 0, ${to}::text,
                                         'artifact.' || ${to}::text, ${actor}::text, ${cause}::text, null)::pawl.step
        from locked
       where a.id = ${viaIndex('locked.id')}
      returning a.id, a.seq, a.job_id, a.stage_id, a.won
    ), wake_up as (
      insert into pawl.tally (job_id, stage_id)
      select distinct job_id, stage_id from moved where won and stage_id is not null and ${to}::text in ('stored', 'error')
    ), feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'artifact', array_agg(id), array_agg(seq) from moved having count(*) > 0
    )
    select id from moved`
}

function sourcesOf(to: ArtifactState): string[] {
  return [...new Set(Object.values(artifactLifecycle.moves).flatMap(move => (move.to === to ? [...move.from] : [])))]
}
