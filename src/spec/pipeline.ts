/**
 * Pipeline specs of Falconeri, which are a part of Pachyderm's, as jobs: one stage with a command in an image, which finds
 * its inputs at `/pfs/<repo>` and leaves its outputs in `/pfs/out`.
 */

import type { KubernetesPlan } from '../kernel/datum.ts'
import { isObject } from '../schema/check.ts'
import { readDuration } from './duration.ts'
import { specInvalid } from './faults.ts'
import type { InputSpec, JobSpec, StageSpec } from './job-spec.ts'
import { faultsInPipeline } from './pipeline-fields.ts'

export interface PipelineSpec {
  readonly pipeline: { readonly name: string }
  readonly transform: {
    readonly cmd: readonly string[]
    readonly image: string
    readonly image_pull_policy?: 'Always' | 'IfNotPresent' | 'Never' | null
    readonly env?: Readonly<Record<string, string>>
    readonly secrets?: readonly PipelineSecret[]
    readonly service_account?: string | null
  }
  /** Default 1. */
  readonly parallelism_spec?: { readonly constant: number }
  readonly resource_requests?: { readonly memory?: string; readonly cpu?: number | string }
  /** How often a datum is tried in all. Default 1. */
  readonly datum_tries?: number | null
  /** `5m`, `1h30m`. */
  readonly job_timeout?: string | null
  readonly node_selector?: Readonly<Record<string, string>>
  readonly input: PipelineInput
  readonly egress: { readonly URI: string }
}

/** A key of a Kubernetes Secret as a variable, or all of it as files. */
export type PipelineSecret =
  | { readonly name: string; readonly key: string; readonly env_var: string; readonly optional?: boolean }
  | { readonly name: string; readonly mount_path: string }

/** One of them. */
export interface PipelineInput {
  readonly atom?: PipelineAtom
  /** The same, as Pachyderm calls it today. */
  readonly pfs?: PipelineAtom
  readonly cross?: readonly PipelineInput[]
  readonly union?: readonly PipelineInput[]
}

export interface PipelineAtom {
  readonly URI: string
  readonly repo: string
  readonly glob: '/' | '/*'
}

/** By its shape; also one with faults, so that they are told in its own words. */
export function isPipeline(written: unknown): written is Record<string, unknown> {
  if (!isObject(written) || written.stages !== undefined) return false
  return isObject(written.pipeline) || isObject(written.transform)
}

/** What was written, if it is a pipeline without faults. */
export function pipelineIn(written: unknown): PipelineSpec | undefined {
  const isWhole = isPipeline(written) && faultsInPipeline(written).length === 0
  return isWhole ? (written as unknown as PipelineSpec) : undefined
}

/** The job that does the same. What is wrong with the spec is told in one problem, all of it, by its place in there. */
export function jobOfPipeline(written: Record<string, unknown>): JobSpec {
  const faults = faultsInPipeline(written)
  if (faults.length > 0) throw specInvalid(faults)
  const spec = written as unknown as PipelineSpec
  const { job_timeout: timeout } = spec
  return {
    name: nameOfPipeline(spec),
    ...(timeout != null && { deadlineSeconds: readDuration(timeout)! }),
    stages: [stageOf(spec)],
  }
}

/** As Kubernetes may take it. */
export const nameOfPipeline = ({ pipeline }: PipelineSpec) => pipeline.name.toLowerCase().replaceAll('_', '-')

function stageOf(spec: PipelineSpec): StageSpec {
  const { transform, input, egress, parallelism_spec } = spec
  const { cmd, env = {}, secrets = [] } = transform
  const variables = secrets.flatMap(secret => ('env_var' in secret ? [variableOf(secret)] : []))
  return {
    name: 'transform',
    run: {
      command: [...cmd],
      ...(Object.keys(env).length > 0 && { env: { ...env } }),
      ...(variables.length > 0 && { secrets: Object.fromEntries(variables) }),
      mount: '/pfs',
    },
    inputs: inputOf(input),
    outputs: egress.URI,
    parallelism: parallelism_spec?.constant ?? 1,
    // Every datum ends by itself, and one that failed is tried again at once.
    retry: { attempts: triesOf(spec), delaySeconds: 0 },
    failFast: false,
    runner: { kubernetes: kubernetesOf(spec) },
  }
}

/** How often a datum is tried in all. */
export const triesOf = ({ datum_tries }: PipelineSpec) => datum_tries ?? 1

function variableOf({ name, key, env_var, optional = false }: Extract<PipelineSecret, { env_var: string }>) {
  return [env_var, { secret: name, key, ...(optional && { optional }) }]
}

function inputOf({ atom, pfs = atom, cross, union }: PipelineInput): InputSpec {
  if (cross !== undefined) return { cross: cross.map(inputOf) }
  if (union !== undefined) return { union: union.map(inputOf) }
  const { URI: uri, repo, glob } = pfs!
  return { [repo]: { uri, glob } }
}

/** Falconeri's own pods run on nodes that are tainted so, and keep every other pod away. */
const falconeriToleration = {
  key: 'fdy.io/falconeri',
  operator: 'Equal',
  value: 'worker',
  effect: 'NoExecute',
} as const

function kubernetesOf(spec: PipelineSpec): Omit<KubernetesPlan, 'kind'> {
  const { image, image_pull_policy: imagePullPolicy, service_account: serviceAccount } = spec.transform
  const { memory, cpu } = spec.resource_requests ?? {}
  const resources = { ...(cpu !== undefined && { cpu: cpuOf(cpu) }), ...(memory !== undefined && { memory }) }
  const { node_selector: nodeSelector = {} } = spec
  const { secrets = [] } = spec.transform
  const folders = secrets.flatMap(secret => ('mount_path' in secret ? [[secret.mount_path, secret.name]] : []))
  return {
    image,
    ...(imagePullPolicy != null && { imagePullPolicy }),
    ...(Object.keys(resources).length > 0 && { resources }),
    ...(Object.keys(nodeSelector).length > 0 && { nodeSelector: { ...nodeSelector } }),
    tolerations: [falconeriToleration],
    ...(serviceAccount != null && { serviceAccount }),
    ...(folders.length > 0 && { secretFolders: Object.fromEntries(folders) }),
  }
}

/** Kubernetes knows thousandths of a core, and nothing below. */
function cpuOf(cpu: number | string): string {
  if (typeof cpu === 'string' || Number.isInteger(cpu)) return String(cpu)
  return `${Math.max(1, Math.round(cpu * 1000))}m`
}

/** The same job by whatever workers there are: no image, no cluster. */
export function withLocalRunner<Spec extends JobSpec>(spec: Spec): Spec {
  if (!Array.isArray(spec.stages)) return spec
  const stages = spec.stages.map((stage: unknown, index) => {
    if (!isObject(stage) || !isObject(stage.runner)) return stage
    const { kubernetes } = stage.runner
    if (isObject(kubernetes) && kubernetes.secretFolders !== undefined) {
      const why = 'files of secrets are mounted by Kubernetes: a local worker has none to give'
      throw specInvalid([{ at: `stages[${index}].runner.kubernetes.secretFolders`, why }])
    }
    const { runner: _, ...rest } = stage
    return rest
  })
  return { ...spec, stages }
}
