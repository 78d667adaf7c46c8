/** The settings, as a table: the flags, the environment and the file are all read by it, and `pawl config` prints it. */
import { type Field, number, oneOf, text } from '../kernel/check.ts'
import { boundSeconds, poolerModes, schemaName, serverUrl, settingFields } from '../kernel/fields.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { logLevels } from '../protocol/logs.ts'
import { defaultPort, silentLeaseSeconds } from '../server/options.ts'
import { database, dialectsOrNone, folders, names, pipelines, queues, taskTypes } from './checks.ts'
import type { PawlConfig } from './config.ts'
import { kubernetesSettings } from './kubernetes-settings.ts'
import { serverBoundSettings } from './server-bound-settings.ts'

export interface Setting {
  readonly check: Field
  /** How it is read where it is given as text. */
  readonly kind: 'text' | 'number' | 'switch' | 'list' | 'object'
  /** What stands for its value in a line of help. */
  readonly value?: string
  /** The variable of the environment that says it. */
  readonly env?: string
  readonly default?: unknown
  readonly says: string
  /** Never printed whole. */
  readonly secret?: true
}

export const settings = {
  host: {
    check: text(255),
    kind: 'text',
    value: 'ADDRESS',
    env: 'HOST',
    default: '127.0.0.1',
    says: 'where to listen; an address that others can reach needs keys',
  },
  port: {
    check: number({ from: 0, to: 65_535, whole: true }),
    kind: 'number',
    value: 'PORT',
    env: 'PORT',
    default: defaultPort,
    says: 'where to listen; 0: any port that is free',
  },
  keysOnly: {
    check: oneOf([true, false]),
    kind: 'switch',
    env: 'PAWL_KEYS_ONLY',
    default: false,
    says: 'ask for a key on this machine too, as behind a proxy',
  },
  ...serverBoundSettings,
  maxPayloadBytes: {
    check: number({ from: 1000, to: 100_000_000, whole: true }),
    kind: 'number',
    value: 'BYTES',
    env: 'PAWL_MAX_PAYLOAD_BYTES',
    default: 1_048_576,
    says: 'the largest payload or output of a task',
  },
  fileRoots: {
    check: folders,
    kind: 'list',
    value: 'FOLDER',
    env: 'PAWL_FILE_ROOTS',
    says: 'a folder whose files jobs may use, symbolic links included, may be repeated, or none; default: any, and none where keys are wanted',
  },
  s3Buckets: {
    check: names,
    kind: 'list',
    value: 'BUCKET',
    env: 'PAWL_S3_BUCKETS',
    says: 'a bucket that jobs may use, may be repeated, or * for all, or none; default: all, and none where file roots are set or keys are wanted',
  },
  dialects: {
    check: dialectsOrNone,
    kind: 'list',
    value: 'NAME',
    env: 'PAWL_DIALECTS',
    says: `serve the API of another system under /dialects/, may be repeated: ${dialectNames.join(', ')}, all or none; default: none`,
  },
  dialectAtRoot: {
    check: oneOf([true, false]),
    kind: 'switch',
    env: 'PAWL_DIALECT_AT_ROOT',
    default: false,
    says: 'serve the one --dialect at /, and Pawl’s own routes under /pawl',
  },
  jobnikLeaseSeconds: {
    check: settingFields.leaseSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_JOBNIK_LEASE_SECONDS',
    default: silentLeaseSeconds,
    says: 'how long a Jobnik worker may take for a task before another worker gets it',
  },
  falconeriLeaseSeconds: {
    check: settingFields.leaseSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_FALCONERI_LEASE_SECONDS',
    default: silentLeaseSeconds,
    says: 'how long a datum is left to a worker of Falconeri, which sends no heartbeats',
  },
  data: {
    check: text(2000),
    kind: 'text',
    value: 'FOLDER',
    env: 'PAWL_DATA',
    default: './pawl-data',
    says: 'the folder of the embedded store',
  },
  database: {
    check: database,
    kind: 'text',
    value: 'URL',
    env: 'DATABASE_URL',
    says: 'a PostgreSQL server, in place of the embedded store',
    secret: true,
  },
  schema: {
    check: schemaName,
    kind: 'text',
    value: 'NAME',
    env: 'PAWL_SCHEMA',
    default: 'pawl',
    says: 'the schema that holds the tables',
  },
  connections: {
    check: number({ from: 1, to: 100, whole: true }),
    kind: 'number',
    value: 'N',
    env: 'PAWL_CONNECTIONS',
    default: 4,
    says: 'connections to the PostgreSQL server',
  },
  pooler: {
    check: oneOf(poolerModes),
    kind: 'text',
    value: 'MODE',
    env: 'PAWL_POOLER',
    says: 'whether the database is a pooler such as PgBouncer: detect, transaction or none; default: detect',
  },
  listenDatabase: {
    check: database,
    kind: 'text',
    value: 'URL',
    env: 'PAWL_LISTEN_DATABASE',
    says: 'behind a pooler, the PostgreSQL server itself, to hear of new work at once; default: polling',
    secret: true,
  },
  statementSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_STATEMENT_SECONDS',
    says: 'how long a statement may take on the PostgreSQL server; default 10',
  },
  lockSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_LOCK_SECONDS',
    says: 'how long to wait for a row that another transaction holds; default 3',
  },
  idleSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_IDLE_SECONDS',
    says: 'how long a transaction may stay open without a statement; default 10',
  },
  connectionSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_CONNECTION_SECONDS',
    says: 'how long to wait for a connection, default 10, or for a turn on the embedded store, default 60',
  },
  server: {
    check: serverUrl,
    kind: 'text',
    value: 'URL',
    env: 'PAWL_SERVER',
    says: 'the server to speak to',
  },
  key: {
    check: text(500),
    kind: 'text',
    value: 'KEY',
    env: 'PAWL_KEY',
    says: 'the key to show to the server',
    secret: true,
  },
  queues: {
    check: queues,
    kind: 'list',
    value: 'NAME',
    env: 'PAWL_QUEUES',
    says: 'a queue to work on, may be repeated; default: the types of its tasks',
  },
  concurrency: {
    check: number({ from: 1, to: 10_000, whole: true }),
    kind: 'number',
    value: 'N',
    env: 'PAWL_CONCURRENCY',
    default: 10,
    says: 'handlers that run at once',
  },
  buffer: {
    check: number({ from: 0, to: 100_000, whole: true }),
    kind: 'number',
    value: 'N',
    env: 'PAWL_BUFFER',
    says: 'tasks claimed ahead of need; default: as many as run at once, and none with --commands',
  },
  drainSeconds: {
    check: number({ from: 0, to: 86_400 }),
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_DRAIN_SECONDS',
    default: 30,
    says: 'how long a stop waits for running handlers',
  },
  ...kubernetesSettings,
  log: {
    check: oneOf(['pretty', 'json']),
    kind: 'text',
    value: 'FORMAT',
    env: 'PAWL_LOG',
    says: 'how the process logs: pretty or json; default: pretty on a terminal',
  },
  logLevel: {
    check: oneOf(logLevels),
    kind: 'text',
    value: 'LEVEL',
    env: 'PAWL_LOG_LEVEL',
    default: 'warn',
    says: 'the least that it logs: debug, info, warn or error',
  },
  taskTypes: {
    check: taskTypes,
    kind: 'object',
    says: 'how tasks are leased, retried and kept, by their type',
  },
  pipelines: {
    check: pipelines,
    kind: 'object',
    says: 'specs, or files of them, that jobs may be submitted by the names of',
  },
} as const satisfies Record<keyof PawlConfig, Setting>

export type SettingName = keyof typeof settings

/** How a PostgreSQL server is reached and how long it may take, for every command that opens a store. */
export const storeSettings = [
  'pooler',
  'listenDatabase',
  'statementSeconds',
  'lockSeconds',
  'idleSeconds',
  'connectionSeconds',
] as const satisfies readonly SettingName[]

/** Names that a flag does not spell as the file does: one queue or dialect is given at a time. */
const flagNames: Partial<Record<SettingName, string>> = { queues: 'queue', dialects: 'dialect', dialectAtRoot: 'root' }

export function flagOf(setting: SettingName): string {
  return flagNames[setting] ?? setting.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}
