import type { FilesOptions } from '../files/files.ts'
import { schemaName } from '../kernel/fields.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { callerDriver } from '../store/caller.ts'
import { openEmbedded } from '../store/embedded.ts'
import { notifications, notifyOnCommit } from '../store/notify.ts'
import { openPools, type Pools, usualBounds } from '../store/postgres.ts'
import { type Bounds, type Driver, makeSql, type Sql } from '../store/sql.ts'
import { timed } from '../store/timed.ts'
import { checkOptions, number, object, oneOf, text } from './check.ts'
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
  /**
   * How long, in seconds, a statement may take (default 10), wait for a row that another transaction holds (3), and a
   * transaction may be idle (10). Questions about everything, and migrations, have longer bounds of their own.
   */
  readonly bounds?: Bounds
  /** The largest payload or output. Default 1 MiB. */
  readonly maxPayloadBytes?: number
  /** Bring the schema up to date when opening. Default true. */
  readonly migrate?: boolean
  /** A store that is open already, in place of `database` and `folder`. Without a messenger, it has one connection. */
  readonly store?: Pick<Store, 'sql' | 'close'> & Partial<Store>
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
  bounds: object,
  maxPayloadBytes: number({ from: 1000, to: 100_000_000, whole: true }),
  migrate: oneOf([true, false]),
  store: () => undefined,
  files: object,
  fileRoots: (value: unknown) =>
    Array.isArray(value) && value.every(root => typeof root === 'string') ? undefined : 'be a list of folders',
  pipelines: object,
  log: (value: unknown) => (typeof value === 'function' ? undefined : 'be a function'),
}

const seconds = number({ from: 0.01, to: 86_400 })
const boundFields = { statementSeconds: seconds, lockSeconds: seconds, idleSeconds: seconds }

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
  if (options.store !== undefined) return { ...oneConnection, statements: makeDurations(), ...options.store }
  if (options.database === undefined) {
    const statements = makeDurations()
    const { driver, close } = await openEmbedded(options.folder)
    return { ...oneConnection, statements, sql: timedSql(driver, statements, schema), close }
  }
  const { database, connections = 4, prepare = true } = options
  checkOptions(options.bounds ?? {}, boundFields, 'bounds')
  const bounds = { ...usualBounds, ...options.bounds }
  return serverStore(database, openPools(database, { connections, prepare, bounds }), schema)
}

/** The embedded store: nobody else can write to it, so nobody needs to be notified. */
const oneConnection = {
  messenger: undefined,
  tellOnCommit: async () => {},
  connections: () => ({ inUse: 0, idle: 1, waiting: 0, most: 1 }),
}

/** A schema on a server that `pools` are connected to. */
export function serverStore(url: string, pools: Pools, schema: string): Store {
  const statements = makeDurations()
  const { pool } = pools
  return {
    sql: timedSql(pools.driver, statements, schema),
    aside: timedSql(pools.aside, statements, schema),
    messenger: notifications(url, pools.driver, schema),
    statements,
    connections() {
      const { totalCount, idleCount: idle, waitingCount: waiting } = pool
      return { inUse: totalCount - idle, idle, waiting, most: pool.options.max }
    },
    tellOnCommit: (sql, queues) => notifyOnCommit(sql, queues),
    close: pools.close,
  }
}

function timedSql(driver: Driver, statements: Durations, schema: string): Sql {
  return makeSql(
    timed(driver, seconds => observe(statements, seconds)),
    schema,
  )
}

/** A caller's transaction as ours. */
export function asSql(tx: CallerTransaction, schema: string): Sql {
  return typeof tx === 'function' ? tx : makeSql(callerDriver(tx), schema)
}
