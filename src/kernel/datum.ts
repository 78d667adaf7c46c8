/** What a command task is given: its payload, which says all that a worker must know to do it. */

export interface CommandPayload {
  readonly run: RunPlan
  /** Files and folders (their URIs end in `/`), each with its place under `$PAWL_IN`. */
  readonly inputs: readonly DatumInput[]
  /** The folder that its files go to, ending in `/`; null: whatever it leaves is dropped. */
  readonly outputs: string | null
  /** Its inputs must be as they were found: what it makes stands for them, and may be used again. */
  readonly exact?: true
}

/** A handler is given the same, and what its stage says as `payload` in place of the command. */
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
  /** From that folder, parts joined by `/`; '' for the whole folder, and ending in `/` for one inside. */
  readonly path: string
  readonly size?: number
  /** Differs when the bytes do. */
  readonly version?: string
  /** Of a folder that holds what an earlier stage has put out: only that is given, whatever else lies there. */
  readonly stageId?: string
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

/** What a stage says of commands and files. */
export interface FilesPlan {
  /** The command that its tasks run; null: they have handlers. */
  readonly run: RunPlan | null
  /** One task for each datum, found when it opens; null: it has one task, without inputs. */
  readonly inputs: InputPlan | null
  /** The folder that the files of its tasks go to, ending in `/`. */
  readonly outputs: string | null
  /** A datum that was done before, by the same command with the same inputs, is passed over. */
  readonly reuse: boolean
  /** Who starts its workers; null: as local. */
  readonly runner: RunnerPlan | null
  /** What handlers are given besides their inputs. */
  readonly payload?: unknown
}

/** Where the datums of a stage come from: each is given to one task. */
export type InputPlan = FilesInput | CrossInput | UnionInput

/** What a glob matches in a folder, each file or folder a datum: `/` the whole folder, `/*` each thing in it. */
export interface FilesInput {
  readonly kind: 'files'
  /** The folder under `$PAWL_IN`. */
  readonly name: string
  readonly glob: string
  /** A folder's URI, or the outputs of an earlier stage. */
  readonly from: { readonly uri: string } | { readonly stage: string }
}

/** Every combination, the first outermost. */
export interface CrossInput {
  readonly kind: 'cross'
  readonly of: readonly InputPlan[]
}

/** One after the other. */
export interface UnionInput {
  readonly kind: 'union'
  readonly of: readonly InputPlan[]
}

/** Every folder of an input plan. */
export function filesInputsOf(plan: InputPlan): FilesInput[] {
  return plan.kind === 'files' ? [plan] : plan.of.flatMap(filesInputsOf)
}

/** The stages whose files a stage takes as its inputs. */
export function sourceStagesOf({ inputs }: FilesPlan): string[] {
  return inputs === null ? [] : filesInputsOf(inputs).flatMap(({ from }) => ('stage' in from ? [from.stage] : []))
}

/** Which datum of a plan, by the paths of its files and never by a count: others may come and go meanwhile. JSON. */
export type Position = string | readonly Position[] | { readonly branch: number; readonly at: Position }

/** Where a secret's value is kept: in Kubernetes' words, and as files in the worker's folder of secrets. */
export interface SecretRef {
  readonly secret: string
  readonly key: string
  /** The command runs without it, too. */
  readonly optional?: boolean
}

/** The type, and unless a stage says otherwise the queue, of tasks that run a command. */
export const commandType = 'command'

/** The queue of a stage with an image of its own: on any other, workers with another image might claim its tasks. */
export function ownQueueOf(stageId: string): string {
  return `k8s-${stageId}`
}

/** The queue that a key must be for to use this one: a stage with a queue of its own counts as one of `command`. */
export function permissionQueueOf(queue: string): string {
  return /^k8s-[0-9a-f-]{36}$/.test(queue) ? commandType : queue
}

/** Where an attempt's uploads lie until it has won: a folder inside the outputs that listings do not show. */
export function stagingOf(outputs: string, taskId: string, epoch: number): string {
  return `${outputs}${stagingFolder}${taskId}/${epoch}/`
}

export const stagingFolder = '.pawl/'

/** Who starts the workers of a stage's commands. */
export type RunnerPlan = LocalPlan | KubernetesPlan

/** The server's own processes, if it was started with `--commands`; else whatever workers there are on its queue. */
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
  /** Taints of nodes that its pods may run in spite of. */
  readonly tolerations?: readonly Toleration[]
  /** Without one, its pods hold no key to the Kubernetes API. */
  readonly serviceAccount?: string
  /** Secrets as files, by the folder that each is seen in. */
  readonly secretFolders?: Readonly<Record<string, string>>
  /** How many there are at once. Default: as many as the stage may have tasks at once, and 1 if it does not say. */
  readonly pods?: number
  /** The longest that its Job may run, from when it starts. */
  readonly activeDeadlineSeconds?: number
  /** How long a Job that ended by itself can still be looked at. */
  readonly ttlSeconds?: number
  readonly namespace?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** In Kubernetes' words. */
export interface Toleration {
  readonly key?: string
  /** Default Equal. */
  readonly operator?: 'Equal' | 'Exists'
  readonly value?: string
  /** Default: every effect. */
  readonly effect?: 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute'
  /** How long a pod may stay on a node that gets the taint while it runs. Default: for as long as it likes. */
  readonly tolerationSeconds?: number
}

export interface ResourcesPlan {
  /** What a pod is promised. */
  readonly cpu?: string
  readonly memory?: string
  /** What it may not exceed, by resource. Default: the memory that it is promised. */
  readonly limits?: Readonly<Record<string, string>>
}
