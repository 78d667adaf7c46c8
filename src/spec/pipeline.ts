/**
 * Converts pipeline specs of Falconeri, a subset of Pachyderm's, to jobs: one stage with a command in an image, which
 * reads its inputs at `/pfs/<repo>` and writes its outputs to `/pfs/out`.
 */
import type { KubernetesPlan } from '../kernel/datum.ts'
import { isObject } from '../schema/check.ts'
import { specInvalid } from './faults.ts'
import type { InputSpec } from './file-fields.ts'
import type { JobSpec, StageSpec } from './job-spec.ts'
import { faultsInPipeline, readDuration } from './pipeline-fields.ts'

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
  /** Total tries of a datum. Default 1. */
  readonly datum_tries?: number | null
  /** `5m`, `1h30m`. */
  readonly job_timeout?: string | null
  readonly node_selector?: Readonly<Record<string, string>>
  readonly input: PipelineInput
  readonly egress: { readonly URI: string }
}

/** One key of a Kubernetes Secret as an environment variable, or the whole Secret as files. */
export type PipelineSecret =
  | { readonly name: string; readonly key: string; readonly env_var: string; readonly optional?: boolean }
  | { readonly name: string; readonly mount_path: string }

/** Exactly one field is set. */
export interface PipelineInput {
  readonly atom?: PipelineAtom
  /** Pachyderm's current name of the same input. */
  readonly pfs?: PipelineAtom
  readonly cross?: readonly PipelineInput[]
  readonly union?: readonly PipelineInput[]
}

export interface PipelineAtom {
  readonly URI: string
  readonly repo: string
  readonly glob: '/' | '/*'
}

/** Recognizes a pipeline spec by its shape, also one with faults, so that they are reported in its own terms. */
export function isPipeline(written: unknown): written is Record<string, unknown> {
  if (!isObject(written) || written.stages !== undefined) return false
  return isObject(written.pipeline) || isObject(written.transform)
}

/** The value as a pipeline spec, if it is one without faults. */
export function pipelineIn(written: unknown): PipelineSpec | undefined {
  const isWhole = isPipeline(written) && faultsInPipeline(written).length === 0
  return isWhole ? (written as unknown as PipelineSpec) : undefined
}

/** Converts the spec to a job. One problem reports all faults of the spec, each with its place. */
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

/** Fits a name to the rules of Kubernetes. */
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
    // All data finish regardless of failures, and a failed datum is retried at once.
    retry: { attempts: triesOf(spec), delaySeconds: 0 },
    failFast: false,
    runner: { kubernetes: kubernetesOf(spec) },
  }
}

/** Total tries of a datum. */
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

/** Falconeri's pods run on nodes with this taint, which keeps all other pods away. */
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

/** The smallest unit of Kubernetes is a thousandth of a core. */
function cpuOf(cpu: number | string): string {
  if (typeof cpu === 'string' || Number.isInteger(cpu)) return String(cpu)
  return `${Math.max(1, Math.round(cpu * 1000))}m`
}

/** The same job for any workers: without image and cluster. */
export function withLocalRunner<Spec extends JobSpec>(spec: Spec): Spec {
  if (!Array.isArray(spec.stages)) return spec
  const stages = spec.stages.map((stage: unknown, index) => {
    if (!isObject(stage) || !isObject(stage.runner)) return stage
    const { kubernetes } = stage.runner
    if (isObject(kubernetes) && kubernetes.secretFolders !== undefined) {
      const why = 'only Kubernetes can mount the files of a Secret; local workers cannot'
      throw specInvalid([{ at: `stages[${index}].runner.kubernetes.secretFolders`, why }])
    }
    const { runner: _, ...rest } = stage
    return rest
  })
  return { ...spec, stages }
}
