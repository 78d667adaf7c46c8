import { newId } from '../../kernel/id.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, list, type Sql } from '../driver/sql.ts'
import type { LeaseRef } from '../tasks/settle.ts'
import { type ArtifactRow, artifactColumns } from './read-artifacts.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

/**
 * Registers the files of a task that has none yet, in one statement: all of them, or none if a URI belongs to another
 * attempt, which is a conflict. Returns an empty list if the task is not held under this epoch, has files already, or
 * has another output folder.
 *
 * Two reports at once are safe, because the second one waits for the row of the task, and then sees that it has files.
 */
export function registerFirst(
  sql: Sql,
  { id, epoch }: LeaseRef,
  outputs: string,
  files: readonly { readonly name: string; readonly uri: string }[],
): Promise<ArtifactRow[]> {
  const sorted = files.toSorted((one, other) => (one.uri < other.uri ? -1 : 1))
  return sql<ArtifactRow>`
    with
    -- The task, locked.
    holder as materialized (
      select id, job_id, stage_id, owner from pawl.task
       where id = ${id}::uuid and epoch = ${epoch}::int and state in (${held}) and not files
         and json_typeof(payload) = 'object' and payload->>'outputs' = ${outputs}
         for update
    ),
    -- From now on, its end decides on files.
    marked as (
      update pawl.task t set files = true from holder where t.id = ${viaIndex('holder.id')}
    ),
    made as (
      insert into pawl.artifact as a (id, task_id, job_id, stage_id, epoch, name, uri, seq, round, state, history)
      select f.id, holder.id, holder.job_id, holder.stage_id, ${epoch}::int, f.name, f.uri, 1, 1, 'registered',
             array[row(pawl.clock(), 0, 'registered', 'artifact.registered', 'worker:' || holder.owner, 'registered',
                       null)::pawl.step]
        from holder
       cross join unnest(${list(sorted.map(newId))}::uuid[], ${sorted.map(file => file.name)}::text[],
                         ${sorted.map(file => file.uri)}::text[]) as f (id, name, uri)
      on conflict (coalesce(job_id, task_id), md5(uri)) where state in ('registered', 'uploaded', 'stored') do nothing
      returning ${artifactColumns}
    ),
    -- Adds the events to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'artifact', array_agg(id), array_fill(1, array[count(*)::int]) from made having count(*) > 0
    )
    -- The guard is not read: if some of the files were not inserted, it rolls the statement back.
    select made.*, case when (select count(*) from made) <> ${files.length} then pawl.try_again() end as guard
      from made order by id`
}
