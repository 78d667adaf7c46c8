/** What a command task is given: its payload, which says all that a worker must know to do it. */

export interface CommandPayload {
  readonly run: RunPlan
  /** Files and folders (their URIs end in `/`), each with its place under `$PAWL_IN`. */
  readonly inputs: readonly DatumInput[]
  /** The folder that its files go to, ending in `/`; null: whatever it leaves is dropped. */
  readonly outputs: string | null
}

export interface DatumInput {
  /** The folder under `$PAWL_IN`. */
  readonly name: string
  readonly uri: string
  /** From that folder, parts joined by `/`; '' for the whole folder, and ending in `/` for one inside. */
  readonly path: string
  readonly size?: number
  /** Differs when the bytes do. */
  readonly version?: string
}

export interface RunPlan {
  /** The program and its arguments; no shell in between. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Variables whose values the worker has, by the name of the variable: they are in no payload. */
  readonly secrets: Readonly<Record<string, SecretRef>>
  /** Exit codes that no retry can help. */
  readonly permanentExitCodes: readonly number[]
  /** Inputs and outputs are also seen at `<mount>/<name>` and `<mount>/out`, for programs that know these paths. */
  readonly mount: string | null
}

/** Where a secret's value is kept: in Kubernetes' words, and as files in the worker's folder of secrets. */
export interface SecretRef {
  readonly secret: string
  readonly key: string
}

/** The type, and unless a stage says otherwise the queue, of tasks that run a command. */
export const commandType = 'command'

/** Where an attempt's uploads lie until it has won: a folder inside the outputs that listings do not show. */
export function stagingOf(outputs: string, taskId: string, epoch: number): string {
  return `${outputs}${stagingFolder}${taskId}/${epoch}/`
}

export const stagingFolder = '.pawl/'

/** Who starts the workers of a stage's commands. */
export type RunnerPlan = LocalPlan | KubernetesPlan

/** Whatever workers there are. */
export interface LocalPlan {
  readonly kind: 'local'
}

/** A Kubernetes Job of its own, whose pods are the workers; quantities are in Kubernetes' words (`500m`, `2Gi`). */
export interface KubernetesPlan {
  readonly kind: 'kubernetes'
  /** What the command runs in. */
  readonly image: string
  readonly imagePullPolicy?: 'Always' | 'IfNotPresent' | 'Never'
  readonly resources?: ResourcesPlan
  readonly nodeSelector?: Readonly<Record<string, string>>
  /** Without one, its pods hold no key to the Kubernetes API. */
  readonly serviceAccount?: string
  /** The longest that its Job may run, from when it starts. */
  readonly activeDeadlineSeconds?: number
  /** How long a Job that ended by itself can still be looked at. */
  readonly ttlSeconds?: number
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
}

export interface ResourcesPlan {
  /** What a pod is promised. */
  readonly cpu?: string
  readonly memory?: string
  /** What it may not exceed, by resource. Default: the memory that it is promised. */
  readonly limits?: Readonly<Record<string, string>>
}
