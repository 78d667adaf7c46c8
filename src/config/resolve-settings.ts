/** Resolves the settings: flags override environment variables, which override the file, which overrides defaults. */
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
  /** The name of the flag, variable or file; empty for a default. */
  readonly name: string
}

export interface ResolvedSettings {
  readonly values: PawlConfig & typeof defaults
  readonly sources: Readonly<Record<SettingName, Source>>
}

export interface SettingSources {
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

export function resolveSettings(given: SettingSources): ResolvedSettings {
  const rows = (Object.keys(settings) as SettingName[]).map(name => [name, find(name, given)] as const)
  const values = Object.fromEntries(rows.map(([name, { value }]) => [name, value]))
  const sources = Object.fromEntries(rows.map(([name, { source }]) => [name, source])) as ResolvedSettings['sources']
  return { values: values as unknown as ResolvedSettings['values'], sources }
}

function find(name: SettingName, { flags, env, file }: SettingSources): { value: unknown; source: Source } {
  const setting: Setting = settings[name]
  if (flags[name] !== undefined) {
    checkSetting(`--${flagOf(name)}`, name, flags[name])
    return { value: flags[name], source: { from: 'flag', name: `--${flagOf(name)}` } }
  }
  const text = setting.env === undefined ? undefined : env[setting.env]
  // In shells and container manifests, an empty variable means that it is not set.
  if (setting.env !== undefined && text !== undefined && text !== '') {
    const value = parseSettingText(setting, text)
    checkSetting(setting.env, name, value)
    return { value, source: { from: 'env', name: setting.env } }
  }
  if (file?.values[name] !== undefined) return { value: file.values[name], source: { from: 'file', name: file.name } }
  return { value: setting.default, source: { from: 'default', name: '' } }
}

/** Converts text to the type of the setting. Invalid text is returned unchanged, and the setting's check reports it. */
export function parseSettingText({ kind }: Pick<Setting, 'kind'>, text: string): unknown {
  if (kind === 'number') return text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text)
  if (kind === 'list') return text.split(',').map(item => item.trim())
  if (kind === 'switch')
    return ({ true: true, 1: true, false: false, 0: false } as Record<string, boolean>)[text] ?? text
  return text
}

const precedence = { flag: 3, env: 2, file: 1, default: 0 } as const

/** The store: the folder or the PostgreSQL database, whichever has the source of higher precedence. */
export function storeOf({ values, sources }: ResolvedSettings) {
  const { database, data, schema, connections, pooler, listenDatabase } = values
  const bounds = boundsOf(values)
  if (sources.database.from === 'flag' && sources.data.from === 'flag') {
    throw new Problem('COMMAND_INVALID', { why: '--database cannot be combined with --data.' })
  }
  const isPostgres = database !== undefined && precedence[sources.database.from] >= precedence[sources.data.from]
  if (!isPostgres) return { folder: resolve(data), schema, bounds }
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

/** The URL of the server that commands call. Default: the one that `pawl up` would start with the same settings. */
export function serverOf({ values }: ResolvedSettings): string {
  const { server, host, port, dialectAtRoot } = values
  if (server !== undefined) return server
  const isAnyAddress = host === '0.0.0.0' || host === '::'
  const name = isAnyAddress ? '127.0.0.1' : host
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}${dialectAtRoot ? ownRoot : ''}`
}

export function serverBoundsOf({ values }: ResolvedSettings): Pick<ServerOptions, (typeof serverBounds)[number]> {
  return Object.fromEntries(serverBounds.map(name => [name, values[name]]))
}

/** The dialect options of the server. */
export function dialectsOf({ values, sources }: ResolvedSettings): Omit<ServerOptions, 'host' | 'port' | 'keysOnly'> {
  const { dialects, dialectAtRoot, jobnikLeaseSeconds, falconeriLeaseSeconds } = values
  const leases = { jobnikLeaseSeconds, falconeriLeaseSeconds }
  const named = (dialects ?? []).flatMap(name => (name === 'all' ? dialectNames : name === 'none' ? [] : [name]))
  if (!dialectAtRoot) return { ...leases, dialects: named }
  if (named.length === 1) return { ...leases, dialects: named, rootDialect: named[0]! }
  const { name } = sources.dialectAtRoot
  throw new Problem('COMMAND_INVALID', { why: `${name} requires exactly one dialect, given with --dialect.` })
}
