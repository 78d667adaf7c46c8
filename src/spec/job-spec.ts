/**
 * A job spec as written in TypeScript, JSON or YAML. The comments here are also the descriptions in docs/job.schema.json.
 * The tables in fields.ts check specs; they must have the same names.
 */
import type { KubernetesPlan, SecretRef } from '../kernel/datum.ts'
import type { Join, OnFailure } from '../kernel/plan.ts'
import type { Tolerance } from '../kernel/rollup.ts'
import type { SettingsInput } from '../kernel/settings.ts'

/** A job to submit: stages and their dependencies. */
export interface JobSpec {
  /** Id of the job, a UUID. Default: a new one. */
  readonly id?: string
  /**
   * If a job with this `id` exists: `add` adds the stages to it and ignores the other fields. The job must be open, or
   * have been `untilDone` and have ended well. Default refuse.
   */
  readonly ifThere?: 'refuse' | 'add'
  /** Name of the job. It need not be unique. */
  readonly name: string
  /** Higher priorities run first. Default 0. */
  readonly priority?: number
  /** Any JSON; conditions read it as `input`. Default null. */
  readonly input?: unknown
  /** Any data for people and tools. The engine does not read it. */
  readonly metadata?: Record<string, unknown>
  /** Links the job to the request or process that caused it. */
  readonly correlationId?: string
  /** W3C trace context. */
  readonly traceparent?: string
  /** W3C trace state: vendor-specific data that accompanies `traceparent`. */
  readonly tracestate?: string
  /** False: the job waits until it is started. Default true. */
  readonly start?: boolean
  /** True: stages can be added until the job is sealed. `untilDone`: until all of its stages, at least one, have ended. Default false. */
  readonly open?: boolean | 'untilDone'
  /** Time limit from the start of the job. After it, the job is stopped and expires. Default: no limit. */
  readonly deadlineSeconds?: number | null
  /** The job fails after this long without progress and without a running task. Default: off. */
  readonly staleSeconds?: number | null
  /** When the job should have ended. Its priority rises as the time approaches. */
  readonly softDeadlineSeconds?: number | null
  /** When the job must have ended. Its priority rises further. */
  readonly hardDeadlineSeconds?: number | null
  /** Lease duration of all tasks, including those of stages added later, unless the stage or task sets its own. */
  readonly leaseSeconds?: number
  /** Stages in order. Each needs the previous one unless it has `needs`. Only an open job may have none. */
  readonly stages?: readonly StageSpec[]
}

