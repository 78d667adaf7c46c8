/**
 * Folders that attempts upload to. They are searched repeatedly for uploads of dead attempts, until none can be left.
 */
import type { Sql } from '../driver/sql.ts'

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
