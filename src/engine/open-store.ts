import type { FilesOptions } from '../files/files.ts'
import type { PodRules } from '../kernel/pod-rules.ts'
import { type PoolerMode, poolerModes } from '../kernel/pooler-mode.ts'
import { boundSeconds, schemaName } from '../schema/fields.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { openEmbedded } from '../store/driver/embedded.ts'
import { type Listening, notifications, notifyOnCommit } from '../store/driver/notify.ts'
import { observeDriver } from '../store/driver/observed-driver.ts'
import { defaultBounds, openPools, type Pools } from '../store/driver/postgres.ts'
import { makeReadiness, type Readiness } from '../store/driver/readiness.ts'
import { callerDriver } from '../store/driver/savepoints.ts'
import { type Driver, makeSql, type Sql } from '../store/driver/sql.ts'
import { type Connections, type Durations, makeDurations, observe } from './admin/process-metrics.ts'
import { anything, callback, checkOptions, field, number, object, oneOf, text } from './check.ts'
import type { CallerTransaction, Log } from './context.ts'
import type { Messenger } from './wake.ts'

/** Time limits of the store, in seconds. Migrations and reads of whole tables have longer limits of their own. */
export interface StoreBounds {
  /** Limit for one statement. Default 10. */
  readonly statementSeconds?: number
  /** Limit for waiting for a row that another transaction has locked. Default 3. */
  readonly lockSeconds?: number
  /** Limit for a transaction that sends no statement. Default 10. */
  readonly idleSeconds?: number
  /**
   * Limit for waiting for a connection (default 10) or, on the embedded store, for earlier transactions (default 60).
   */
  readonly connectionSeconds?: number
}

/** Options of the engine in this process. */
export interface PawlOptions {
  /** Connection string of a PostgreSQL server. Default: the embedded store. */
  readonly database?: string
  /** Where the embedded store keeps its data. Default: in memory. */
  readonly folder?: string
  /** The schema that holds the tables. Default: pawl. */
  readonly schema?: string
  /** Number of connections to the server. Default 4. */
  readonly connections?: number
  /** Uses prepared statements. Turn it off for poolers that do not support them. Default true. */
  readonly prepare?: boolean
  /**
   * Whether `database` is a pooler such as PgBouncer that assigns connections per transaction. Default: detected. Use
   * `none` for a pooler that assigns whole sessions.
   */
  readonly pooler?: PoolerMode
  /**
   * If `database` is a pooler: connection string of the server itself, for LISTEN. Without it, changes by other
   * processes are found by polling.
   */
  readonly listenDatabase?: string
  readonly bounds?: StoreBounds
  /** Maximum size of a payload or output. Default 1 MiB. */
  readonly maxPayloadBytes?: number
  /** Update the schema when opening. Default true. */
  readonly migrate?: boolean
  /** An open store to use in place of `database` and `folder`. Without a messenger, it has one connection. */
  readonly store?: Pick<Store, 'sql' | 'close'> & Partial<Store>
  /** Settings for files that are not on this machine. */
  readonly files?: FilesOptions
  /** Local folders that jobs may name. Files must be inside them after links are resolved. Default: any. */
  readonly fileRoots?: readonly string[]
  /** S3 buckets that jobs may name; `*`: all. Default: all, or none if `fileRoots` is given. */
  readonly s3Buckets?: readonly string[]
  /** Limits for the Kubernetes pods of stages, checked when a job is submitted. Default: no limits. */
  readonly podRules?: PodRules
  /** Named job specs, as objects or as YAML or JSON text: `submit({ pipeline: name, input })` submits one. */
  readonly pipelines?: Readonly<Record<string, JobSpec | string>>
  readonly log?: Log
}

const isTexts = (value: unknown) => Array.isArray(value) && value.every(item => typeof item === 'string')

export const optionFields = {
  database: text(2000),
  folder: text(2000),
  schema: schemaName,
  connections: number({ from: 1, to: 100, whole: true }),
  prepare: oneOf([true, false]),
  pooler: oneOf(poolerModes),
  listenDatabase: text(2000),
  bounds: object,
  maxPayloadBytes: number({ from: 1000, to: 100_000_000, whole: true }),
  migrate: oneOf([true, false]),
  store: anything,
  files: object,
  fileRoots: field({}, value => (isTexts(value) ? undefined : 'be a list of folders')),
  s3Buckets: field({}, value => (isTexts(value) ? undefined : 'be a list of buckets')),
  podRules: object,
  pipelines: object,
  log: callback,
}

const boundFields = {
  statementSeconds: boundSeconds,
  lockSeconds: boundSeconds,
  idleSeconds: boundSeconds,
  connectionSeconds: boundSeconds,
}

export interface Store {
  readonly sql: Sql
  readonly aside?: Sql
  readonly probe?: Sql
  readonly messenger: Messenger | undefined
  readonly statements: Durations
  readonly readiness: Readiness
  connections(): Connections
  notifyOnCommit(sql: Sql, queues: readonly string[]): Promise<void>
  close(): Promise<void>
}

export async function openStore(options: PawlOptions): Promise<Store> {
  const schema = options.schema ?? 'pawl'
  const { database, connections = 4, prepare = true, pooler = 'detect', listenDatabase } = options
  const { connectionSeconds, ...bounds } = options.bounds ?? {}
  checkOptions(options.bounds ?? {}, boundFields, 'bounds')
  const observing = makeObserving()
  if (options.store !== undefined) return { ...oneConnection, ...observing, ...options.store }
  if (database === undefined) {
    const { driver, close } = await openEmbedded(options.folder, connectionSeconds)
    return { ...oneConnection, ...observing, sql: observedSql(driver, observing, schema), close }
  }
  const pools = openPools(database, {
    connections,
    prepare,
    bounds: { ...defaultBounds, ...bounds },
    ...(connectionSeconds !== undefined && { connectionSeconds }),
    pooler,
  })
  const listening =
    listenDatabase === undefined ? { url: database, pooler } : { url: listenDatabase, pooler: 'none' as const }
  return serverStore(listening, pools, schema)
}

/** Nothing else can write to the embedded store, so nobody needs to be notified. */
const oneConnection = {
  messenger: undefined,
  notifyOnCommit: async () => {},
  connections: () => ({ inUse: 0, idle: 1, waiting: 0, most: 1 }),
}

/** Opens a schema on the server that `pools` is connected to. */
export function serverStore(listening: Listening, pools: Pools, schema: string): Store {
  const observing = makeObserving()
  const { pool } = pools
  return {
    sql: observedSql(pools.driver, observing, schema),
    aside: observedSql(pools.aside, observing, schema),
    probe: observedSql(pools.probe, observing, schema),
    messenger: notifications(listening, pools.driver, schema),
    ...observing,
    connections() {
      const { totalCount, idleCount: idle, waitingCount: waiting } = pool
      return { inUse: totalCount - idle, idle, waiting, most: pool.options.max }
    },
    notifyOnCommit: (sql, queues) => notifyOnCommit(sql, queues),
    close: pools.close,
  }
}

type Observing = Pick<Store, 'statements' | 'readiness'>

const makeObserving = (): Observing => ({ statements: makeDurations(), readiness: makeReadiness() })

function observedSql(driver: Driver, { statements, readiness }: Observing, schema: string): Sql {
  const { recordFault } = readiness
  return makeSql(observeDriver(driver, { recordSeconds: seconds => observe(statements, seconds), recordFault }), schema)
}

/** Returns a caller's transaction as ours. */
export function asSql(tx: CallerTransaction, schema: string): Sql {
  return typeof tx === 'function' ? tx : makeSql(callerDriver(tx), schema)
}
