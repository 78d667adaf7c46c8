import type { Sql } from './sql.ts'

/** Vacuums the tables that have changed much since they were last looked after; answers how many. */
export async function vacuumBloatedTables(sql: Sql): Promise<number> {
  const worn = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
     where schemaname = ${sql.schema}
       and (n_dead_tup > 1000 + n_live_tup / 10 or n_mod_since_analyze > 1000 + n_live_tup / 5)`
  for (const { name } of worn) await sql.script(`vacuum analyze pawl.${name}`)
  return worn.length
}
