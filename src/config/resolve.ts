/** Puts the settings together: a flag goes before the environment, that before the file, that before the default. */
import { resolve } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { ownRoot, type ServerOptions } from '../server/options.ts'
import type { PawlConfig } from './config.ts'
import { type ConfigFile, checkSetting } from './config-file.ts'
import { serverBounds } from './server-bound-settings.ts'
import { flagOf, type Setting, type SettingName, settings } from './settings.ts'

export interface Source {
  readonly from: 'flag' | 'env' | 'file' | 'default'
  /** The flag, the variable or the file. */
  readonly name: string
}

export interface Settled {
  readonly values: PawlConfig & typeof defaults
  readonly sources: Readonly<Record<SettingName, Source>>
}

export interface Given {
  readonly flags: Readonly<Partial<Record<SettingName, unknown>>>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly file: ConfigFile | undefined
}

const defaults = {
  host: settings.host.default as string,
  port: settings.port.default as number,
  keysOnly: settings.keysOnly.default as boolean,
  dialectAtRoot: settings.dialectAtRoot.default as boolean,
  jobnikLeaseSeconds: settings.jobnikLeaseSeconds.default as number,
  falconeriLeaseSeconds: settings.falconeriLeaseSeconds.default as number,
  maxPayloadBytes: settings.maxPayloadBytes.default as number,
  data: settings.data.default as string,
  schema: settings.schema.default as string,
  connections: settings.connections.default as number,
  concurrency: settings.concurrency.default as number,
  drainSeconds: settings.drainSeconds.default as number,
}

export function settle(given: Given): Settled {
  const rows = (Object.keys(settings) as SettingName[]).map(name => [name, find(name, given)] as const)
  const values = Object.fromEntries(rows.map(([name, { value }]) => [name, value]))
  const sources = Object.fromEntries(rows.map(([name, { source }]) => [name, source])) as Settled['sources']
  return { values: values as unknown as Settled['values'], sources }
}

function find(name: SettingName, { flags, env, file }: Given): { value: unknown; source: Source } {
  const setting: Setting = settings[name]
  if (flags[name] !== undefined) {
    checkSetting(`--${flagOf(name)}`, name, flags[name])
    return { value: flags[name], source: { from: 'flag', name: `--${flagOf(name)}` } }
  }
  const said = setting.env === undefined ? undefined : env[setting.env]
  // An empty variable is how shells say that there is none.
  if (setting.env !== undefined && said !== undefined && said !== '') {
    const value = meant(setting, said)
    checkSetting(setting.env, name, value)
    return { value, source: { from: 'env', name: setting.env } }
  }
  if (file?.values[name] !== undefined) return { value: file.values[name], source: { from: 'file', name: file.name } }
  return { value: setting.default, source: { from: 'default', name: '' } }
}

/** What a text is meant to be; what makes no sense stays a text, and its check says so. */
export function meant({ kind }: Pick<Setting, 'kind'>, said: string): unknown {
  if (kind === 'number') return said.trim() === '' || Number.isNaN(Number(said)) ? said : Number(said)
  if (kind === 'list') return said.split(',').map(item => item.trim())
  if (kind === 'switch')
    return ({ true: true, 1: true, false: false, 0: false } as Record<string, boolean>)[said] ?? said
  return said
}

const strength = { flag: 3, env: 2, file: 1, default: 0 } as const

/** The store: of a folder and a PostgreSQL server, the one that was said closer to the command. */
export function storeOf({ values, sources }: Settled) {
  const { database, data, schema, connections, pooler, listenDatabase } = values
  const bounds = boundsOf(values)
  if (sources.database.from === 'flag' && sources.data.from === 'flag') {
    throw new Problem('COMMAND_INVALID', { why: '--database and --data name two stores: give one' })
  }
  const isServer = database !== undefined && strength[sources.database.from] >= strength[sources.data.from]
  if (!isServer) return { folder: resolve(data), schema, bounds }
  return {
    database,
    schema,
    connections,
    bounds,
    ...(pooler !== undefined && { pooler }),
    ...(listenDatabase !== undefined && { listenDatabase }),
  }
}

function boundsOf({ statementSeconds, lockSeconds, idleSeconds, connectionSeconds }: PawlConfig) {
  return {
    ...(statementSeconds !== undefined && { statementSeconds }),
    ...(lockSeconds !== undefined && { lockSeconds }),
    ...(idleSeconds !== undefined && { idleSeconds }),
    ...(connectionSeconds !== undefined && { connectionSeconds }),
  }
}

/** The server that commands speak to: the one that is named, else the one that `pawl up` would start with the same settings. */
export function serverOf({ values }: Settled): string {
  const { server, host, port, dialectAtRoot } = values
  if (server !== undefined) return server
  const everywhere = host === '0.0.0.0' || host === '::'
  const name = everywhere ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}${dialectAtRoot ? ownRoot : ''}`
}

/** The bounds of the server. */
export function serverBoundsOf({ values }: Settled): Pick<ServerOptions, (typeof serverBounds)[number]> {
  return Object.fromEntries(serverBounds.map(name => [name, values[name]]))
}

/** What the server speaks besides its own words. */
export function dialectsOf({ values, sources }: Settled): Omit<ServerOptions, 'host' | 'port' | 'keysOnly'> {
  const { dialects, dialectAtRoot, jobnikLeaseSeconds, falconeriLeaseSeconds } = values
  const leases = { jobnikLeaseSeconds, falconeriLeaseSeconds }
  const named = (dialects ?? []).flatMap(name => (name === 'all' ? dialectNames : name === 'none' ? [] : [name]))
  if (!dialectAtRoot) return { ...leases, dialects: named }
  if (named.length === 1) return { ...leases, dialects: named, rootDialect: named[0]! }
  const { name } = sources.dialectAtRoot
  throw new Problem('COMMAND_INVALID', { why: `${name} goes with one dialect: name it with --dialect` })
}
