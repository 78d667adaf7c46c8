import type { Sql } from '../driver/sql.ts'

/** The position of a scan through the feed, and whether it has deleted anything on its way. */
export interface ChangeScan {
  readonly tx: number
  readonly n: number
  readonly hasDeleted: boolean
}

export const startOfChangeScan: ChangeScan = { tx: 0, n: 0, hasDeleted: false }

/**
 * Deletes changes whose entities were all deleted, oldest first, one section of the feed per call. The scan passes over
 * changes that are kept forever, such as those of dead letters. It restarts from the beginning when a section without
 * deletions follows one with deletions, because everything after that was queued later and is kept longer, and when the
 * remaining changes are too young.
 *
 * The newest change is never deleted, because the cursors of up-to-date readers name it.
 */
export async function deleteOldChanges(
  sql: Sql,
  scan: ChangeScan,
  stretch = 1000,
): Promise<{ deleted: number; scan: ChangeScan }> {
  const [row] = await sql<{ deleted: number; tx: number | null; n: number }>`
    with stretch as materialized (
      select tx, n, ids
        from (select tx, n, at, ids, sum(cardinality(ids)) over (order by tx, n) - cardinality(ids) as before
                from (select tx, n, at, ids from pawl.change
                       where (tx, n) > (${scan.tx}::bigint, ${scan.n}::bigint)
                       order by tx, n limit ${stretch}::int) as following) as counted
       where before < 20000 and at < pawl.clock() - interval '1 day'
    ), gone as (
      delete from pawl.change using stretch
       where change.tx = stretch.tx and change.n = stretch.n
         and (change.tx, change.n) < (select tx, n from pawl.change order by tx desc, n desc limit 1)
         and not exists (select from pawl.task where id = any(stretch.ids))
         and not exists (select from pawl.stage where id = any(stretch.ids))
         and not exists (select from pawl.job where id = any(stretch.ids))
         and not exists (select from pawl.artifact where id = any(stretch.ids)) returning 1
    )
    select (select count(*) from gone) as deleted, last.tx, last.n
      from (select 1) as always
      left join (select tx, n from stretch order by tx desc, n desc limit 1) as last on true`
  const { deleted, tx, n } = row!
  const isOver = tx === null || (scan.hasDeleted && deleted === 0)
  return { deleted, scan: isOver ? startOfChangeScan : { tx, n, hasDeleted: scan.hasDeleted || deleted > 0 } }
}
