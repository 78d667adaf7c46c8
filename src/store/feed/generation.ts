/**
 * Positions in the feed are transaction ids. They mean nothing on another server, after a restore, or on a standby that
 * was promoted before it had received everything: a reader would skip events or read them twice. So whenever the store
 * finds itself on another system or timeline, a new generation begins, and older cursors expire.
 */
import type { Sql } from '../driver/sql.ts'

/** Returns the current generation. Called on every feed read, because a pooler hides failovers. */
export async function currentGeneration(sql: Sql): Promise<string> {
  const [row] = await sql<{ generation: string; isHere: boolean; system: string; timeline: string }>`
    select m.generation, (m.system, m.timeline) is not distinct from (here.system, here.timeline) as is_here,
           here.system, here.timeline
      from pawl.meta m
     cross join (select (select system_identifier::text from pg_control_system()) as system,
                        -- The first part of a WAL file's name. pg_control knows the timeline only since the last checkpoint.
                        left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) as timeline) as here`
  const { generation, isHere, system, timeline } = row!
  return isHere ? generation : beginGeneration(sql, system, timeline)
}

/** Safe when several processes notice it at once: the first update changes the row, and the others match nothing. */
async function beginGeneration(sql: Sql, system: string, timeline: string): Promise<string> {
  await sql`
    update pawl.meta
       set generation = case when meta.system is null or (meta.system = ${system} and meta.timeline is null)
                             then generation else gen_random_uuid() end,
           system = ${system}, timeline = ${timeline}
     where (meta.system, meta.timeline) is distinct from (${system}, ${timeline})`
  const [row] = await sql<{ generation: string }>`select generation from pawl.meta`
  return row!.generation
}
