import { type ArtifactState, artifactLifecycle } from '../../kernel/artifact.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, type Sql } from '../driver/sql.ts'

export interface MovedArtifact {
  readonly id: string
  readonly taskId: string
  readonly stageId: string | null
  readonly uri: string
  readonly stagedUri: string | null
}

const finals = inList(statesOf(artifactLifecycle, 'final'))

/**
 * Moves artifacts, each with its event, and returns those that it moved. An artifact that has changed its state in the
 * meantime is skipped, and so is one whose attempt has won, if it is to be discarded: both are checked again under the
 * lock. Rows are locked in the order of their ids, as in every batch. A stage that may have waited for an artifact gets
 * an empty row of counts: if this process dies before it drives the job, the babysitter finds that row.
 */
export async function moveArtifacts(
  sql: Sql,
  ids: readonly string[],
  { to, actor, cause }: { to: ArtifactState; actor: string; cause: string },
): Promise<MovedArtifact[]> {
  if (ids.length === 0) return []
  return sql<MovedArtifact>`
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
      returning a.id, a.seq, a.job_id, a.task_id, a.stage_id, a.uri, a.staged_uri, a.won
    ), wake_up as (
      insert into pawl.tally (job_id, stage_id)
      select distinct job_id, stage_id from moved where won and stage_id is not null and ${to}::text in ('stored', 'error')
    ), feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'artifact', array_agg(id), array_agg(seq) from moved having count(*) > 0
    )
    select id, task_id, stage_id, uri, staged_uri from moved`
}

function sourcesOf(to: ArtifactState): string[] {
  return [...new Set(Object.values(artifactLifecycle.moves).flatMap(move => (move.to === to ? [...move.from] : [])))]
}
