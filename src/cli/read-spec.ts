/** Reads a job from a file or from the standard input: a spec of ours, or a pipeline, which becomes one. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { loadModule } from '../config/load-module.ts'
import { uriOf } from '../files/uri.ts'
import { Problem } from '../kernel/problem.ts'
import { isObject } from '../schema/check.ts'
import { withAbsoluteUris } from '../spec/absolute-uris.ts'
import { specInvalid } from '../spec/faults.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { isPipeline, jobOfPipeline, withLocalRunner } from '../spec/pipeline.ts'
import { readYaml } from '../spec/read-yaml.ts'

export const specHelp = `The spec is YAML, JSON, or a module (.ts, .js, .mjs) that exports one; "-" reads it from the standard input. A
pipeline spec of Falconeri or Pachyderm is taken as it is. file://./ in it means the folder of its own file, or where
the command is typed if it comes from the standard input.`

export const localFlag = {
  local: {
    kind: 'switch',
    summary: 'run commands in workers started with --commands, even if the spec asks for Kubernetes',
  },
} as const

export interface ReadJob {
  readonly spec: JobSpec
  /** It was written as a pipeline. */
  readonly fromPipeline: boolean
}

/** Its URIs are absolute; what else is wrong with it, whoever takes it says. */
export async function readJob(path: string, { local = false }: { readonly local?: boolean } = {}): Promise<ReadJob> {
  const written = await writtenIn(path)
  const fromPipeline = isPipeline(written)
  const spec = fromPipeline ? jobOfPipeline(written) : (written as unknown as JobSpec)
  const absolute = withAbsoluteUris(spec, folderUri(path === '-' ? '.' : dirname(path)))
  return { spec: local ? withLocalRunner(absolute) : absolute, fromPipeline }
}

/** The URI of a folder of this machine, ending in `/`. */
export function folderUri(path: string): string {
  return fileUri(`${path}/`)
}

/** The URI of a file of this machine, or of a folder if it ends in `/`. */
export function fileUri(path: string): string {
  const whole = resolve(path).slice(1)
  const end = path.endsWith('/') && whole !== '' ? '/' : ''
  return uriOf({ scheme: 'file', bucket: '', path: `${whole}${end}` })
}

async function writtenIn(path: string): Promise<Record<string, unknown>> {
  if (/\.[cm]?[jt]s$/.test(path)) return specIn(path, await loadModule(resolve(path)))
  const read = readYaml(textOf(path))
  if ('faults' in read) throw specInvalid(read.faults)
  if (!isObject(read.value)) throw specInvalid([{ at: 'spec', why: 'must be an object' }])
  return read.value
}

function textOf(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8')
  } catch (error) {
    throw new Problem('FILE_INVALID', { file: path, why: (error as Error).message }, error)
  }
}

function specIn(file: string, module: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isSpec = (value: unknown) => isObject(value) && typeof value.name === 'string' && !('run' in value)
  const specs = Object.entries(module).filter(([, value]) => isSpec(value))
  const found = specs.find(([name]) => name === 'default') ?? specs[0]
  if (found === undefined) throw new Problem('FILE_INVALID', { file, why: 'it exports no job spec' })
  if (specs.length > 1 && found[0] !== 'default') {
    const names = specs.map(([name]) => name).join(', ')
    throw new Problem('FILE_INVALID', {
      file,
      why: `it exports more than one job spec (${names}) and none as the default`,
    })
  }
  return found[1] as Record<string, unknown>
}
