/** The table of settings, from which flags, environment variables, the config file and `pawl config` are derived. */

import { poolerModes } from '../kernel/pooler-mode.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { logLevels } from '../protocol/tasks/logs.ts'
import { type Field, flag, number, oneOf, text } from '../schema/check.ts'
import { boundSeconds, schemaName, serverUrl } from '../schema/fields.ts'
import { serverDefaults, serverFields } from '../server/options.ts'
import type { PawlConfig } from './config.ts'
import { kubernetesSettings } from './kubernetes-settings.ts'
import { database, dialectsOrNone, folders, modules, names, pipelines, queues, taskTypes } from './setting-checks.ts'

export interface Setting {
  readonly check: Field
  /** The placeholder for its value in the help. Default for numbers: SECONDS, BYTES or N, after the name. */
  readonly value?: string
  readonly default?: unknown
  readonly summary: string
  /** Masked when printed. */
  readonly secret?: true
}

/** The check and the default that an option of the server and its setting share. */
const ofServer = <Name extends keyof typeof serverFields & keyof typeof serverDefaults>(name: Name) => ({
  check: serverFields[name],
  default: serverDefaults[name],
})

export const settings = {
  host: {
    ...ofServer('host'),
    value: 'ADDRESS',
    summary: 'the address to listen on; an address that other machines can reach requires API keys',
  },
  port: {
    ...ofServer('port'),
    value: 'PORT',
    summary: 'the port to listen on; 0: any free port',
  },
  keysOnly: {
    check: flag,
    default: false,
    summary: 'require an API key on a loopback address too, for example behind a proxy',
  },
  maxBodyBytes: {
    ...ofServer('maxBodyBytes'),
    summary: 'maximum size of a JSON request body',
  },
  maxYamlBytes: {
    ...ofServer('maxYamlBytes'),
    summary:
      'maximum size of a YAML request body; cannot be raised, because parsing YAML takes far more work than JSON',
  },
  requestSeconds: {
    ...ofServer('requestSeconds'),
    summary: 'how long a request may take to arrive, including its body',
  },
  keepAliveSeconds: {
    ...ofServer('keepAliveSeconds'),
    summary:
      'how long a connection may stay idle between two requests; set it higher than the idle timeout of a load balancer in front',
  },
  maxStreams: {
    ...ofServer('maxStreams'),
    summary: 'maximum number of open event streams',
  },
  maxStreamsPerKey: {
    ...ofServer('maxStreamsPerKey'),
    summary: 'maximum number of open event streams per API key',
  },
  blockedSeconds: {
    ...ofServer('blockedSeconds'),
    summary: 'log and count an event loop that is blocked for this long; 0: never',
  },
  maxPayloadBytes: {
    check: number({ from: 1000, to: 100_000_000, whole: true }),
    default: 1_048_576,
    summary: 'the largest payload or output of a task',
  },
  fileRoots: {
    check: folders,
    value: 'FOLDER',
    summary:
      'a folder whose files jobs may use, symbolic links resolved; may be repeated, or none; default: any folder, or none if API keys are required',
  },
  s3Buckets: {
    check: names,
    value: 'BUCKET',
    summary:
      'a bucket that jobs may use; may be repeated, or * for all, or none; default: all, or none if file roots are set or API keys are required',
  },
  dialects: {
    check: dialectsOrNone,
    value: 'NAME',
    summary: `serve the API of another system under /dialects/, may be repeated: ${dialectNames.join(', ')}, all or none; default: none`,
  },
  dialectAtRoot: {
    check: flag,
    default: false,
    summary: 'serve the dialect at / and Pawl’s own API under /pawl; requires exactly one --dialect',
  },
  jobnikLeaseSeconds: {
    ...ofServer('jobnikLeaseSeconds'),
    summary: 'how long a Jobnik worker may keep a task before another worker gets it',
  },
  falconeriLeaseSeconds: {
    ...ofServer('falconeriLeaseSeconds'),
    summary: 'how long a Falconeri worker, which sends no heartbeats, may keep a datum',
  },
  data: {
    check: text(2000),
    value: 'FOLDER',
    default: './pawl-data',
    summary: 'the folder of the embedded store',
  },
  database: {
    check: database,
    value: 'URL',
    summary: 'the URL of a PostgreSQL database, instead of the embedded store',
    secret: true,
  },
  schema: {
    check: schemaName,
    value: 'NAME',
    default: 'pawl',
    summary: 'the database schema that contains the tables',
  },
  connections: {
    check: number({ from: 1, to: 100, whole: true }),
    default: 4,
    summary: 'maximum number of connections to PostgreSQL',
  },
  pooler: {
    check: oneOf(poolerModes),
    value: 'MODE',
    summary: 'whether the database is a pooler such as PgBouncer: detect, transaction or none; default: detect',
  },
  listenDatabase: {
    check: database,
    value: 'URL',
    summary:
      'behind a pooler: the URL of the PostgreSQL server itself, used for notifications of new work; default: polling',
    secret: true,
  },
  statementSeconds: {
    check: boundSeconds,
    summary: 'how long a statement may take on PostgreSQL; default: 10',
  },
  lockSeconds: {
    check: boundSeconds,
    summary: 'how long to wait for a row that another transaction has locked; default: 3',
  },
  idleSeconds: {
    check: boundSeconds,
    summary: 'how long a transaction may stay idle; default: 10',
  },
  connectionSeconds: {
    check: boundSeconds,
    summary: 'how long to wait for a connection (default: 10) or for a turn on the embedded store (default: 60)',
  },
  server: {
    check: serverUrl,
    value: 'URL',
    summary: 'the URL of the server',
  },
  key: {
    check: text(500),
    value: 'KEY',
    summary: 'the API key',
    secret: true,
  },
  tasks: {
    check: modules,
    value: 'FILE',
    summary:
      'a module with tasks, or a folder with such modules, may be repeated; default: tasks/, src/tasks/, tasks.ts, src/tasks.ts or handlers.ts',
  },
  queues: {
    check: queues,
    value: 'NAME',
    summary: 'a queue to claim from, may be repeated; default: the types of the handlers',
  },
  concurrency: {
    check: number({ from: 1, to: 10_000, whole: true }),
    default: 10,
    summary: 'maximum number of handlers that run at the same time',
  },
  buffer: {
    check: number({ from: 0, to: 100_000, whole: true }),
    summary: 'tasks to claim in advance; default: the value of --concurrency, or 0 with --commands',
  },
  drainSeconds: {
    check: number({ from: 0, to: 86_400 }),
    default: 30,
    summary: 'how long to wait for running handlers when stopping',
  },
  ...kubernetesSettings,
  log: {
    check: oneOf(['pretty', 'json']),
    value: 'FORMAT',
    summary: 'the log format: pretty or json; default: pretty on a terminal, otherwise json',
  },
  logLevel: {
    check: oneOf(logLevels),
    value: 'LEVEL',
    default: 'warn',
    summary: 'the lowest level to log: debug, info, warn or error',
  },
  taskTypes: {
    check: taskTypes,
    summary: 'how tasks of each type are leased, retried and kept',
  },
  pipelines: {
    check: pipelines,
    summary: 'job specs, or files with them, that can be submitted by name',
  },
} as const satisfies Record<keyof PawlConfig, Setting>

