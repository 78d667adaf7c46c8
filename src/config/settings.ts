/** The settings, as a table: the flags, the environment and the file are all read by it, and `pawl config` prints it. */

import { poolerModes } from '../kernel/pooler-mode.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { logLevels } from '../protocol/tasks/logs.ts'
import { type Field, number, oneOf, text } from '../schema/check.ts'
import { boundSeconds, schemaName, serverUrl, settingFields } from '../schema/fields.ts'
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
  readonly summary: string
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
    summary: 'the address to listen on; an address that other machines can reach requires API keys',
  },
  port: {
    check: number({ from: 0, to: 65_535, whole: true }),
    kind: 'number',
    value: 'PORT',
    env: 'PORT',
    default: defaultPort,
    summary: 'the port to listen on; 0: any free port',
  },
  keysOnly: {
    check: oneOf([true, false]),
    kind: 'switch',
    env: 'PAWL_KEYS_ONLY',
    default: false,
    summary: 'require an API key on a loopback address too, for example behind a proxy',
  },
  ...serverBoundSettings,
  maxPayloadBytes: {
    check: number({ from: 1000, to: 100_000_000, whole: true }),
    kind: 'number',
    value: 'BYTES',
    env: 'PAWL_MAX_PAYLOAD_BYTES',
    default: 1_048_576,
    summary: 'the largest payload or output of a task',
  },
  fileRoots: {
    check: folders,
    kind: 'list',
    value: 'FOLDER',
    env: 'PAWL_FILE_ROOTS',
    summary:
      'a folder whose files jobs may use, symbolic links resolved; may be repeated, or none; default: any folder, or none if API keys are required',
  },
  s3Buckets: {
    check: names,
    kind: 'list',
    value: 'BUCKET',
    env: 'PAWL_S3_BUCKETS',
    summary:
      'a bucket that jobs may use; may be repeated, or * for all, or none; default: all, or none if file roots are set or API keys are required',
  },
  dialects: {
    check: dialectsOrNone,
    kind: 'list',
    value: 'NAME',
    env: 'PAWL_DIALECTS',
    summary: `serve the API of another system under /dialects/, may be repeated: ${dialectNames.join(', ')}, all or none; default: none`,
  },
  dialectAtRoot: {
    check: oneOf([true, false]),
    kind: 'switch',
    env: 'PAWL_DIALECT_AT_ROOT',
    default: false,
    summary: 'serve the dialect at / and Pawl’s own API under /pawl; requires exactly one --dialect',
  },
  jobnikLeaseSeconds: {
    check: settingFields.leaseSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_JOBNIK_LEASE_SECONDS',
    default: silentLeaseSeconds,
    summary: 'how long a Jobnik worker may keep a task before another worker gets it',
  },
  falconeriLeaseSeconds: {
    check: settingFields.leaseSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_FALCONERI_LEASE_SECONDS',
    default: silentLeaseSeconds,
    summary: 'how long a Falconeri worker, which sends no heartbeats, may keep a datum',
  },
  data: {
    check: text(2000),
    kind: 'text',
    value: 'FOLDER',
    env: 'PAWL_DATA',
    default: './pawl-data',
    summary: 'the folder of the embedded store',
  },
  database: {
    check: database,
    kind: 'text',
    value: 'URL',
    env: 'DATABASE_URL',
    summary: 'the URL of a PostgreSQL database, instead of the embedded store',
    secret: true,
  },
  schema: {
    check: schemaName,
    kind: 'text',
    value: 'NAME',
    env: 'PAWL_SCHEMA',
    default: 'pawl',
    summary: 'the database schema that contains the tables',
  },
  connections: {
    check: number({ from: 1, to: 100, whole: true }),
    kind: 'number',
    value: 'N',
    env: 'PAWL_CONNECTIONS',
    default: 4,
    summary: 'maximum number of connections to PostgreSQL',
  },
  pooler: {
    check: oneOf(poolerModes),
    kind: 'text',
    value: 'MODE',
    env: 'PAWL_POOLER',
    summary: 'whether the database is a pooler such as PgBouncer: detect, transaction or none; default: detect',
  },
  listenDatabase: {
    check: database,
    kind: 'text',
    value: 'URL',
    env: 'PAWL_LISTEN_DATABASE',
    summary:
      'behind a pooler: the URL of the PostgreSQL server itself, used for notifications of new work; default: polling',
    secret: true,
  },
  statementSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_STATEMENT_SECONDS',
    summary: 'how long a statement may take on PostgreSQL; default: 10',
  },
  lockSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_LOCK_SECONDS',
    summary: 'how long to wait for a row that another transaction has locked; default: 3',
  },
  idleSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_IDLE_SECONDS',
    summary: 'how long a transaction may stay idle; default: 10',
  },
  connectionSeconds: {
    check: boundSeconds,
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_CONNECTION_SECONDS',
    summary: 'how long to wait for a connection (default: 10) or for a turn on the embedded store (default: 60)',
  },
  server: {
    check: serverUrl,
    kind: 'text',
    value: 'URL',
    env: 'PAWL_SERVER',
    summary: 'the URL of the server',
  },
  key: {
    check: text(500),
    kind: 'text',
    value: 'KEY',
    env: 'PAWL_KEY',
    summary: 'the API key',
    secret: true,
  },
  queues: {
    check: queues,
    kind: 'list',
    value: 'NAME',
    env: 'PAWL_QUEUES',
    summary: 'a queue to claim from, may be repeated; default: the types of the handlers',
  },
  concurrency: {
    check: number({ from: 1, to: 10_000, whole: true }),
    kind: 'number',
    value: 'N',
    env: 'PAWL_CONCURRENCY',
    default: 10,
    summary: 'maximum number of handlers that run at the same time',
  },
  buffer: {
    check: number({ from: 0, to: 100_000, whole: true }),
    kind: 'number',
    value: 'N',
    env: 'PAWL_BUFFER',
    summary: 'tasks to claim in advance; default: the value of --concurrency, or 0 with --commands',
  },
  drainSeconds: {
    check: number({ from: 0, to: 86_400 }),
    kind: 'number',
    value: 'SECONDS',
    env: 'PAWL_DRAIN_SECONDS',
    default: 30,
    summary: 'how long to wait for running handlers when stopping',
  },
  ...kubernetesSettings,
  log: {
    check: oneOf(['pretty', 'json']),
    kind: 'text',
    value: 'FORMAT',
    env: 'PAWL_LOG',
    summary: 'the log format: pretty or json; default: pretty on a terminal, otherwise json',
  },
  logLevel: {
    check: oneOf(logLevels),
    kind: 'text',
    value: 'LEVEL',
    env: 'PAWL_LOG_LEVEL',
    default: 'warn',
    summary: 'the lowest level to log: debug, info, warn or error',
  },
  taskTypes: {
    check: taskTypes,
    kind: 'object',
    summary: 'how tasks of each type are leased, retried and kept',
  },
  pipelines: {
    check: pipelines,
    kind: 'object',
    summary: 'job specs, or files with them, that can be submitted by name',
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
