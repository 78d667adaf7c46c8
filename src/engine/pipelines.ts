import { name as nameField } from '../kernel/fields.ts'
import { Problem } from '../kernel/problem.ts'
import { specInvalid } from '../spec/faults.ts'
import type { JobSpec } from '../spec/job-spec.ts'
import type { Pipelines } from '../spec/named-job.ts'
import { parseJobSpec } from '../spec/parse-job-spec.ts'
import { readYaml } from '../spec/read-yaml.ts'
import { checkOptions } from './check.ts'

/** Every pipeline is checked when the engine opens, not when the first job asks for it. */
export function readPipelines(given: Readonly<Record<string, JobSpec | string>> = {}): Pipelines {
  return Object.fromEntries(Object.entries(given).map(([name, spec]) => [name, readPipeline(name, spec)]))
}

function readPipeline(name: string, given: JobSpec | string): JobSpec {
  checkOptions({ name }, { name: nameField }, 'pipelines')
  try {
    const spec = typeof given === 'string' ? written(given) : given
    parseJobSpec(spec)
    return spec
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    throw new Problem(error.code, { pipeline: name, ...error.details }, error)
  }
}

function written(text: string): JobSpec {
  const read = readYaml(text)
  if ('faults' in read) throw specInvalid(read.faults)
  return read.value as JobSpec
}
