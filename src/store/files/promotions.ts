/**
 * Files of attempts that won, until they are stored, and the cleanup of uploads that nobody needs. The folders that
 * attempts upload to are searched repeatedly for uploads of dead attempts, until none can be left.
 */
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, literal, type Sql } from '../driver/sql.ts'
import { moveArtifacts } from './artifacts.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

export interface FileToPromote {
  readonly id: string
  readonly uri: string
  readonly stagedUri: string
  readonly size: number
  readonly sha256: string
  readonly stageId: string | null
  readonly tries: number
  /** The bucket, or `file://`. */
  readonly place: string
}

const place = literal("substring(uri from '^[a-z0-9]+://[^/]*')")

/**
 * Takes files that are to be stored, all in one bucket that is not in `busy`. If this process dies, others may take
 * them after a minute.
 */
export function takeFilesToPromote(sql: Sql, limit: number, busy: readonly string[]): Promise<FileToPromote[]> {
  return sql<FileToPromote>`
    with first as materialized (
      select ${place} as place from pawl.artifact
       where won and state = 'uploaded' and at <= pawl.clock() and ${place} <> all(${busy}::text[])
       order by at limit 1
    )
    update pawl.artifact a
       set at = pawl.clock() + interval '1 minute', tries = a.tries + 1
      from (select id from pawl.artifact
             where won and state = 'uploaded' and at <= pawl.clock() and ${place} = (select place from first)
             order by at limit ${limit}::int for update skip locked) as due
     where a.id = ${viaIndex('due.id')}
    returning a.id, a.uri, a.staged_uri, a.size::float8 as size, a.sha256, a.stage_id, a.tries, ${place} as place`
}

/** Schedules another try for a file that could not be stored. */
export async function retryPromotionLater(sql: Sql, id: string, error: string, seconds: number): Promise<void> {
  await sql`
    update pawl.artifact set error = ${error}, at = pawl.clock() + make_interval(secs => ${seconds}::float8)
     where id = ${id}::uuid and state = 'uploaded'`
}

/** Marks a file as lost: its upload is gone, so it can never be stored. */
export async function markArtifactLost(sql: Sql, id: string, error: string): Promise<void> {
  await sql`update pawl.artifact set error = ${error} where id = ${id}::uuid and state = 'uploaded'`
  await moveArtifacts(sql, [id], { to: 'error', actor: 'engine', cause: 'output_lost' })
}

/**
 * Takes uploads that nobody needs any more: their file is stored, or their attempt did not win. An upload that its
 * attempt reported as failed is left while the attempt is running, and while the same attempt has another open file at
 * the same URI.
 */
export function takeUploadsToDelete(sql: Sql, limit: number): Promise<{ id: string; stagedUri: string }[]> {
  return sql`
    update pawl.artifact a
       set at = pawl.clock() + interval '1 minute'
      from (select id from pawl.artifact old
             where staged_uri is not null and ended_at is not null and at <= pawl.clock()
               and not (state = 'error'
                        and (exists (select from pawl.task t
                                      where t.id = old.task_id and t.epoch = old.epoch and t.state in (${held}))
                             or exists (select from pawl.artifact o
                                         where o.task_id = old.task_id and o.staged_uri = old.staged_uri
                                           and o.ended_at is null)))
             order by at limit ${limit}::int for update skip locked) as due
     where a.id = ${viaIndex('due.id')}
    returning a.id, a.staged_uri`
}

/** Records that the uploads were deleted. */
export async function clearStagedUris(sql: Sql, ids: readonly string[]): Promise<void> {
  await sql`
    update pawl.artifact set staged_uri = null where id = any(${list(ids)}::uuid[]) and ended_at is not null`
}

/** The delay of the next search, by the number of searches since the last one that found something alive. */
const searchDelaysSeconds = [60, 600, 3600, 6 * 3600, 86_400]

/**
 * Records that something will be uploaded to this folder. The row is read first, because it exists for all but the
 * first task of a stage.
 */
export async function recordStagingFolder(sql: Sql, outputs: string): Promise<void> {
  await sql`
    insert into pawl.staging (outputs, key, at)
    select ${outputs}, md5(${outputs}), pawl.clock() + make_interval(secs => ${searchDelaysSeconds[0]!}::float8)
     where not exists (select from pawl.staging where key = md5(${outputs}) and rounds = 0)
    on conflict (key) do update set rounds = 0`
}

/** Takes folders that are due for a search. No other process takes them for a while. */
export function takeStagingFolders(sql: Sql, limit: number): Promise<{ outputs: string; rounds: number }[]> {
  return sql`
    update pawl.staging s
       set at = pawl.clock() + interval '5 minutes'
      from (select key from pawl.staging where at <= pawl.clock() order by at limit ${limit}::int for update skip locked) as due
     where s.key = due.key
    returning s.outputs, s.rounds`
}

/**
 * Schedules the next search: at the usual interval if something was alive, else less and less often, and finally never.
 */
export async function rescheduleStaging(sql: Sql, outputs: string, rounds: number, isAlive: boolean): Promise<void> {
  const next = isAlive ? 0 : rounds + 1
  const seconds = searchDelaysSeconds[next]
  if (seconds === undefined) {
    await sql`delete from pawl.staging where key = md5(${outputs}) and rounds = ${rounds}::int`
    return
  }
  await sql`
    update pawl.staging set rounds = ${next}::int, at = pawl.clock() + make_interval(secs => ${seconds}::float8)
     where key = md5(${outputs}) and rounds = ${rounds}::int`
}

/**
 * The attempts among these whose uploads nobody will ever need. Tasks that this database does not know are left out,
 * because another one may share the folder.
 */
export async function findDeadAttempts(
  sql: Sql,
  attempts: readonly { readonly taskId: string; readonly epoch: number }[],
): Promise<Set<string>> {
  const rows = await sql<{ taskId: string; epoch: number }>`
    select t.task_id, t.epoch
      from unnest(${attempts.map(({ taskId }) => taskId)}::uuid[], ${attempts.map(({ epoch }) => epoch)}::int[])
        as t (task_id, epoch)
     where exists (select from pawl.task where id = t.task_id)
       and not exists (select from pawl.artifact a
                        where a.task_id = t.task_id and a.epoch = t.epoch and a.ended_at is null)`
  return new Set(rows.map(({ taskId, epoch }) => `${taskId}/${epoch}`))
}
