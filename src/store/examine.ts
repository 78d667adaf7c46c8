/** What the doctor looks at in the database itself: what makes a queue slow, or its clock and schema untrue. */
import { fingerprint, guardsSql, migrations } from './migrate.ts'
import { widely } from './plans.ts'
import type { Sql } from './sql.ts'

export interface PinnedSnapshot {
  readonly pid: number
  readonly who: string
  readonly state: string
  readonly seconds: number
  readonly query: string
}

/** Whoever keeps old row versions alive, and so holds back vacuum and the event feed, for longer than `seconds`. */
export function pinnedSnapshots(sql: Sql, seconds: number): Promise<PinnedSnapshot[]> {
  return sql<PinnedSnapshot>`
    select pid, coalesce(nullif(application_name, ''), usename::text, 'unknown') as who,
           coalesce(state, backend_type) as state,
           extract(epoch from clock_timestamp() - xact_start)::float8 as seconds, left(query, 80) as query
      from pg_stat_activity
     where pid <> pg_backend_pid() and xact_start < clock_timestamp() - make_interval(secs => ${seconds}::float8)
       and (backend_xid is not null or backend_xmin is not null)
     union all
    select coalesce(active_pid, 0), slot_name::text, 'replication slot', 0,
           'xmin ' || coalesce(xmin, catalog_xmin)::text
      from pg_replication_slots where not active and coalesce(xmin, catalog_xmin) is not null
     order by seconds desc limit 20`
}

export interface WornTable {
  readonly name: string
  readonly live: number
  readonly dead: number
  readonly bytes: number
}

/** Tables with more dead rows than living ones. */
export function wornTables(sql: Sql): Promise<WornTable[]> {
  return sql<WornTable>`
    select relname as name, n_live_tup as live, n_dead_tup as dead, pg_total_relation_size(relid) as bytes
      from pg_stat_user_tables
     where schemaname = ${sql.schema} and n_dead_tup > 10000 and n_dead_tup > n_live_tup
     order by n_dead_tup desc`
}

/** How far this machine's clock is from the database's, in seconds; the way there and back is taken into account. */
export async function clockSkew(sql: Sql): Promise<number> {
  const sent = Date.now()
  const [row] = await sql<{ ms: number }>`select extract(epoch from clock_timestamp())::float8 * 1000 as ms`
  const middle = (sent + Date.now()) / 2
  return (middle - row!.ms) / 1000
}

export interface Drift {
  readonly what: string
}

/** Where the schema is not what this program would have made. */
export async function schemaDrift(sql: Sql): Promise<Drift[]> {
  const [version] = await sql<{ version: number }>`select max(version)::int as version from pawl.migration`
  const [meta] = await sql<{ guards: string }>`select guards from pawl.meta`
  const drift: Drift[] = []
  if (version!.version !== migrations.length) {
    drift.push({ what: `the schema is at version ${version!.version}, this program at ${migrations.length}` })
  }
  if (meta!.guards !== fingerprint(guardsSql()))
    drift.push({ what: 'the guards are of another version of the lifecycles' })
  const missing = await widely(
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
