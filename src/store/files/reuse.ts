/** Tasks that are skipped because an earlier task did the same work. */
import { newId } from '../../kernel/id.ts'
import { nextTime } from '../driver/clock.ts'
import { list, type Sql } from '../driver/sql.ts'
import { moveArtifacts } from './artifact-moves.ts'

interface Reused {
  readonly taskId: string
  readonly doneBy: string
}

interface StageRef {
  readonly id: string
  readonly jobId: string
}

/**
 * Moves blocked tasks to `skipped`, each with the output of the earlier task, and appends to the counts of the stage.
 */
export async function skipTasks(sql: Sql, { id: stageId, jobId }: StageRef, reused: readonly Reused[]): Promise<void> {
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
export async function linkArtifacts(
  sql: Sql,
  { id: stageId, jobId }: StageRef,
  reused: readonly Reused[],
): Promise<void> {
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
