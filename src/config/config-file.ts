import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Problem } from '../kernel/problem.ts'
import { closestWord } from '../kernel/suggest.ts'
import { faultOf, isObject } from '../schema/check.ts'
import { loadModule } from './load-module.ts'
import { type Setting, type SettingName, settings } from './settings.ts'

export interface ConfigFile {
  /** The name shown in messages. */
  readonly name: string
  readonly values: Readonly<Partial<Record<SettingName, unknown>>>
}

const names = ['ts', 'mts', 'js', 'mjs', 'json'].map(ending => `pawl.config.${ending}`)

/**
 * Reads the named file or, without a name, the one in the folder. Returns undefined if there is none. `runsNoCode`: a file
 * that is a program counts as none.
 */
export async function readConfigFile(
  folder: string,
  named?: string,
  { runsNoCode = false } = {},
): Promise<ConfigFile | undefined> {
  const path = named === undefined ? find(folder) : resolve(folder, named)
  if (path === undefined || (runsNoCode && !path.endsWith('.json'))) return undefined
  if (!existsSync(path)) throw new Problem('FILE_INVALID', { file: path, why: 'file not found' })
  const name = named ?? basename(path)
  const values = path.endsWith('.json') ? readJson(path) : await importConfig(path)
  if (!isObject(values)) throw new Problem('FILE_INVALID', { file: name, why: 'it must contain an object of settings' })
  for (const [option, value] of Object.entries(values)) checkSetting(name, option, value)
  return { name, values: withAbsolutePaths(dirname(path), values) }
}

/** Paths in the file are relative to its folder. */
function withAbsolutePaths(folder: string, values: ConfigFile['values']): ConfigFile['values'] {
  const absolute = (value: unknown) => (typeof value === 'string' ? resolve(folder, value) : value)
  const { data, pipelines, tasks } = values
  const specs = Object.entries(pipelines ?? {}).map(([name, spec]) => [name, absolute(spec)])
  return {
    ...values,
    ...(data !== undefined && { data: absolute(data) }),
    ...(Array.isArray(tasks) && { tasks: tasks.map(absolute) }),
    ...(pipelines !== undefined && { pipelines: Object.fromEntries(specs) }),
  }
}

function find(folder: string): string | undefined {
  const found = names.filter(name => existsSync(join(folder, name)))
  if (found.length > 1) {
    throw new Problem('FILE_INVALID', {
      file: found[0],
      why: `${found.slice(1).join(', ')} exists too; keep only one of them`,
    })
  }
  return found[0] === undefined ? undefined : join(folder, found[0])
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new Problem('FILE_INVALID', { file: path, why: (error as Error).message }, error)
  }
}

async function importConfig(path: string): Promise<unknown> {
  const module = await loadModule(path)
  const values = module.default ?? module.config
  if (values === undefined) {
    throw new Problem('FILE_INVALID', {
      file: path,
      why: 'it must export the settings, for example `export default defineConfig({ … })`',
    })
  }
  return values
}

/**
 * Throws if a setting is unknown or its value is invalid. `from`: the file, environment variable or flag, for the
 * message.
 */
export function checkSetting(from: string, option: string, value: unknown): void {
  const setting: Setting | undefined = Object.hasOwn(settings, option) ? settings[option as SettingName] : undefined
  if (setting === undefined) {
    const near = closestWord(option, Object.keys(settings))
    throw new Problem('OPTION_UNKNOWN', { at: from, option, ...(near && { didYouMean: near }) })
  }
  const fault = value === undefined ? undefined : faultOf(setting.check, value)
  if (fault !== undefined) throw new Problem('OPTION_INVALID', { at: from, option, must: fault })
}
