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

/** Which datum of a plan, by the paths of its files and never by a count: others may come and go meanwhile. JSON. */
export type Position = string | readonly Position[] | { readonly branch: number; readonly at: Position }

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
