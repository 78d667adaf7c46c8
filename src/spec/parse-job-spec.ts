import type { JobPlan } from '../kernel/plan.ts'
import { Problem } from '../kernel/problem.ts'
import { closestWord } from '../kernel/suggest.ts'
import { type Field, isObject } from '../schema/check.ts'
import { longestConditions, stagesNamedIn } from './conditions.ts'
import { type Fault, faultsIn, specInvalid } from './faults.ts'
import { type Graph, graphOf, type Node } from './graph.ts'
import type { JobSpec } from './job-spec.ts'
import { jobField, mostStages } from './job-spec.ts'
import { planOf } from './plan.ts'
import { readYaml } from './read-yaml.ts'
import { jobRules, type Rule, stageRules } from './rules.ts'

/**
 * Converts a spec to a plan with all defaults. A text is parsed as YAML or JSON. One problem reports all faults. The plan
 * refers to the given payloads; it does not copy them. `pipelines`: those that the spec may name.
 */
export function parseJobSpec(spec: JobSpec | NamedJob | string, pipelines: Pipelines = {}): JobPlan {
  const written = typeof spec === 'string' ? readYaml(spec) : { value: spec }
  if ('faults' in written) throw specInvalid(written.faults)
  const meant = specMeant(written.value, pipelines)
  const faults = faultsInSpec(meant)
  if (faults.length > 0) throw specInvalid(faults)
  return planOf(meant as JobSpec)
}

function faultsInSpec(spec: unknown): Fault[] {
  // Checked before any expression is parsed.
  if (lengthOfConditions(spec) > longestConditions) {
    const why = `the conditions of all stages have more than ${longestConditions.toLocaleString('en')} characters`
    return [{ at: 'stages', why }]
  }
  const faults = faultsIn(spec, jobField, '')
  if (!isObject(spec)) return faults
  const ofJob = [...faults, ...broken(spec, jobRules, '')]
  if (!Array.isArray(spec.stages) || spec.stages.length > mostStages) return ofJob
  const stages = spec.stages.map(stage => (isObject(stage) ? stage : {}))
  const ofStages = stages.flatMap((stage, index) => broken(stage, stageRules, `stages[${index}].`))
  const graph = graphOf(stages.map(outline))
  // Ancestors are defined only in a graph without faults.
  const isSound = graph.faults.length === 0
  const ofConditions = isSound ? stages.flatMap((stage, index) => foreign(stage, index, graph)) : []
  const ofInputs = isSound ? inputFaults(stages, graph) : []
  return [...ofJob, ...ofStages, ...graph.faults, ...ofConditions, ...ofInputs]
}

function broken(written: Record<string, unknown>, rules: readonly Rule[], before: string): Fault[] {
  return rules.filter(rule => !rule.holds(written)).map(({ at, why }) => ({ at: `${before}${at}`, why }))
}

function outline({ name, needs, join }: Record<string, unknown>): Node {
  return {
    name: isText(name) ? name : undefined,
    needs: needs === undefined ? undefined : Array.isArray(needs) ? needs.filter(isText) : [],
    join,
  }
}

const conditions = ['when', 'forEach', 'gives']

function lengthOfConditions(spec: unknown): number {
  const stages = isObject(spec) && Array.isArray(spec.stages) ? spec.stages : []
  let length = 0
  for (const stage of stages) {
    if (!isObject(stage)) continue
    for (const field of conditions) length += isText(stage[field]) ? stage[field].length : 0
  }
  return length
}

/** Finds stages that a condition reads without depending on them: their state would be random. */
function foreign(stage: Record<string, unknown>, index: number, graph: Graph): Fault[] {
  return conditions.flatMap(field => {
    const text = stage[field]
    if (!isText(text)) return []
    return stagesNamedIn(text)
      .filter(name => !graph.isAbove(index, name))
      .map(name => ({
        at: `stages[${index}].${field}`,
        why: `it reads '${name}', which is not among the stages before it`,
      }))
  })
}

/** A stage can take files only from an ancestor that has outputs. */
function inputFaults(stages: readonly Record<string, unknown>[], graph: Graph): Fault[] {
  const hasOutputs = new Map(stages.map(({ name, outputs }) => [name, outputs !== undefined]))
  const known = [...hasOutputs.keys()].filter(isText)
  return stages.flatMap(({ inputs }, index) => {
    const at = `stages[${index}].inputs`
    return [...new Set(stagesOfInputs(inputs))].flatMap((name): Fault[] => {
      if (!hasOutputs.has(name)) return [{ at, why: `no stage has the name '${name}'`, unknown: { word: name, known } }]
      if (!graph.isAbove(index, name)) return [{ at, why: `'${name}' is not among the stages before it` }]
      return hasOutputs.get(name) ? [] : [{ at, why: `'${name}' has no \`outputs\`, so it produces no files` }]
    })
  })
}

/** The stages whose files a stage takes, at any depth of its inputs. */
function stagesOfInputs(written: unknown): string[] {
  if (Array.isArray(written)) return written.flatMap(stagesOfInputs)
  if (!isObject(written)) return []
  return Object.entries(written).flatMap(([name, inner]) =>
    name === 'stage' && isText(inner) ? [inner] : stagesOfInputs(inner),
  )
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

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
function specMeant(written: unknown, pipelines: Pipelines): unknown {
  if (!isObject(written) || typeof written.pipeline !== 'string') return written
  const { pipeline, ...overrides } = written
  const faults = own
    .filter(name => overrides[name] !== undefined)
    .map((at): Fault => ({ at, why: 'cannot be combined with `pipeline`, which defines it' }))
  if (faults.length > 0) throw specInvalid(faults)
  if (Object.hasOwn(pipelines, pipeline)) return { ...pipelines[pipeline], ...overrides }
  const known = Object.keys(pipelines)
  const meant = closestWord(pipeline.slice(0, 100), known)
  throw new Problem('PIPELINE_UNKNOWN', { pipeline, known, ...(meant !== undefined && { didYouMean: meant }) })
}
