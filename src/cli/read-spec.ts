/** Reads a job spec from a file or standard input, and converts pipeline specs. */
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { loadModule } from '../config/load-module.ts'
import type { ResolvedSettings } from '../config/resolve-settings.ts'
import { uriOf } from '../files/uri.ts'
import { Problem } from '../kernel/problem.ts'
import { isObject } from '../schema/check.ts'
import { withAbsoluteUris } from '../spec/absolute-uris.ts'
import { specInvalid } from '../spec/faults.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import { isPipeline, jobOfPipeline, withLocalRunner } from '../spec/pipeline.ts'
import { readYaml } from '../spec/read-yaml.ts'

export const specHelp = `The spec is YAML, JSON, or a module (.ts, .js, .mjs) that exports one; "-" reads it from standard input. Pipeline specs
of Falconeri and Pachyderm are converted. In the spec, file://./ is the folder of its file, or the current folder if it
is read from standard input.`

export const localFlag = {
  local: {
    kind: 'switch',
    summary: 'run commands in workers started with --commands, even if the spec asks for Kubernetes',
  },
} as const

interface ReadJob {
  readonly spec: JobSpec
  /** Whether it was converted from a pipeline spec. */
  readonly fromPipeline: boolean
}

/** Makes URIs absolute, but validates nothing: the engine does that when it gets the spec. */
export async function readJob(path: string, { local = false }: { readonly local?: boolean } = {}): Promise<ReadJob> {
  const parsed = await parseFile(path)
  const fromPipeline = isPipeline(parsed)
  const spec = fromPipeline ? jobOfPipeline(parsed) : (parsed as unknown as JobSpec)
  const absolute = withAbsoluteUris(spec, folderUri(path === '-' ? '.' : dirname(path)))
  return { spec: local ? withLocalRunner(absolute) : absolute, fromPipeline }
}

/**
 * The pipelines in the settings: specs, or files with specs. In a file, file://./ is the folder of the file; in a spec in
 * the settings, it is the current folder.
 */
export async function pipelinesOf({
  values,
}: ResolvedSettings): Promise<{ readonly pipelines: Record<string, JobSpec> }> {
  const read = Object.entries(values.pipelines ?? {}).map(async ([name, source]) => {
    const spec = typeof source === 'string' ? (await readJob(source)).spec : withAbsoluteUris(source, folderUri('.'))
    return [name, spec] as const
  })
  return { pipelines: Object.fromEntries(await Promise.all(read)) }
}

/** The URI of a folder on this machine, ending in `/`. */
export function folderUri(path: string): string {
  return fileUri(`${path}/`)
}

/** The URI of a file on this machine, or of a folder if the path ends in `/`. */
export function fileUri(path: string): string {
  const absolute = resolve(path).slice(1)
  const end = path.endsWith('/') && absolute !== '' ? '/' : ''
  return uriOf({ scheme: 'file', bucket: '', path: `${absolute}${end}` })
}

async function parseFile(path: string): Promise<Record<string, unknown>> {
  if (/\.[cm]?[jt]s$/.test(path)) return exportedSpec(path, await loadModule(resolve(path)))
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

function exportedSpec(file: string, module: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const isSpec = (value: unknown) => isObject(value) && typeof value.name === 'string' && !('run' in value)
  const specs = Object.entries(module).filter(([, value]) => isSpec(value))
  const found = specs.find(([name]) => name === 'default') ?? specs[0]
  if (found === undefined) throw new Problem('FILE_INVALID', { file, why: 'it exports no job spec' })
  if (specs.length > 1 && found[0] !== 'default') {
    const names = specs.map(([name]) => name).join(', ')
    throw new Problem('FILE_INVALID', {
      file,
      why: `it exports several job specs (${names}), none of them as the default export`,
    })
  }
  return found[1] as Record<string, unknown>
}
