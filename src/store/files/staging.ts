/** Folders that attempts upload to. What dead ones left there is looked for, again and again, until none can be left. */
import type { Sql } from '../driver/sql.ts'

/** How long after a look, and after how many looks that found nothing alive, the next one is due. */
const lookAgainSeconds = [60, 600, 3600, 6 * 3600, 86_400]

/** That something will be uploaded there. The row is read first: it is there for all but the first task of a stage. */
export async function recordStagingFolder(sql: Sql, outputs: string): Promise<void> {
  await sql`
    insert into pawl.staging (outputs, key, at)
    select ${outputs}, md5(${outputs}), pawl.clock() + make_interval(secs => ${lookAgainSeconds[0]!}::float8)
     where not exists (select from pawl.staging where key = md5(${outputs}) and rounds = 0)
    on conflict (key) do update set rounds = 0`
}

/** Folders that it is time to look into; nobody else looks there for a while. */
export function takeStagings(sql: Sql, limit: number): Promise<{ outputs: string; rounds: number }[]> {
  return sql`
    update pawl.staging s
       set at = pawl.clock() + interval '5 minutes'
      from (select key from pawl.staging where at <= pawl.clock() order by at limit ${limit}::int for update skip locked) as due
     where s.key = due.key
    returning s.outputs, s.rounds`
}

/** Looked through. With something alive in it, it is looked into as before; else ever more rarely, and then no more. */
export async function rescheduleStaging(sql: Sql, outputs: string, rounds: number, isAlive: boolean): Promise<void> {
  const next = isAlive ? 0 : rounds + 1
  const seconds = lookAgainSeconds[next]
  if (seconds === undefined) {
    await sql`delete from pawl.staging where key = md5(${outputs}) and rounds = ${rounds}::int`
    return
  }
  await sql`
    update pawl.staging set rounds = ${next}::int, at = pawl.clock() + make_interval(secs => ${seconds}::float8)
     where key = md5(${outputs}) and rounds = ${rounds}::int`
}

/**
 * Of these attempts, those whose uploads nobody will ever want. What this database does not know may be that of another
 * one, which shares the folder.
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
