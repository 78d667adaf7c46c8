/** Checks of the doctor on the database itself: causes of a slow queue, clock skew, and drift of the schema. */

import { withTableScans } from '../driver/plans.ts'
import type { Sql } from '../driver/sql.ts'
import { fingerprint, guardsSql, schemaVersion } from '../schema/migrate.ts'

export interface LongTransaction {
  readonly pid: number
  readonly who: string
  readonly database: string
  readonly state: string
  readonly seconds: number
  readonly query: string
}

/**
 * Sessions of any database whose transaction has been open for longer than `seconds`. They keep old row versions alive,
 * and those that have written hold back the event feed.
 */
export function longTransactions(sql: Sql, seconds: number): Promise<LongTransaction[]> {
  return sql<LongTransaction>`
    select pid, coalesce(nullif(application_name, ''), usename::text, 'unknown') as who,
           coalesce(datname::text, 'none') as database, coalesce(state, backend_type) as state,
           extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, left(query, 80) as query
      from pg_stat_activity
     where pid <> pg_backend_pid() and xact_start < clock_timestamp() - make_interval(secs => ${seconds}::float8)
       and (backend_xid is not null or backend_xmin is not null) and backend_type = 'client backend'
     order by seconds desc limit 20`
}

export interface PreparedTransaction {
  readonly gid: string
  readonly owner: string
  readonly database: string
  readonly seconds: number
}

/** Prepared transactions (two-phase commit) that nobody has ended for longer than `seconds`. */
export function preparedTransactions(sql: Sql, seconds: number): Promise<PreparedTransaction[]> {
  return sql<PreparedTransaction>`
    select gid, owner::text as owner, database::text as database,
           extract(epoch from clock_timestamp() - prepared)::float8 as seconds
      from pg_prepared_xacts
     where prepared < clock_timestamp() - make_interval(secs => ${seconds}::float8)
     order by prepared limit 20`
}

export interface HoldingSlot {
  readonly name: string
  readonly active: boolean
  /** Age, in transactions, of the oldest rows that it keeps; null: it keeps none. */
  readonly heldTransactions: number | null
  readonly walBytes: number
}

/** Replication slots that keep row versions, or so much write-ahead log that the disk may fill up. */
export function findHoldingSlots(sql: Sql, heldTransactions: number, walBytes: number): Promise<HoldingSlot[]> {
  return sql<HoldingSlot>`
    select * from (
      select slot_name::text as name, active,
             greatest(age(xmin), age(catalog_xmin)) as held_transactions,
             case when pg_is_in_recovery() or restart_lsn is null then 0
                  else pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) end::float8 as wal_bytes
        from pg_replication_slots) as slot
     where (not active and held_transactions is not null)
        or held_transactions > ${heldTransactions}::int or wal_bytes > ${walBytes}::float8
     order by wal_bytes desc limit 20`
}

export interface BloatedTable {
  readonly name: string
  readonly live: number
  readonly dead: number
  readonly bytes: number
}

/** Tables with more dead rows than live ones. */
export function bloatedTables(sql: Sql): Promise<BloatedTable[]> {
  return sql<BloatedTable>`
    select relname as name, n_live_tup as live, n_dead_tup as dead, pg_total_relation_size(relid) as bytes
      from pg_stat_user_tables
     where schemaname = ${sql.schema} and n_dead_tup > 10000 and n_dead_tup > n_live_tup
     order by n_dead_tup desc`
}

/** The clock skew between this machine and the database in seconds, corrected for the round trip. */
export async function clockSkew(sql: Sql): Promise<number> {
  const sent = Date.now()
  const [row] = await sql<{ ms: number }>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`
  const middle = (sent + Date.now()) / 2
  return (middle - row!.ms) / 1000
}

export interface Drift {
  readonly what: string
}

/** Differences between the schema and the one that this program would create. */
export async function schemaDrift(sql: Sql): Promise<Drift[]> {
  const [version] = await sql<{ version: number }>`select max(version)::int as version from pawl.migration`
  const [meta] = await sql<{ guards: string }>`select guards from pawl.meta`
  const drift: Drift[] = []
  if (version!.version !== schemaVersion) {
    drift.push({ what: `the schema is at version ${version!.version}, this program at ${schemaVersion}` })
  }
  if (meta!.guards !== fingerprint(guardsSql()))
    drift.push({ what: 'the guards are of another version of the lifecycles' })
  const missing = await withTableScans(
    sql,
    tx => tx<{ what: string }>`
    select format('trigger %s of %s is missing or switched off', w.name, w.relation) as what
      from (select entity as relation, entity || '_' || rule as name
              from unnest(array['task', 'stage', 'job', 'artifact']) as entity
             cross join unnest(array['begins_legally', 'moves_legally', 'ends_before_it_goes']) as rule) as w
     where not exists (
             select from pg_trigger g join pg_class c on c.oid = g.tgrelid join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = ${sql.schema} and c.relname = w.relation and g.tgname = w.name and g.tgenabled <> 'D')
     union all
    select format('constraint %s of %s is missing', w.name, w.relation)
      from (select entity as relation, entity || '_' || rule as name
              from unnest(array['task', 'stage', 'job', 'artifact']) as entity
             cross join unnest(array['ended_iff_final', 'one_event_per_seq', 'last_event_is_the_row']) as rule) as w
     where not exists (
             select from pg_constraint k join pg_class c on c.oid = k.conrelid join pg_namespace n on n.oid = c.relnamespace
              where n.nspname = ${sql.schema} and c.relname = w.relation and k.conname = w.name)`,
  )
  return [...drift, ...missing]
}

export async function serverVersion(sql: Sql): Promise<string> {
  const [row] = await sql<{ version: string }>`select split_part(version(), ' on ', 1) as version`
  return row!.version
}

/** Vacuums tables that have changed a lot since the last vacuum, and returns how many. */
export async function vacuumBloatedTables(sql: Sql): Promise<number> {
  const worn = await sql<{ name: string }>`
    select relname as name from pg_stat_user_tables
     where schemaname = ${sql.schema}
       and (n_dead_tup > 1000 + n_live_tup / 10 or n_mod_since_analyze > 1000 + n_live_tup / 5)`
  for (const { name } of worn) await sql.script(`vacuum analyze pawl.${name}`)
  return worn.length
}
