/**
 * Queries of the babysitter's chores for jobs. Each returns ids that are not in `except`. The chores work under the
 * lock of each job.
 */
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, type Sql } from '../driver/sql.ts'

const idsOf = (rows: readonly { id: string }[]) => rows.map(({ id }) => id)

/**
 * Jobs that no process advances any more: they have an errand that nobody continues, or counts that nobody added up;
 * the longest idle first. A settle adds up its counts at once, so older ones were left by a process that died.
 */
export async function findAbandonedJobs(
  sql: Sql,
  olderThanSeconds: number,
  limit: number,
  except: readonly string[],
): Promise<string[]> {
  return idsOf(
    await sql<{ id: string }>`
      select id
        from (select job_id as id, at from pawl.errand union all select job_id, at from pawl.tally) as open
       where at < pawl.clock() - make_interval(secs => ${olderThanSeconds}::float8)
         and id <> all(${list(except)}::uuid[])
       group by id order by min(at), id limit ${limit}::int`,
  )
}

/** Jobs whose deadline has passed. */
export async function findJobsPastDeadline(sql: Sql, limit: number, except: readonly string[]): Promise<string[]> {
  return idsOf(
    await sql<{ id: string }>`
      select id from pawl.job
       where deadline_at <= pawl.clock() and ended_at is null and ends_as is null and visible
         and id <> all(${list(except)}::uuid[])
       order by deadline_at limit ${limit}::int`,
  )
}

/** Stages whose gate has timed out. */
export function findExpiredGates(
  sql: Sql,
  limit: number,
  except: readonly string[],
): Promise<{ id: string; jobId: string }[]> {
  return sql<{ id: string; jobId: string }>`
    select id, job_id from pawl.stage
     where gate_until <= pawl.clock() and ended_at is null and state = 'waiting' and ends_as is null
       and id <> all(${list(except)}::uuid[])
     order by gate_until limit ${limit}::int`
}

/** Submissions that were interrupted: they were never visible, and nobody continues them. */
export async function findAbandonedSubmissions(
  sql: Sql,
  olderThanSeconds: number,
  limit: number,
  except: readonly string[],
): Promise<string[]> {
  return idsOf(
    await sql<{ id: string }>`
      select id from pawl.job
       where not visible and ended_at is null
         and progress_at < pawl.clock() - make_interval(secs => ${olderThanSeconds}::float8)
         and id <> all(${list(except)}::uuid[])
       limit ${limit}::int`,
  )
}

/**
 * Jobs without progress for longer than they allow, and without a reason to wait: no task is held, claimable or
 * delayed, no stage has a gate or a hold, and nothing can be added.
 */
export async function findStaleJobs(sql: Sql, limit: number, except: readonly string[]): Promise<string[]> {
  const open = inList(taskLifecycle.moves.claim.from)
  const held = inList(statesOf(taskLifecycle, 'held'))
  return idsOf(
    await sql<{ id: string }>`
      select j.id from pawl.job j
       where j.ended_at is null and j.visible and j.state in ('pending', 'running') and j.open = 'sealed'
         and j.progress_at <= pawl.clock() - make_interval(secs => j.stale_seconds)
         and j.id <> all(${list(except)}::uuid[])
         and not exists (select from pawl.stage s
                          where s.job_id = j.id and s.ended_at is null and (s.state = 'waiting' or s.open <> 'sealed'))
         and not exists (select from pawl.stage s join pawl.task t on t.stage_id = ${viaIndex('s.id')}
                          where s.job_id = j.id and s.ended_at is null and t.state in (${open}, ${held}))
       limit ${limit}::int`,
  )
}

/** The position of a scan through ended jobs. */
export interface JobScan {
  endedAt: string
  id: string
}

export const startOfJobScan: JobScan = { endedAt: '-infinity', id: '00000000-0000-0000-0000-000000000000' }

/**
 * Ended jobs past their retention whose dead letters are past theirs as well. Many jobs may stay because of their dead
 * letters, so each call scans one section, and the next call continues after it.
 */
export async function findJobsPastRetention(
  sql: Sql,
  keepSeconds: number,
  limit: number,
  except: readonly string[],
  scan: JobScan = startOfJobScan,
  perScan = 1000,
): Promise<{ ids: string[]; scan: JobScan }> {
  const [row] = await sql<{ ids: string[] | null; seen: number; endedAt: string | null; id: string | null }>`
    with stretch as materialized (
      select id, ended_at from pawl.job
       where ended_at < pawl.clock() - make_interval(secs => ${keepSeconds}::float8)
         and ended_at >= ${scan.endedAt}::timestamptz
         and (ended_at, id) > (${scan.endedAt}::timestamptz, ${scan.id}::uuid)
       order by ended_at, id limit ${perScan}::int
    ), old as (
      select id from stretch j
       where id <> all(${list(except)}::uuid[])
         and not exists (select from pawl.trouble x
                           join pawl.task t on t.id = ${viaIndex('x.task_id')}
                           left join pawl.task_type tt on tt.type = t.type
                          where x.job_id = j.id and x.state = 'dead_lettered'
                            and coalesce(pawl.kept_until(t.state, t.keep_until, t.ended_at, t.settings, tt.settings)
                                           > pawl.clock(), true))
       order by ended_at limit ${limit}::int
    )
    select (select array_agg(id) from old) as ids, (select count(*)::int from stretch) as seen, last.*
      from (select 1) as one
      left join (select ended_at::text as ended_at, id from stretch
                  order by stretch.ended_at desc, stretch.id desc limit 1) as last on true`
  const { ids, seen, endedAt, id } = row!
  const found = ids ?? []
  // The jobs that were found will be deleted, so the same section is scanned again until it contains no more.
  if (found.length === limit) return { ids: found, scan }
  return { ids: found, scan: seen < perScan ? startOfJobScan : { endedAt: endedAt!, id: id! } }
}
