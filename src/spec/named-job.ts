/** Pipelines: specs that whoever opened the engine gave names to. A job may be submitted by such a name. */

import { Problem } from '../kernel/problem.ts'
import { nearest } from '../kernel/suggest.ts'
import { type Field, isObject } from '../schema/check.ts'
import { type Fault, specInvalid } from './faults.ts'
import { jobField } from './fields.ts'
import type { JobSpec } from './job-spec.ts'

/** A job by the name of its pipeline; what is said beside the name goes before what the pipeline says. */
export interface NamedJob extends Omit<Partial<JobSpec>, 'stages' | 'open'> {
  readonly pipeline: string
}

export type Pipelines = Readonly<Record<string, JobSpec>>

const own = ['stages', 'open']

/** What may stand beside the name. */
export const besideName: Readonly<Record<string, Field>> = Object.fromEntries(
  Object.entries(jobField.properties).filter(([name]) => !own.includes(name)),
)

/** The spec that is meant; whatever names no pipeline is what it is. */
export function specMeant(written: unknown, pipelines: Pipelines): unknown {
  if (!isObject(written) || typeof written.pipeline !== 'string') return written
  const { pipeline, ...said } = written
  const faults = own
    .filter(name => said[name] !== undefined)
    .map((at): Fault => ({ at, why: 'cannot stand beside `pipeline`, which says it' }))
  if (faults.length > 0) throw specInvalid(faults)
  if (Object.hasOwn(pipelines, pipeline)) return { ...pipelines[pipeline], ...said }
  const known = Object.keys(pipelines)
  const meant = nearest(pipeline.slice(0, 100), known)
  throw new Problem('PIPELINE_UNKNOWN', { pipeline, known, ...(meant !== undefined && { didYouMean: meant }) })
}