export type SettingName = keyof typeof settings

/** Limits on requests and connections, so that clients cannot overload the server. */
export const serverBounds = [
  'maxBodyBytes',
  'maxYamlBytes',
  'requestSeconds',
  'keepAliveSeconds',
  'maxStreams',
  'maxStreamsPerKey',
  'blockedSeconds',
] as const satisfies readonly SettingName[]

/** Settings of PostgreSQL connections, for every command that opens a store. */
export const storeSettings = [
  'pooler',
  'listenDatabase',
  'statementSeconds',
  'lockSeconds',
  'idleSeconds',
  'connectionSeconds',
] as const satisfies readonly SettingName[]

/** Flags that are not named after their setting. A flag for a list takes one item at a time, so its name is singular. */
const flagNames: Partial<Record<SettingName, string>> = { queues: 'queue', dialects: 'dialect', dialectAtRoot: 'root' }

export function flagOf(setting: SettingName): string {
  return flagNames[setting] ?? setting.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
}

/** Environment variables that other programs use too. */
const envNames: Partial<Record<SettingName, string>> = { host: 'HOST', port: 'PORT', database: 'DATABASE_URL' }

/** The environment variable of a setting; undefined: objects are only in the config file. */
export function envOf(setting: SettingName): string | undefined {
  if (kindOf(setting) === 'object') return undefined
  return envNames[setting] ?? `PAWL_${setting.replace(/[A-Z]/g, letter => `_${letter}`).toUpperCase()}`
}

export type SettingKind = 'text' | 'number' | 'switch' | 'list' | 'object'

const kinds: Readonly<Record<string, SettingKind>> = {
  number: 'number',
  integer: 'number',
  boolean: 'switch',
  array: 'list',
  object: 'object',
}

/** How text from a flag or variable is parsed. */
export function kindOf(setting: SettingName): SettingKind {
  const { type } = settings[setting].check as { readonly type?: string }
  return kinds[type ?? ''] ?? 'text'
}

/** The placeholder for its value in the help. */
export function placeholderOf(setting: SettingName): string | undefined {
  const { value }: Setting = settings[setting]
  if (value !== undefined || kindOf(setting) !== 'number') return value
  return /(Seconds|Bytes)$/.exec(setting)?.[0].toUpperCase() ?? 'N'
}

/** The settings that are flags: all but objects. */
export const flagSettings = (Object.keys(settings) as SettingName[]).filter(name => kindOf(name) !== 'object')
