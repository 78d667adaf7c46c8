/**
 * A job as it will run: a validated spec with all defaults filled in. spec/ creates it, engine/ stores it, and each
 * stage keeps its part unchanged.
 */
import type { FilesPlan } from './datum.ts'
import type { Tolerance } from './rollup.ts'
import type { TaskSettings } from './settings.ts'

/**
 * `sealed`: ends when its children have ended. `open`: not before it is sealed. `untilDone`: once it has had a child.
 */
export type Openness = 'sealed' | 'open' | 'untilDone'

export interface JobPlan {
  /** The id that the submitter chose. Not stored with the plan, because a clone gets another id. */
  readonly id?: string
  readonly name: string
  /** Higher values run first. */
  readonly priority: number
  readonly input: unknown
  readonly metadata: Record<string, unknown> | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** Vendor-specific trace state (W3C tracestate). */
  readonly tracestate?: string
  /** If false, the job stays `created` until it is started. */
  readonly start: boolean
  readonly open: Openness
  readonly deadlineSeconds: number | null
  readonly staleSeconds: number | null
  readonly softDeadlineSeconds: number | null
  readonly hardDeadlineSeconds: number | null
  /** Default for the tasks of its stages. */
  readonly leaseSeconds?: number
  readonly stages: readonly StagePlan[]
}

export type Join = 'all' | 'any' | 'taken' | 'done'

/** With `failAtOnce`, the job fails as soon as the failure of the stage is certain, before the stage has ended. */
export type OnFailure = 'fail' | 'failAtOnce' | 'continue'

export interface StagePlan {
  readonly name: string
  /** The stages that must end first: those that were named, or else the previous stage in the list. */
  readonly needs: readonly string[]
  /** Whether `needs` was given explicitly. A need that comes from the order of the list never passes a skip on. */
  readonly needsWritten: boolean
  readonly join: Join
  /** CEL expression; if false, the stage is skipped. */
  readonly when: string | null
  /** CEL expression; creates one task per element of the list. */
  readonly forEach: string | null
  /** CEL expression; its value is the output of the stage, which has no tasks. */
  readonly gives?: string
  /** The type of its tasks; null if it has none of its own, such as a stage that is only a gate. */
  readonly task: string | null
  readonly queue: string | null
  /** The payloads of the tasks that the stage is declared with. */
  readonly payloads: readonly unknown[]
  /** The chosen id of its only task. Not stored with the plan, because a clone gets another id. */
  readonly taskId?: string
  readonly taskMetadata?: Record<string, unknown>
  /** Its tasks are not claimed before this time. */
  readonly runAt?: string
  /** Set for stages whose tasks run a command or take files. */
  readonly files?: FilesPlan
  /** The stage is declared with one task, so its output is that of the task and not a list. */
  readonly single: boolean
  readonly open: Openness
  readonly tolerate: Tolerance
  readonly failFast: boolean
  readonly onFailure: OnFailure
  readonly gate: GatePlan | null
  readonly parallelism: number | null
  readonly compensate: { readonly task: string; readonly queue: string | null } | null
  /** How its tasks are leased, retried and kept. */
  readonly settings: Partial<TaskSettings>
  /** Free-form data for the workers of its tasks. */
  readonly data?: unknown
  /** The trace of its tasks, instead of the job's. */
  readonly traceparent?: string
  readonly metadata: Record<string, unknown> | null
}

/** The queue of a stage's tasks. */
export function queueOfStage({
  name,
  plan,
}: {
  readonly name: string
  readonly plan: Pick<StagePlan, 'queue' | 'task'>
}) {
  return plan.queue ?? plan.task ?? name
}

export interface GatePlan {
  readonly approvers: number
  readonly timeoutSeconds: number | null
  /** The question shown to the approver. */
  readonly ask: string | null
}
