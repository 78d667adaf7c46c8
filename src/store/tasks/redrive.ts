/** Redrives of dead letters, and their progress. */
import type { Refused } from '../../kernel/problem.ts'
import { viaIndex } from '../driver/plans.ts'
import { list, type Sql } from '../driver/sql.ts'

export interface DeadLetterFilter {
  readonly queue?: string
  readonly type?: string
  readonly reasonCode?: string
  readonly message?: string
  readonly limit: number
}

/** The ids of dead letters, the oldest task first. */
export async function findDeadLetters(sql: Sql, filter: DeadLetterFilter): Promise<string[]> {
  const { queue = null, type = null, reasonCode = null, message = null, limit } = filter
  const rows = await sql<{ id: string }>`
    select x.task_id as id
      from pawl.trouble x
      join pawl.task t on t.id = ${viaIndex('x.task_id')}
      join pawl.lane l on l.id = t.lane_id
     where x.state = 'dead_lettered'
       and (${queue}::text is null or l.queue = ${queue})
       and (${type}::text is null or t.type = ${type})
       and (${reasonCode}::text is null or x.reason_code = ${reasonCode})
       and (${message}::text is null or pawl.gist(t.error->>'message') = pawl.gist(${message}))
     order by x.task_id
     limit ${limit}::int`
  return rows.map(({ id }) => id)
}

export interface NewRedrive {
  readonly id: string
  readonly actor: string
  readonly reason: string | null
  readonly rate: number | null
  /** JSON text. */
  readonly payload: string | null
  readonly ids: readonly string[]
}

export async function insertRedrive(sql: Sql, redrive: NewRedrive): Promise<void> {
  const { id, actor, reason, rate, payload, ids } = redrive
  await sql`
    insert into pawl.redrive (id, actor, reason, rate, payload, ids, total, ended_at)
    values (${id}::uuid, ${actor}, ${reason}, ${rate}::float8, ${payload}::json, ${ids}::uuid[], ${ids.length}::int,
            case when ${ids.length}::int = 0 then pawl.clock() end)`
}

export interface LockedRedrive extends Omit<NewRedrive, 'ids'> {
  readonly redriven: number
  readonly refused: number
  /** Seconds since it was requested. */
  readonly ageSeconds: number
  /** The next dead letters. A job of null: the task is stand-alone, or was deleted. */
  readonly letters: readonly { readonly id: string; readonly jobId: string | null }[]
}

/**
 * Locks a redrive, so that only one process continues it, and returns it with its next dead letters. Undefined: it is
 * done.
 */
export async function lockRedrive(sql: Sql, id: string, limit: number): Promise<LockedRedrive | undefined> {
  const [row] = await sql<LockedRedrive>`
    with mine as materialized (
      select * from pawl.redrive where id = ${id}::uuid and ended_at is null for update
    )
    select mine.id, actor, reason, rate, payload::text as payload, redriven, refused,
           date_part('epoch', pawl.clock() - created_at) as age_seconds, next.letters
      from mine
     cross join lateral (
             select json_agg(json_build_object('id', l.id, 'jobId', t.job_id) order by l.n) as letters
               from unnest(mine.ids[seen + 1 : seen + ${limit}::int]) with ordinality as l (id, n)
               left join pawl.task t on t.id = ${viaIndex('l.id')}) as next`
  return row
}

const maxRefusals = 1000

/** Records the results for the next dead letters of a locked redrive. Returns true if they were the last ones. */
export async function recordRedriven(
  sql: Sql,
  { id, refused: before }: LockedRedrive,
  did: { readonly redriven: number; readonly refused: readonly Refused[] },
): Promise<boolean> {
  const kept = did.refused.slice(0, Math.max(0, maxRefusals - before))
  const [row] = await sql<{ isDone: boolean }>`
    with now as (
      select id, seen + ${did.redriven + did.refused.length}::int as seen from pawl.redrive where id = ${id}::uuid
    )
    update pawl.redrive r
       set seen     = now.seen,
           redriven = r.redriven + ${did.redriven}::int,
           refused  = r.refused + ${did.refused.length}::int,
           refusals = r.refusals || ${JSON.stringify(kept)}::jsonb,
           at       = pawl.clock(),
           ended_at = case when now.seen = r.total then pawl.clock() end,
           ids      = case when now.seen = r.total then '{}' else r.ids end
      from now where r.id = now.id
    returning r.ended_at is not null as is_done`
  return row!.isDone
}

/** Redrives that nobody has continued for a while. Their process died, or committed a batch and then ended. */
export async function findAbandonedRedrives(
  sql: Sql,
  olderThanSeconds: number,
  limit: number,
  except: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ id: string }>`
    select id from pawl.redrive
     where ended_at is null and at < pawl.clock() - make_interval(secs => ${olderThanSeconds}::float8)
       and id <> all(${list(except)}::uuid[])
     order by at limit ${limit}::int`
  return rows.map(({ id }) => id)
}

/** The next dead letter of a redrive; undefined: it is done. */
export async function nextDeadLetter(sql: Sql, id: string): Promise<string | undefined> {
  const [row] = await sql<{ letter: string | null }>`
    select ids[seen + 1] as letter from pawl.redrive where id = ${id}::uuid`
  return row?.letter ?? undefined
}

export interface RedriveRow extends Pick<NewRedrive, 'id' | 'actor' | 'reason'> {
  readonly total: number
  readonly redriven: number
  readonly refused: number
  readonly refusals: readonly Refused[]
  readonly createdAt: Date
  readonly endedAt: Date | null
}

export async function getRedrive(sql: Sql, id: string): Promise<RedriveRow | undefined> {
  const [row] = await sql<RedriveRow>`
    select id, actor, reason, total, redriven, refused, refusals, created_at, ended_at
      from pawl.redrive where id = ${id}::uuid`
  return row
}

/** Deletes redrives that ended longer ago than this. */
export async function deleteOldRedrives(sql: Sql, keepSeconds: number): Promise<number> {
  const gone = await sql`
    delete from pawl.redrive where ended_at < pawl.clock() - make_interval(secs => ${keepSeconds}::float8) returning id`
  return gone.length
}
