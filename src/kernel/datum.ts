/** The payload of a command task: everything that a worker needs to run it. */

export interface CommandPayload {
  readonly run: RunPlan
  /** Files and folders (folder URIs end in `/`), each with its path under `$PAWL_IN`. */
  readonly inputs: readonly DatumInput[]
  /** The folder for its output files, ending in `/`; null discards them. */
  readonly outputs: string | null
  /** The inputs must be unchanged since they were listed, because the outputs may be reused for the same inputs. */
  readonly exact?: true
}

/** The payload of a task with a handler: the same fields, with the `payload` of its stage in place of the command. */
export type DatumPayload = CommandPayload | (Omit<CommandPayload, 'run'> & { readonly payload: unknown })

export function payloadOf(plan: Omit<FilesPlan, 'inputs'>, inputs: readonly DatumInput[]): DatumPayload {
  const { run, outputs } = plan
  if (run === null) return { inputs, outputs, payload: plan.payload ?? null }
  return { run, inputs, outputs, ...(plan.reuse && { exact: true }) }
}

export interface DatumInput {
  /** The folder under `$PAWL_IN`. */
  readonly name: string
  readonly uri: string
  /** Path within that folder, with `/` as the separator: '' for the whole folder, ending in `/` for a subfolder. */
  readonly path: string
  readonly size?: number
  /** Changes whenever the content changes. */
  readonly version?: string
  /**
   * For the outputs of an earlier stage: only files that this stage put out are fetched, whatever else the folder
   * holds.
   */
  readonly stageId?: string
}

export interface RunPlan {
  /** The program and its arguments. No shell is involved. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Secrets that the worker provides, by variable name. Their values are never part of a payload. */
  readonly secrets: Readonly<Record<string, SecretRef>>
  /** Exit codes for which the command is not retried. */
  readonly permanentExitCodes: readonly number[]
  /** Inputs and outputs also appear at `<mount>/<name>` and `<mount>/out`, for programs with fixed paths. */
  readonly mount: string | null
}

/** The commands and files of a stage. */
export interface FilesPlan {
  /** The command that its tasks run; null if they have handlers. */
  readonly run: RunPlan | null
  /** Creates one task per datum, listed when the stage opens; null for a single task without inputs. */
  readonly inputs: InputPlan | null
  /** The folder for the output files of its tasks, ending in `/`. */
  readonly outputs: string | null
  /** Skips a datum that the same command has already processed with the same inputs. */
  readonly reuse: boolean
  /** Starts the workers of the stage; null means `local`. */
  readonly runner: RunnerPlan | null
  /** Handlers receive this in addition to their inputs. */
  readonly payload?: unknown
}

/** The source of a stage's datums. Each datum becomes one task. */
export type InputPlan = FilesInput | CrossInput | UnionInput

/**
 * Everything that a glob matches in a folder, one datum per file or folder: `/` is the whole folder, `/*` each entry.
 */
export interface FilesInput {
  readonly kind: 'files'
  /** The folder under `$PAWL_IN`. */
  readonly name: string
  readonly glob: string
  /** The URI of a folder, or the outputs of an earlier stage. */
  readonly from: { readonly uri: string } | { readonly stage: string }
}

/** Every combination; the first input varies slowest. */
export interface CrossInput {
  readonly kind: 'cross'
  readonly of: readonly InputPlan[]
}

/** The datums of each input, one input after the other. */
export interface UnionInput {
  readonly kind: 'union'
  readonly of: readonly InputPlan[]
}

/** All file inputs of an input plan. */
export function filesInputsOf(plan: InputPlan): FilesInput[] {
  return plan.kind === 'files' ? [plan] : plan.of.flatMap(filesInputsOf)
}

/** The stages whose outputs a stage reads as inputs. */
export function sourceStagesOf({ inputs }: FilesPlan): string[] {
  return inputs === null ? [] : filesInputsOf(inputs).flatMap(({ from }) => ('stage' in from ? [from.stage] : []))
}

/** Identifies a datum of a plan by the paths of its files, never by a count, because files may come and go. JSON. */
export type Position = string | readonly Position[] | { readonly branch: number; readonly at: Position }

/** Where a secret is stored: the name and key of a Kubernetes Secret, or a file in the worker's folder of secrets. */
export interface SecretRef {
  readonly secret: string
  readonly key: string
  /** The command can run without it. */
  readonly optional?: boolean
}

/** The type of tasks that run a command, and their default queue. */
export const commandType = 'command'

/** The queue of a stage that has its own image. On a shared queue, workers with another image could claim its tasks. */
export function ownQueueOf(stageId: string): string {
  return `k8s-${stageId}`
}

/** The queue that an API key must be allowed to use. The queues of stages with their own image count as `command`. */
export function permissionQueueOf(queue: string): string {
  return /^k8s-[0-9a-f-]{36}$/.test(queue) ? commandType : queue
}

/** Where an attempt keeps its uploads until it wins: a folder inside the outputs that listings hide. */
export function stagingOf(outputs: string, taskId: string, epoch: number): string {
  return `${outputs}${stagingFolder}${taskId}/${epoch}/`
}

export const stagingFolder = '.pawl/'

/** Starts the workers of a stage's commands. */
export type RunnerPlan = LocalPlan | KubernetesPlan

/** Child processes of the server if it was started with `--commands`, otherwise any worker on the queue. */
export interface LocalPlan {
  readonly kind: 'local'
}

/** A Kubernetes Job per stage, whose pods are the workers. Quantities use Kubernetes notation (`500m`, `2Gi`). */
export interface KubernetesPlan {
  readonly kind: 'kubernetes'
  /** The container image that the command runs in. */
  readonly image: string
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never'
  readonly resources?: ResourcesPlan
  readonly nodeSelector?: Readonly<Record<string, string>>
  /** Node taints that the pods tolerate. */
  readonly tolerations?: readonly Toleration[]
  /** Without a service account, the pods get no Kubernetes API token. */
  readonly serviceAccount?: string
  /** Names of Secrets to mount as files, by mount path. */
  readonly secretFolders?: Readonly<Record<string, string>>
  /** Number of pods at once. Default: the parallelism of the stage, or 1. */
  readonly pods?: number
  /** Maximum run time of the Job, from its start. */
  readonly activeDeadlineSeconds?: number
  /** How long a finished Job is kept for inspection. */
  readonly ttlSeconds?: number
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** As in the Kubernetes API. */
export interface Toleration {
  readonly key?: string
  /** Default Equal. */
  readonly operator?: 'Equal' | 'Exists'
  readonly value?: string
  /** Default: every effect. */
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
  /** How long a pod may stay on a node that gets the taint while the pod is running. Default: indefinitely. */
  readonly tolerationSeconds?: number
}

export interface ResourcesPlan {
  /** Resource requests of a pod. */
  readonly cpu?: string
  readonly memory?: string
  /** Resource limits of a pod. Default: the requested memory. */
  readonly limits?: Readonly<Record<string, string>>
}
