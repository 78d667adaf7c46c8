import type { FilesOptions } from '../files/files.ts'
import { schemaName } from '../kernel/fields.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { callerDriver } from '../store/caller.ts'
import { openEmbedded } from '../store/embedded.ts'
import { notifications, notifyOnCommit } from '../store/notify.ts'
import { postgresPool } from '../store/postgres.ts'
import { type Driver, makeSql, type Sql } from '../store/sql.ts'
import { timed } from '../store/timed.ts'
import { number, object, oneOf, text } from './check.ts'
import type { CallerTransaction, Log } from './context.ts'
import { type Connections, type Durations, makeDurations, observe } from './figures.ts'
import type { Messenger } from './wake.ts'

export interface PawlOptions {
  /** A PostgreSQL server. Default: the embedded store. */
  readonly database?: string
  /** Where the embedded store keeps its data. Default: in memory. */
  readonly folder?: string
  /** The schema that holds the tables. Default: pawl. */
  readonly schema?: string
  /** Connections to the server. Default 4. */
  readonly connections?: number
  /** Named statements; off for poolers that cannot keep them. Default true. */
  readonly prepare?: boolean
  /** The largest payload or output. Default 1 MiB. */
  readonly maxPayloadBytes?: number
  /** Bring the schema up to date when opening. Default true. */
  readonly migrate?: boolean
  /** A store that is open already, in place of `database` and `folder`. */
  readonly store?: Pick<Store, 'sql' | 'close'>
  /** Where files lie that are not on this machine. */
  readonly files?: FilesOptions
  /** Folders of this machine that jobs may name. Default: any. */
  readonly fileRoots?: readonly string[]
  /** Specs by name, as objects or as YAML or JSON text: `submit({ pipeline: name, input })` submits one. */
  readonly pipelines?: Readonly<Record<string, JobSpec | string>>
  readonly log?: Log
}

export const optionFields = {
  database: text(2000),
  folder: text(2000),
  schema: schemaName,
  connections: number({ from: 1, to: 100, whole: true }),
  prepare: oneOf([true, false]),
  maxPayloadBytes: number({ from: 1000, to: 100_000_000, whole: true }),
  migrate: oneOf([true, false]),
  store: () => undefined,
  files: object,
  fileRoots: (value: unknown) =>
    Array.isArray(value) && value.every(root => typeof root === 'string') ? undefined : 'be a list of folders',
  pipelines: object,
  log: (value: unknown) => (typeof value === 'function' ? undefined : 'be a function'),
}

export interface Store {
  readonly sql: Sql
  readonly aside?: Sql
  readonly messenger: Messenger | undefined
  readonly statements: Durations
  connections(): Connections
  tellOnCommit(sql: Sql, queues: readonly string[]): Promise<void>
  close(): Promise<void>
}

export async function openStore(options: PawlOptions): Promise<Store> {
  const schema = options.schema ?? 'pawl'
  const statements = makeDurations()
  const sqlOf = (driver: Driver) =>
    makeSql(
      timed(driver, seconds => observe(statements, seconds)),
      schema,
    )
  const single = { statements, connections: () => ({ inUse: 0, idle: 1, waiting: 0, most: 1 }) }
  const silent = { messenger: undefined, tellOnCommit: async () => {} }
  if (options.store !== undefined) return { ...options.store, ...single, ...silent }
  if (options.database === undefined) {
    const { driver, close } = await openEmbedded(options.folder)
    return { sql: sqlOf(driver), ...single, ...silent, close }
  }
  const { connections = 4, prepare = true } = options
  const { pool, driver } = postgresPool(options.database, { connections, prepare })
  const aside = postgresPool(options.database, { connections: 1, prepare: false })
  return {
    sql: sqlOf(driver),
    aside: sqlOf(aside.driver),
    messenger: notifications(options.database, pool, schema),
    statements,
    connections() {
      const { totalCount, idleCount: idle, waitingCount: waiting } = pool
      return { inUse: totalCount - idle, idle, waiting, most: connections }
    },
    tellOnCommit: (sql, queues) => notifyOnCommit(sql, queues),
    close: async () => void (await Promise.all([pool.end(), aside.pool.end()])),
  }
}

/** A caller's transaction as ours. */
export function asSql(tx: CallerTransaction, schema: string): Sql {
  return typeof tx === 'function' ? tx : makeSql(callerDriver(tx), schema)
}