/** Its settings for tasks (retry, leaseSeconds, …) override those of the task type. */
export interface StageSpec
  extends Omit<SettingsInput, 'dedupeSeconds' | 'softDeadlineSeconds' | 'hardDeadlineSeconds'> {
  /** Unique within the job. */
  readonly name: string
  /** Names of the stages it depends on. Default: the previous stage in the list. []: none, it opens at once. */
  readonly needs?: readonly string[]
  /**
   * When the stage opens. `all`: all needs are met. `any`: one is met. `taken`: like `all`, but a need whose tasks skipped
   * themselves counts as skipped. `done`: all needs have ended, with any outcome. Except for `done`, a stage is skipped
   * if all stages in its `needs` were skipped. Default all.
   */
  readonly join?: Join
  /** CEL condition over `input` and `stages`. If it is false, the stage is skipped. */
  readonly when?: string
  /** CEL expression for a list. Each element becomes the payload of one task. */
  readonly forEach?: string
  /** CEL expression over `input` and `stages` for the output of the stage. Such a stage has no tasks and ends at once. */
  readonly gives?: string
  /** Type of its tasks. Not needed for a stage that is only a gate, or if the tasks added to an open stage name their type. */
  readonly task?: string
  /** Default: the task type. */
  readonly queue?: string
  /** Command that its tasks run, on workers started with `--commands`. Replaces `task`. */
  readonly run?: RunSpec
  /** Input files, listed when the stage opens. Each datum becomes one task. */
  readonly inputs?: InputSpec
  /** Folder for the output files of its tasks, `file://…` or `s3://…`. Each file is published exactly once. */
  readonly outputs?: string
  /** True: skip a datum if the same command has already processed it with the same inputs and settings. Default false. */
  readonly reuse?: boolean
  /**
   * Where the workers for its command run. `local`: in a server with `--commands`, or workers that you start for the
   * queue. `kubernetes`: in pods that Pawl starts. Default local.
   */
  readonly runner?: 'local' | { readonly kubernetes: Omit<KubernetesPlan, 'kind'> }
  /** Payload of its only task. Default null. */
  readonly payload?: unknown
  /** Id of its only task, a UUID. Default: a new one. */
  readonly taskId?: string
  /** Metadata of each of its tasks. */
  readonly taskMetadata?: Record<string, unknown>
  /** Its tasks are not claimed before this time. */
  readonly runAt?: Date | string
  /** Payloads. Each becomes one task. */
  readonly payloads?: readonly unknown[]
  /** True: tasks can be added until the stage is sealed. `untilDone`: until all of its tasks, at least one, have ended. Default false. */
  readonly open?: boolean | 'untilDone'
  /** How many tasks may end without success, as a count or in percent. The stage is then partial instead of failed. Default none. */
  readonly tolerate?: Tolerance
  /** False: let all tasks finish even if too many have already failed. Default true. */
  readonly failFast?: boolean
  /**
   * Effect on the job if the stage fails. `continue`: the job goes on and ends as partial. `failAtOnce`: the job fails as
   * soon as the stage is certain to fail, without waiting for running tasks. Default fail.
   */
  readonly onFailure?: OnFailure
  /** The stage opens only after approval. True: one approver and no time limit. */
  readonly gate?: true | GateSpec
  /** Maximum number of its tasks that are claimed at the same time. Default: no limit. */
  readonly parallelism?: number
  /** Undoes each of its succeeded tasks if the job fails or is cancelled later. */
  readonly compensate?: CompensateSpec
  /** Any JSON for the workers of its tasks. The engine does not read it. Default null. */
  readonly data?: unknown
  /** W3C trace context of its tasks. Default: the job's. */
  readonly traceparent?: string
  /** Any data for people and tools. The engine does not read it. */
  readonly metadata?: Record<string, unknown>
}

/** A command that the tasks of a stage run. */
export interface RunSpec {
  /** Program and arguments, run without a shell. Inputs are in `$PAWL_IN`; outputs go to `$PAWL_OUT`. */
  readonly command: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Environment variables whose values come from the worker: from its environment or its folder of secrets. */
  readonly secrets?: Readonly<Record<string, SecretRef>>
  /** Exit codes after which the task is not retried. Default none. */
  readonly permanentExitCodes?: readonly number[]
  /** For programs with fixed paths: inputs and outputs also appear at `<mount>/<name>` and `<mount>/out`. */
  readonly mount?: string
}

/** Named folders, whose data are combined with each other (a cross product), or a `cross` or `union` of such inputs. */
export type InputSpec =
  | { readonly cross: readonly InputSpec[] }
  | { readonly union: readonly InputSpec[] }
  | { readonly [name: string]: FolderSpec }

/** A folder of input files, divided into data. */
export interface FolderSpec {
  /** Folder: `file://…` or `s3://bucket/…`. `file://./…` is relative to the spec's own file. */
  readonly uri?: string
  /** Instead of `uri`: the output files of an earlier stage. */
  readonly stage?: string
  /** `/`: the whole folder is one datum. `/*`: each of its entries is one. Or any glob, such as `/**\/*.csv`. Default `/*`. */
  readonly glob?: string
}

/** An approval that a stage needs before it opens. */
export interface GateSpec {
  /** Number of approvers required. Default 1. */
  readonly approvers?: number
  /** The stage fails if it is not approved in this time. Default: no limit. */
  readonly timeoutSeconds?: number | null
  /** Question shown to the approver. */
  readonly ask?: string
}

/** The tasks that undo a stage. */
export interface CompensateSpec {
  /** Type of the undo task. Its payload holds the payload and the output of the task that it undoes. */
  readonly task: string
  /** Default: the type of the undo task. */
  readonly queue?: string
}
