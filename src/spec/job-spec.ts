/**
 * A job as people write it: in TypeScript, JSON or YAML. The comments here are also the descriptions in
 * docs/job.schema.json. What may be written is checked by the tables in fields.ts, which must have these names.
 */
import type { KubernetesPlan, SecretRef } from '../kernel/datum.ts'
import type { Join, OnFailure } from '../kernel/plan.ts'
import type { Tolerance } from '../kernel/rollup.ts'
import type { SettingsInput } from '../kernel/settings.ts'

export interface JobSpec {
  /** A UUID, where whoever submits it chooses it. Default: a new one. */
  readonly id?: string
  /**
   * `add`: to the job of this id, if it is there and still open, or was until it was done and has ended well, its stages
   * are added; all else that is said of it is then left as it was. Default refuse.
   */
  readonly ifThere?: 'refuse' | 'add'
  /** What the job is called; many jobs may have the same name. */
  readonly name: string
  /** Higher first. Default 0. */
  readonly priority?: number
  /** Any JSON; conditions read it as `input`. Default null. */
  readonly input?: unknown
  /** For people and their tools; the engine does not look at it. */
  readonly metadata?: Record<string, unknown>
  /** Ties the job to whatever asked for it. */
  readonly correlationId?: string
  /** W3C trace context. */
  readonly traceparent?: string
  /** What goes with it, as vendors of tracing have it. */
  readonly tracestate?: string
  /** False: it waits until somebody starts it. Default true. */
  readonly start?: boolean
  /** True: stages can be added until it is sealed. `untilDone`: until it has had one and all have ended. Default false. */
  readonly open?: boolean | 'untilDone'
  /** Not ended so long after its start: it is stopped, and expires. Default: no limit. */
  readonly deadlineSeconds?: number | null
  /** Without progress and with nothing in hand for so long: it fails. Default: off. */
  readonly staleSeconds?: number | null
  /** When it should have ended: its priority rises as the moment nears. */
  readonly softDeadlineSeconds?: number | null
  /** When it must have ended: its priority rises more. */
  readonly hardDeadlineSeconds?: number | null
  /** The lease of the tasks of all its stages, also of those that are added later, unless a stage or task has its own. */
  readonly leaseSeconds?: number
  /** In order: each follows the one before it, unless it says what it needs. Only an open job goes without. */
  readonly stages?: readonly StageSpec[]
}

/** What is said about its tasks (retry, leaseSeconds, …) goes before what their type says. */
export interface StageSpec
  extends Omit<SettingsInput, 'dedupeSeconds' | 'softDeadlineSeconds' | 'hardDeadlineSeconds'> {
  /** Unique in its job. */
  readonly name: string
  /** The stages before it, by name. Default: the one before it in the list. []: none, it opens at once. */
  readonly needs?: readonly string[]
  /**
   * `all` of its needs are met; `any` one of them; all are met, and one was really `taken`, else it is skipped: what a
   * task skips by itself is passed on like a branch; or all are `done`, whatever the outcome. Default all.
   */
  readonly join?: Join
  /** CEL over `input` and `stages`; false: the stage is skipped. */
  readonly when?: string
  /** CEL that gives a list: one task for each element, which is its payload. */
  readonly forEach?: string
  /** CEL over `input` and `stages`: what it gives is the stage's output. Such a stage has no tasks, and ends at once. */
  readonly gives?: string
  /** The type of its tasks. A mere gate has none, and the tasks of an open stage may bring their own. */
  readonly task?: string
  /** Default: the type of the task. */
  readonly queue?: string
  /** The command that its tasks run, on workers that were started with `--commands`; in place of `task`. */
  readonly run?: RunSpec
  /** The files that its tasks are given: one task for each datum, found when the stage opens. */
  readonly inputs?: InputSpec
  /** The folder, `file://…` or `s3://…`, that the files of its tasks go to, each exactly once. */
  readonly outputs?: string
  /** True: what was done before, by the same command with the same inputs and settings, is passed over. Default false. */
  readonly reuse?: boolean
  /**
   * Who starts the workers of its command: `local`, a server with `--commands`, else whoever starts some on its queue; or
   * Kubernetes. Default local.
   */
  readonly runner?: 'local' | { readonly kubernetes: Omit<KubernetesPlan, 'kind'> }
  /** The payload of its only task. Default null. */
  readonly payload?: unknown
  /** A UUID: the id of its only task, where whoever submits it chooses it. */
  readonly taskId?: string
  /** The metadata of each of its tasks. */
  readonly taskMetadata?: Record<string, unknown>
  /** None of its tasks is claimed before this moment. */
  readonly runAt?: Date | string
  /** One task for each. */
  readonly payloads?: readonly unknown[]
  /** True: tasks can be added until it is sealed. `untilDone`: until it has had one and all have ended. Default false. */
  readonly open?: boolean | 'untilDone'
  /** Tasks that may end badly, as a count or in percent: the stage is then partial, not failed. Default none. */
  readonly tolerate?: Tolerance
  /** False: it lets every task end by itself, though too many are bad already. Default true. */
  readonly failFast?: boolean
  /**
   * `continue`: when it ends badly the job goes on, and ends as partial. `failAtOnce`: the job fails as soon as that is
   * decided, and does not wait for what the stage has in hand. Default fail.
   */
  readonly onFailure?: OnFailure
  /** Somebody must approve before it opens. True: one approver, and no limit. */
  readonly gate?: true | GateSpec
  /** At most so many of its tasks are held at once. Default: no limit. */
  readonly parallelism?: number
  /** Undoes what one of its tasks did, if the job fails or is cancelled later. */
  readonly compensate?: CompensateSpec
  /** Any JSON, for whoever works on its tasks; the engine does not look at it. Default null. */
  readonly data?: unknown
  /** W3C trace context of its tasks. Default: that of the job. */
  readonly traceparent?: string
  /** For people and their tools; the engine does not look at it. */
  readonly metadata?: Record<string, unknown>
}

export interface RunSpec {
  /** The program and its arguments; no shell in between. Inputs lie under `$PAWL_IN`, outputs go to `$PAWL_OUT`. */
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Variables whose values only the worker knows: in its environment, or in its folder of secrets. */
  readonly secrets?: Readonly<Record<string, SecretRef>>
  /** Exit codes that no retry can help. Default none. */
  readonly permanentExitCodes?: readonly number[]
  /** For programs that know fixed paths: inputs and outputs are also seen at `<mount>/<name>` and `<mount>/out`. */
  readonly mount?: string
}

/** Folders by name, each datum of one with each of the others; or `cross` or `union` of such. */
export type InputSpec =
  | { readonly cross: readonly InputSpec[] }
  | { readonly union: readonly InputSpec[] }
  | { readonly [name: string]: FolderSpec }

export interface FolderSpec {
  /** A folder: `file://…`, from the spec's own file on if it begins with `file://./`, or `s3://bucket/…`. */
  readonly uri?: string
  /** In place of it: the files that an earlier stage has put out. */
  readonly stage?: string
  /** `/`: the whole folder is one datum. `/*`: each of its entries. Or any glob, such as `/**\/*.csv`. Default `/*`. */
  readonly glob?: string
}

export interface GateSpec {
  /** How many must approve. Default 1. */
  readonly approvers?: number
  /** Not approved by then: the stage fails. Default: no limit. */
  readonly timeoutSeconds?: number | null
  /** What the approver is asked, for people. */
  readonly ask?: string
}

export interface CompensateSpec {
  /** The type of the task that undoes; it gets the payload and the output of the one that it undoes. */
  readonly task: string
  /** Default: the type of that task. */
  readonly queue?: string
}
