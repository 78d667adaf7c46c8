/** Pipelines: specs that are named in the engine's options. A job can be submitted by such a name. */

import { Problem } from '../kernel/problem.ts'
import { closestWord } from '../kernel/suggest.ts'
import { type Field, isObject } from '../schema/check.ts'
import { type Fault, specInvalid } from './faults.ts'
import { jobField } from './fields.ts'
import type { JobSpec } from './job-spec.ts'

/** A job by the name of its pipeline. The fields beside the name override those of the pipeline. */
export interface NamedJob extends Omit<Partial<JobSpec>, 'stages' | 'open'> {
  readonly pipeline: string
}

/** Job specs by the names of their pipelines. */
export type Pipelines = Readonly<Record<string, JobSpec>>

const own = ['stages', 'open']

/** Fields allowed beside the name. */
export const besideName: Readonly<Record<string, Field>> = Object.fromEntries(
  Object.entries(jobField.properties).filter(([name]) => !own.includes(name)),
)

/** Resolves the name of a pipeline to its spec. Anything else is returned unchanged. */
export function specMeant(written: unknown, pipelines: Pipelines): unknown {
  if (!isObject(written) || typeof written.pipeline !== 'string') return written
  const { pipeline, ...said } = written
  const faults = own
    .filter(name => said[name] !== undefined)
    .map((at): Fault => ({ at, why: 'cannot stand beside `pipeline`, which says it' }))
  if (faults.length > 0) throw specInvalid(faults)
  if (Object.hasOwn(pipelines, pipeline)) return { ...pipelines[pipeline], ...said }
  const known = Object.keys(pipelines)
  const meant = closestWord(pipeline.slice(0, 100), known)
  throw new Problem('PIPELINE_UNKNOWN', { pipeline, known, ...(meant !== undefined && { didYouMean: meant }) })
}
