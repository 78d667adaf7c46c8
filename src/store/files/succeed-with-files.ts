import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { nextTime } from '../driver/clock.ts'
import { viaIndex } from '../driver/plans.ts'
import { inList, json, list, type Sql } from '../driver/sql.ts'
import { type Success, succeededColumns } from '../tasks/settle.ts'

const held = inList(statesOf(taskLifecycle, 'held'))

/**
 * Like `succeedTasks`, for tasks with files, of which this attempt has uploaded all: they win with it, and those that
 * were written to their place directly are stored. Returns the items that it did not change, for `decideFiles`: their
 * task is not held under this epoch, or has other open files.
 *
 * The statement sees the files as they were when it began, but others may register files until it has locked the task.
 * A registration also writes the row of the task (`registerArtifacts`, `lockForFiles`). So a task counts as missed if its
 * row is not the version that the statement saw.
 */
export async function succeedWithFiles<Item extends Success>(
  sql: Sql,
  items: readonly Item[],
): Promise<{ missed: Item[]; stageIds: string[]; isStaged: boolean }> {
  const [done] = await sql<{ ids: string[] | null; stageIds: string[] | null; isStaged: boolean }>`
    with
    -- The tasks that are held under their epoch and have files, with the version of their row.
    seen as materialized (
      select t.id, t.ctid::text as version, reported.epoch, reported.output, reported.ran_us
        from unnest(${list(items.map(item => item.id))}::uuid[], ${list(items.map(item => item.epoch))}::int[],
                    ${items.map(item => json(item.output))}::json[],
                    ${list(items.map(item => Math.round((item.ranMs ?? 0) * 1000)))}::bigint[])
          as reported (id, epoch, output, ran_us)
        join pawl.task t on t.id = ${viaIndex('reported.id')} and t.epoch = reported.epoch and t.state in (${held}) and t.files
    ),
    -- They are locked in the order of their ids, if nothing has changed them.
    locked as materialized (
      select seen.*
        from seen join pawl.task t on t.id = ${viaIndex('seen.id')} and t.ctid::text = seen.version
       order by t.id
         for update of t
    ),
    -- Their undecided files.
    open_file as materialized (
      select a.id, a.task_id, a.staged_uri is null as is_there, a.epoch = locked.epoch and a.state = 'uploaded' as wins
        from locked
        join pawl.artifact a on a.task_id = ${viaIndex('locked.id')} and a.state in ('registered', 'uploaded') and not a.won
    ),
    -- The tasks succeed.
    moved as (
      update pawl.task t
         set ${succeededColumns}
        from locked as report
       where t.id = ${viaIndex('report.id')}
         and not exists (select from open_file where task_id = report.id and not wins)
      returning t.id, t.seq, t.job_id, t.stage_id, ((t.history[t.seq - 1]).cause = 'implied') is true as begins
    ),
    -- Their files win. Files already at their final location become stored.
    won as (
      update pawl.artifact a
         set won      = true,
             at       = pawl.clock(),
             state    = case when is_there then 'stored' else a.state end,
             seq      = a.seq + case when is_there then 1 else 0 end,
             ended_at = case when is_there then ${nextTime('a')} end,
             history  = a.history || case when is_there then array[
               row(${nextTime('a')}, 0, 'stored', 'artifact.stored', 'engine', 'put_in_place', null)::pawl.step] end
        from open_file join moved on moved.id = open_file.task_id
       where a.id = ${viaIndex('open_file.id')}
      returning a.id, a.seq, is_there
    ),
    -- The ids of the tasks, and the ids with the seqs of all their new events.
    done as materialized (
      select array_agg(id) as ids, array_agg(id) filter (where begins) || array_agg(id) as moved,
             array_agg(seq - 1) filter (where begins) || array_agg(seq) as seqs
        from moved
    ),
    -- Adds the events to the feed.
    feed_entry as (
      insert into pawl.change (entity, ids, seqs)
      select 'task', moved, seqs from done where ids is not null
       union all
      select 'artifact', array_agg(id), array_agg(seq) from won where is_there having count(*) > 0
    ),
    -- Their stages get the changes of their counts.
    tally_entry as (
      insert into pawl.tally (job_id, stage_id, good, begun)
      select job_id, stage_id, count(*), count(*) filter (where begins)
        from moved where stage_id is not null group by job_id, stage_id
      returning stage_id
    )
    select ids, (select array_agg(stage_id) from tally_entry) as stage_ids,
           exists (select from won where not is_there) as is_staged
      from done`
  const { ids, stageIds, isStaged } = done!
  const ended = new Set(ids)
  return { missed: items.filter(item => !ended.has(item.id)), stageIds: stageIds ?? [], isStaged }
}
