import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isObject } from '../kernel/check.ts'
import { Problem } from '../kernel/problem.ts'
import { nearest } from '../kernel/suggest.ts'
import { loadModule } from './load-module.ts'
import { type Setting, type SettingName, settings } from './settings.ts'

export interface ConfigFile {
  /** As people call it. */
  readonly name: string
  readonly says: Readonly<Partial<Record<SettingName, unknown>>>
}

const names = ['ts', 'mts', 'js', 'mjs', 'json'].map(ending => `pawl.config.${ending}`)

/** The file that is named, else the one in the folder; undefined: there is none. */
export async function readConfigFile(folder: string, named?: string): Promise<ConfigFile | undefined> {
  const path = named === undefined ? find(folder) : resolve(folder, named)
  if (path === undefined) return undefined
  if (!existsSync(path)) throw new Problem('FILE_INVALID', { file: path, why: 'there is no such file' })
  const name = named ?? basename(path)
  const said = path.endsWith('.json') ? readJson(path) : await exported(path)
  if (!isObject(said)) throw new Problem('FILE_INVALID', { file: name, why: 'it must say an object of settings' })
  for (const [option, value] of Object.entries(said)) checkSetting(name, option, value)
  return { name, says: seenFrom(dirname(path), said) }
}

/** Paths in the file are meant from where it lies. */
function seenFrom(folder: string, said: ConfigFile['says']): ConfigFile['says'] {
  const whole = (value: unknown) => (typeof value === 'string' ? resolve(folder, value) : value)
  const { data, pipelines } = said
  const specs = Object.entries(pipelines ?? {}).map(([name, spec]) => [name, whole(spec)])
  return {
    ...said,
    ...(data !== undefined && { data: whole(data) }),
    ...(pipelines !== undefined && { pipelines: Object.fromEntries(specs) }),
  }
}

function find(folder: string): string | undefined {
  const found = names.filter(name => existsSync(join(folder, name)))
  if (found.length > 1) {
    throw new Problem('FILE_INVALID', { file: found[0], why: `${found.slice(1).join(', ')} is there too: keep one` })
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

async function exported(path: string): Promise<unknown> {
  const module = await loadModule(path)
  const said = module.default ?? module.config
  if (said === undefined) {
    throw new Problem('FILE_INVALID', { file: path, why: 'it exports no config: `export default defineConfig({ … })`' })
  }
  return said
}

/** `from` says where it was said: a file, a variable, a flag. */
export function checkSetting(from: string, option: string, value: unknown): void {
  const setting: Setting | undefined = Object.hasOwn(settings, option) ? settings[option as SettingName] : undefined
  if (setting === undefined) {
    const meant = nearest(option, Object.keys(settings))
    throw new Problem('OPTION_UNKNOWN', { at: from, option, ...(meant && { didYouMean: meant }) })
  }
  const fault = value === undefined ? undefined : setting.check(value)
  if (fault !== undefined) throw new Problem('OPTION_INVALID', { at: from, option, must: fault })
}
