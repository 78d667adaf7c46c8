/**
 * A job as it will be run: its spec, checked and with every default filled in. What reads specs (spec/) makes it, what
 * submits jobs (engine/) writes it down, and a stage keeps its part as it is.
 */
import type { FilesPlan } from './datum.ts'
import type { Tolerance } from './rollup.ts'
import type { TaskSettings } from './settings.ts'

/** Sealed: it ends when its children have. Open: not before it is sealed. Until done: once it has had a child. */
export type Openness = 'sealed' | 'open' | 'untilDone'

export interface JobPlan {
  /** Chosen by whoever submits it; not kept with the plan, for a clone has another. */
  readonly id?: string
  readonly name: string
  /** Higher first. */
  readonly priority: number
  readonly input: unknown
  readonly metadata: Record<string, unknown> | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  /** What vendors of tracing keep beside it. */
  readonly tracestate?: string
  /** False: it stays `created` until somebody starts it. */
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

/** `failAtOnce`: the job fails when it is decided that the stage does, and not only when the stage has. */
export type OnFailure = 'fail' | 'failAtOnce' | 'continue'

export interface StagePlan {
  readonly name: string
  /** The stages before it, by name: as written, or the one before it in the list. */
  readonly needs: readonly string[]
  /** The mere order of the list never passes a skip on. */
  readonly needsWritten: boolean
  readonly join: Join
  /** CEL; false: it is skipped. */
  readonly when: string | null
  /** CEL; one task for each element of the list. */
  readonly forEach: string | null
  /** CEL; what it gives is the output of the stage, which has no tasks. */
  readonly gives?: string
  /** The type of its tasks; null: it has none of its own, as a mere gate. */
  readonly task: string | null
  readonly queue: string | null
  /** The tasks that it is declared with. */
  readonly payloads: readonly unknown[]
  /** The id of the only one, if it was chosen; not kept with the plan, for a clone has another. */
  readonly taskId?: string
  readonly taskMetadata?: Record<string, unknown>
  /** Before this moment none of its tasks is claimed. */
  readonly runAt?: string
  /** Of a stage whose tasks run a command or take files. */
  readonly files?: FilesPlan
  /** Declared with one task: its output is that task's, not a list. */
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
  /** For whoever works on its tasks. */
  readonly data?: unknown
  /** Its tasks have it, not that of the job. */
  readonly traceparent?: string
  readonly metadata: Record<string, unknown> | null
}

/** The queue that the tasks of a stage lie in. */
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
  /** What is asked of the approver, for people. */
  readonly ask: string | null
}
