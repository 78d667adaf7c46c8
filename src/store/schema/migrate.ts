import { createHash } from 'node:crypto'
import { lifecycles } from '../../kernel/lifecycles.ts'
import { Problem } from '../../kernel/problem.ts'
import type { Sql } from '../driver/sql.ts'
import { storeFault } from '../driver/store-fault.ts'
import { currentGeneration } from '../feed/generation.ts'
import { lifecycleSql } from './lifecycle-sql.ts'
import { baseline } from './migrations/0013-baseline.ts'
import { timeline } from './migrations/0014-timeline.ts'
import { deadLetters } from './migrations/0015-dead-letters.ts'
import { keyRoles } from './migrations/0016-key-roles.ts'
import { conditionSteps } from './migrations/0017-condition-steps.ts'
import { settingsSql } from './settings-sql.ts'

interface Migration {
  readonly version: number
  readonly script: string
}

/** In order of version, forward only: a migration that has landed is never edited; a later one corrects it. */
const migrations: readonly Migration[] = [
  { version: 13, script: baseline },
  { version: 14, script: timeline },
  { version: 15, script: deadLetters },
  { version: 16, script: keyRoles },
  { version: 17, script: conditionSteps },
]

const migrationTable = `
-- The versions of the schema that were applied, and when.
create table if not exists pawl.migration (version integer primary key, at timestamptz not null default now());
`

const oldestVersion = migrations[0]!.version

/** The version of the schema that this program works with. */
export const schemaVersion = migrations.at(-1)!.version

/** What is derived from the kernel (guards, defaults) is laid anew whenever the schema moves on. */
export function guardsSql(): string {
  return settingsSql() + lifecycles.map(lifecycleSql).join('')
}

/** Everything that creates a new schema, in order. */
export function schemaSql(): string {
  return [migrationTable, ...migrations.map(({ script }) => script), guardsSql()].join('')
}

/** Large tables take their time; another process that migrates is waited for. */
const migrationBounds = { statementSeconds: 3600, lockSeconds: 60, idleSeconds: 60 }

/**
 * Brings the schema up to this version. A second process that migrates at once waits for the first one's transaction
 * and then finds nothing to do. A schema that is up to date is only read, so a role that may change nothing can use it.
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

/** 0: there is no store yet. */
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
    // PostgreSQL wants the right to create schemas even for `if not exists`.
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
