/**
 * Statements that insert tasks name the version of the payload schema that the payloads were checked against. If a type
 * has another one by now, they insert nothing. So no payload is queued that the current schema refuses, and a process
 * may remember schemas without asking whether they have changed.
 */
import type { Sql } from '../driver/sql.ts'

/** The versions, by type; types without a schema are missing. `unchecked`: insert the payloads as they are. */
export type PayloadVersions = ReadonlyMap<string, string> | 'unchecked'

/** Payloads were checked against schemas that are not the current ones, and nothing was inserted. */
export class StaleSchemas extends Error {
  readonly types: readonly string[]

  constructor(types: readonly string[]) {
    super(`the payload schemas of these types kept changing, and nothing was queued: ${types.join(', ')}`)
    this.types = types
  }
}

export function throwIfStale(types: readonly string[]): void {
  if (types.length > 0) throw new StaleSchemas([...new Set(types)])
}

/** The types of tasks that are to be inserted, each with the version that it must have; null: no schema. */
export function expectedVersions(types: readonly string[], versions: PayloadVersions) {
  if (versions === 'unchecked') return { types: [], versions: [] }
  const known = [...new Set(types)]
  return { types: known, versions: known.map(type => versions.get(type) ?? null) }
}

export interface PayloadSchemaRow {
  readonly type: string
  readonly schema: Readonly<Record<string, unknown>>
  readonly version: string
  /** Length of the schema as JSON. */
  readonly length: number
}

/** The versions of the current schemas of those of these types that have one. */
export function readPayloadVersions(
  sql: Sql,
  types: readonly string[],
): Promise<Pick<PayloadSchemaRow, 'type' | 'version'>[]> {
  return sql<PayloadSchemaRow>`
    select type, payload_version as version
      from pawl.task_type where type = any(${types}::text[]) and payload_version is not null`
}

/** The current schemas of those of these types that have one. */
export function readPayloadSchemas(sql: Sql, types: readonly string[]): Promise<PayloadSchemaRow[]> {
  return sql<PayloadSchemaRow>`
    select type, payload_schema as schema, payload_version as version, length(payload_schema::text) as length
      from pawl.task_type
     where type = any(${types}::text[]) and payload_schema is not null`
}
