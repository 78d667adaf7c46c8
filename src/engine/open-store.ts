import type { FilesOptions } from '../files/files.ts'
import type { PodRules } from '../kernel/pod-rules.ts'
import { poolerModes } from '../kernel/pooler-mode.ts'
import type { TaskRegistry } from '../protocol/tasks/registry.ts'
import { boundSeconds, schemaName } from '../schema/fields.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { callerTransactions, refuseForeign } from '../store/driver/caller-driver.ts'
import { openEmbedded } from '../store/driver/embedded.ts'
import { type Listening, notifications, notifyOnCommit } from '../store/driver/notify.ts'
import { defaultBounds, openPools, type Pools } from '../store/driver/postgres.ts'
import { makeReadiness, type Readiness } from '../store/driver/readiness.ts'
import { type Driver, makeSql, observeDriver, type Sql } from '../store/driver/sql.ts'
import { type Connections, type Durations, makeDurations, observe } from './admin/process-metrics.ts'
import {
  anything,
  callback,
  checkOptions,
  type Field,
  type Fields,
  field,
  flag,
  number,
  type OptionsOf,
  object,
  oneOf,
  text,
} from './check.ts'
import type { Log } from './context.ts'
import type { Messenger } from './wake.ts'

const boundFields = {
  /** Limit for one statement. Default 10. */
  statementSeconds: boundSeconds,
  /** Limit for waiting for a row that another transaction has locked. Default 3. */
  lockSeconds: boundSeconds,
  /** Limit for a transaction that sends no statement. Default 10. */
  idleSeconds: boundSeconds,
  /**
   * Limit for waiting for a connection (default 10) or, on the embedded store, for earlier transactions (default 60).
   */
  connectionSeconds: boundSeconds,
}

/** Time limits of the store, in seconds. Migrations and reads of whole tables have longer limits of their own. */
export interface StoreBounds extends OptionsOf<typeof boundFields> {}

const texts = (what: string) =>
  field<readonly string[]>({}, value =>
    Array.isArray(value) && value.every(item => typeof item === 'string') ? undefined : `be a list of ${what}`,
  )

export const optionFields = {
  /** Connection string of a PostgreSQL server. Default: the embedded store. */
  database: text(2000),
  /** Where the embedded store keeps its data. Default: in memory. */
  folder: text(2000),
  /** The schema that holds the tables. Default: pawl. */
  schema: schemaName,
  /** Number of connections to the server. Default 4. */
  connections: number({ from: 1, to: 100, whole: true }),
  /** Uses prepared statements. Turn it off for poolers that do not support them. Default true. */
  prepare: flag,
  /**
   * Whether `database` is a pooler such as PgBouncer that assigns connections per transaction. Default: detected. Use
   * `none` for a pooler that assigns whole sessions.
   */
  pooler: oneOf(poolerModes),
  /**
   * If `database` is a pooler: connection string of the server itself, for LISTEN. Without it, changes by other
   * processes are found by polling.
   */
  listenDatabase: text(2000),
  bounds: object as Field<StoreBounds>,
  /** Maximum size of a payload or output. Default 1 MiB. */
  maxPayloadBytes: number({ from: 1000, to: 100_000_000, whole: true }),
  /** Update the schema when opening. Default true. */
  migrate: flag,
  /** An open store to use in place of `database` and `folder`. Without a messenger, it has one connection. */
  store: anything as Field<Pick<Store, 'sql' | 'close'> & Partial<Store>>,
  /** Settings for files that are not on this machine. */
  files: object as Field<FilesOptions>,
  /** Local folders that jobs may name. Files must be inside them after links are resolved. Default: any. */
  fileRoots: texts('folders'),
  /** S3 buckets that jobs may name; `*`: all. Default: all, or none if `fileRoots` is given. */
  s3Buckets: texts('buckets'),
  /** Limits for the Kubernetes pods of stages, checked when a job is submitted. Default: no limits. */
  podRules: object as Field as Field<PodRules>,
  /** Named job specs, as objects or as YAML or JSON text: `submit({ pipeline: name, input })` submits one. */
  pipelines: object as Field<Readonly<Record<string, JobSpec | string>>>,
  /** Tasks by name. `enqueue` and `enqueueMany` then accept these names only, each with the payload of its task. */
  tasks: object as Field<TaskRegistry>,
  log: callback as Field<Log>,
} satisfies Fields

/** Options of the engine in this process. */
export interface PawlOptions extends OptionsOf<typeof optionFields> {}

export interface Store {
  readonly sql: Sql
  readonly separate?: Sql
  readonly probe?: Sql
  readonly messenger: Messenger | undefined
  readonly statements: Durations
  readonly readiness: Readiness
  connections(): Connections
  notifyOnCommit(sql: Sql, queues: readonly string[]): Promise<void>
  /** Runs `work` in a transaction of another library, in a savepoint. */
  inForeignTransaction<T>(tx: object, work: (sql: Sql) => Promise<T>): Promise<T>
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
  inForeignTransaction: refuseForeign,
  connections: () => ({ inUse: 0, idle: 1, waiting: 0, most: 1 }),
}

/** Opens a schema on the server that `pools` is connected to. */
export function serverStore(listening: Listening, pools: Pools, schema: string): Store {
  const observing = makeObserving()
  const { pool } = pools
  const run = callerTransactions(pools.types)
  return {
    sql: observedSql(pools.driver, observing, schema),
    separate: observedSql(pools.separate, observing, schema),
    probe: observedSql(pools.probe, observing, schema),
    messenger: notifications(listening, pools.driver, schema),
    ...observing,
    connections() {
      const { totalCount, idleCount: idle, waitingCount: waiting } = pool
      return { inUse: totalCount - idle, idle, waiting, most: pool.options.max }
    },
    notifyOnCommit,
    inForeignTransaction: (tx, work) => run(tx, driver => work(makeSql(driver, schema))),
    close: pools.close,
  }
}

type Observing = Pick<Store, 'statements' | 'readiness'>

const makeObserving = (): Observing => ({ statements: makeDurations(), readiness: makeReadiness() })

function observedSql(driver: Driver, { statements, readiness }: Observing, schema: string): Sql {
  const { recordFault } = readiness
  return makeSql(observeDriver(driver, { recordSeconds: seconds => observe(statements, seconds), recordFault }), schema)
}
