import { createHash } from 'node:crypto'
import { lifecycles } from '../../kernel/lifecycles.ts'
import { Problem } from '../../kernel/problem.ts'
import { defaultSettings } from '../../kernel/settings.ts'
import type { Sql } from '../driver/sql.ts'
import { storeFault } from '../driver/store-fault.ts'
import { currentGeneration } from '../feed/generation.ts'
import { lifecycleSql } from './lifecycle-sql.ts'
import { baseline } from './migrations/0013-baseline.ts'
import { timeline } from './migrations/0014-timeline.ts'
import { deadLetters } from './migrations/0015-dead-letters.ts'
import { keyRoles } from './migrations/0016-key-roles.ts'
import { conditionSteps } from './migrations/0017-condition-steps.ts'
import { pageBytes } from './migrations/0018-page-bytes.ts'
import { fewerWrites } from './migrations/0019-fewer-writes.ts'
import { roomForVersions } from './migrations/0020-room-for-versions.ts'
import { shortGuards } from './migrations/0021-short-guards.ts'
import { payloadVersion } from './migrations/0022-payload-version.ts'

interface Migration {
  readonly version: number
  readonly script: string
}

/** In order of version. A released migration is never edited; a later one corrects it. */
const migrations: readonly Migration[] = [
  { version: 13, script: baseline },
  { version: 14, script: timeline },
  { version: 15, script: deadLetters },
  { version: 16, script: keyRoles },
  { version: 17, script: conditionSteps },
  { version: 18, script: pageBytes },
  { version: 19, script: fewerWrites },
  { version: 20, script: roomForVersions },
  { version: 21, script: shortGuards },
  { version: 22, script: payloadVersion },
]

const migrationTable = `
-- The versions of the schema that were applied, and when.
create table if not exists pawl.migration (version integer primary key, at timestamptz not null default now());
`

const oldestVersion = migrations[0]!.version

/** The schema version that this program works with. */
export const schemaVersion = migrations.at(-1)!.version

/**
 * SQL that is derived from the kernel (guards, defaults). It is executed again whenever the schema version changes.
 * Stores keep a fingerprint of the text, so any change of it, even in a comment, needs a new version.
 */
export function guardsSql(): string {
  return settingsSql() + lifecycles.map(lifecycleSql).join('')
}

/** All SQL that creates a new schema, in order. */
export function schemaSql(): string {
  return [migrationTable, ...migrations.map(({ script }) => script), guardsSql()].join('')
}

/** Large tables take time, and a second process waits for the first one's migration. */
const migrationBounds = { statementSeconds: 3600, lockSeconds: 60, idleSeconds: 60 }

/**
 * Migrates the schema to this version. If two processes migrate at once, the second waits for the first one's
 * transaction and then finds nothing to do. An up-to-date schema is only read, so a role without write access can call
 * this.
 */
export function migrate(sql: Sql): Promise<{ applied: number; version: number }> {
  return sql.begin(async tx => {
    await tx`select pg_advisory_xact_lock(hashtextextended('pawl migrate ' || ${tx.schema}, 0))`
    const from = await versionOf(tx)
    if (from > schemaVersion) throw new Problem('SCHEMA_NEWER', { database: from, program: schemaVersion })
    if (from > 0 && from < oldestVersion) throw new Problem('SCHEMA_TOO_OLD', { database: from, oldest: oldestVersion })
    const missing = migrations.filter(({ version }) => version > from)
    if (missing.length > 0) await apply(tx, from, missing)
    await currentGeneration(tx)
    return { applied: missing.length, version: schemaVersion }
  }, migrationBounds)
}

/** Returns 0 if there is no store yet. */
async function versionOf(tx: Sql): Promise<number> {
  const [found] = await tx<{ isThere: boolean }>`
    select to_regclass(${`"${tx.schema}".migration`}) is not null as is_there`
  if (!found!.isThere) return 0
  const [row] = await tx<{ version: number }>`select coalesce(max(version), 0)::int as version from pawl.migration`
  return row!.version
}

async function apply(tx: Sql, from: number, missing: readonly Migration[]): Promise<void> {
  const [asked] = await tx<{ role: string; hasSchema: boolean }>`
    select current_user::text as role, to_regnamespace(${`"${tx.schema}"`}) is not null as has_schema`
  const { role, hasSchema } = asked!
  try {
    // PostgreSQL requires the right to create schemas even for `if not exists`.
    if (!hasSchema) await tx.script(`create schema "${tx.schema}"`)
    await tx.script(migrationTable)
    for (const { version, script } of missing) {
      await tx.script(script)
      await tx`insert into pawl.migration (version) values (${version})`
    }
    const guards = guardsSql()
    await tx.script(guards)
    await tx`update pawl.meta set guards = ${fingerprint(guards)}`
  } catch (error) {
    if (storeFault(error) !== 'refused') throw error
    const why = error instanceof Problem ? error.details.why : (error as Error).message
    throw new Problem('MIGRATION_REFUSED', { role, schema: tx.schema, from, to: schemaVersion, why }, error)
  }
}

export function fingerprint(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}

/**
 * SQL functions that resolve a setting: the task's own value, else that of its type, else the kernel's default. They
 * are plain SQL, so that they are inlined where they are used.
 */
function settingsSql(): string {
  return `
create or replace function pawl.setting(own jsonb, typed jsonb, name text) returns float8
  language sql immutable parallel safe as $$
  select case when own ? name then (own->>name)::float8
              when typed ? name then (typed->>name)::float8
              else ('${JSON.stringify(defaultSettings)}'::jsonb->>name)::float8 end
$$;

-- A lease has one end: its own, or two missed heartbeats. least() passes over a heartbeat that is null.
create or replace function pawl.lease_seconds(own jsonb, typed jsonb) returns float8
  language sql immutable parallel safe as $$
  select least(pawl.setting(own, typed, 'leaseSeconds'), 2 * pawl.setting(own, typed, 'heartbeatSeconds'))
$$;

-- When an ended task may be removed; null: not before somebody has acted on it. Dead letters have a retention of their
-- own, and stay until the task's date (keep_until) at least.
create or replace function pawl.kept_until(state text, keep_until timestamptz, ended_at timestamptz, own jsonb, typed jsonb)
  returns timestamptz language sql stable parallel safe as $$
  select case when state <> 'dead_lettered'
              then coalesce(keep_until, ended_at + make_interval(secs => pawl.setting(own, typed, 'keepSeconds')))
              when pawl.setting(own, typed, 'keepDeadLetterSeconds') is not null
              then greatest(keep_until,
                            ended_at + make_interval(secs => pawl.setting(own, typed, 'keepDeadLetterSeconds')))
         end
$$;
`
}
