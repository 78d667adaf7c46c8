/** Resolves the settings: flags override environment variables, which override the file, which overrides defaults. */
import { resolve } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import { withoutUndefined } from '../kernel/without-undefined.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { ownRoot, type ServerOptions } from '../server/options.ts'
import type { PawlConfig } from './config.ts'
import { type ConfigFile, checkSetting } from './config-file.ts'
import {
  envOf,
  flagOf,
  kindOf,
  type Setting,
  type SettingKind,
  type SettingName,
  serverBounds,
  settings,
} from './settings.ts'

export interface Source {
  readonly from: 'flag' | 'env' | 'file' | 'default'
  /** The name of the flag, variable or file; empty for a default. */
  readonly name: string
}

type SettingWithDefault = {
  [Name in SettingName]: (typeof settings)[Name] extends { readonly default: unknown } ? Name : never
}[SettingName]

export interface ResolvedSettings {
  readonly values: PawlConfig & Required<Pick<PawlConfig, SettingWithDefault>>
  readonly sources: Readonly<Record<SettingName, Source>>
}

export interface SettingSources {
  readonly flags: Readonly<Partial<Record<SettingName, unknown>>>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly file: ConfigFile | undefined
}

export function resolveSettings(input: SettingSources): ResolvedSettings {
  const rows = (Object.keys(settings) as SettingName[]).map(name => [name, find(name, input)] as const)
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
  const variable = envOf(name)
  const text = variable && env[variable]
  // In shells and container manifests, an empty variable means that it is not set.
  if (variable !== undefined && text) {
    const value = parseSettingText(kindOf(name), text)
    checkSetting(variable, name, value)
    return { value, source: { from: 'env', name: variable } }
  }
  if (file?.values[name] !== undefined) return { value: file.values[name], source: { from: 'file', name: file.name } }
  return { value: setting.default, source: { from: 'default', name: '' } }
}

/** Converts text to the type of the setting. Invalid text is returned unchanged, and the setting's check reports it. */
export function parseSettingText(kind: SettingKind, text: string): unknown {
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
  const { statementSeconds, lockSeconds, idleSeconds, connectionSeconds } = values
  const bounds = withoutUndefined({ statementSeconds, lockSeconds, idleSeconds, connectionSeconds })
  if (sources.database.from === 'flag' && sources.data.from === 'flag') {
    throw new Problem('COMMAND_INVALID', { why: '--database cannot be combined with --data.' })
  }
  const isPostgres = database !== undefined && precedence[sources.database.from] >= precedence[sources.data.from]
  if (!isPostgres) return { folder: resolve(data), schema, bounds }
  return { database, schema, connections, bounds, ...withoutUndefined({ pooler, listenDatabase }) }
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
