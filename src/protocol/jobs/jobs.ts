/** Jobs and stages as they are read, in process and over HTTP. */
import type { JobState } from '../../kernel/job.ts'
import type { Openness } from '../../kernel/plan.ts'
import type { StageState } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'
import type { StageSpec } from '../../spec/job-spec.ts'
import type { Numbered, TaskTypeOptions } from '../tasks/tasks.ts'

/** What the tasks of a stage, or of a whole job, have come to. */
export interface Progress {
  readonly total: number
  readonly good: number
  readonly bad: number
  readonly partial: number
  readonly skipped: number
  /** Ended, of all there are, in whole percent. */
  readonly percent: number
}

export interface StageView {
  readonly id: string
  readonly jobId: string
  readonly name: string
  readonly ordinal: number
  /** Its own work, or the undoing of another stage. */
  readonly kind: 'work' | 'undo'
  readonly state: StageState
  readonly round: number
  readonly seq: number
  readonly task: string | null
  readonly queue: string
  /** What it has to do with files; null: nothing. */
  readonly files: StageFiles | null
  readonly needs: readonly string[]
  readonly open: Openness
  readonly progress: Progress
  /** What a stage without tasks has given; null: its tasks have their own outputs. */
  readonly output: unknown
  /** How it will end, once that is decided, and why; after its end, why it ended so. */
  readonly endsAs: string | null
  readonly cause: string | null
  /** The state in which the bad end of its job found it; null: it ended by itself, or has not. */
  readonly calledOffFrom: StageState | null
  /** While the stage is open: why its workers cannot be started. Afterwards: why it ended badly. */
  readonly error: { readonly message: string } | null
  readonly held: boolean
  readonly gate: { readonly approvers: number; readonly ask: string | null; readonly until: string | null } | null
  readonly data: unknown
  readonly traceparent: string | null
  readonly approvals: readonly { readonly by: string; readonly comment?: string; readonly data?: unknown }[]
  readonly metadata: Record<string, unknown>
  readonly createdAt: string
  readonly changedAt: string
  /** When its first task of this round began; null: none has. */
  readonly startedAt: string | null
  readonly endedAt: string | null
}

export interface StageFiles {
  /** Each of its tasks is a datum: it has files that were found when the stage opened. */
  readonly datums: boolean
  /** The folder that its files go to. */
  readonly outputs: string | null
  /** Who starts its workers; null: whoever does. */
  readonly runner: 'local' | 'kubernetes' | null
}

export interface JobView {
  readonly id: string
  readonly name: string
  readonly state: JobState
  readonly round: number
  readonly seq: number
  readonly priority: number
  readonly open: Openness
  readonly input: unknown
  readonly progress: Progress
  readonly endsAs: string | null
  readonly cause: string | null
  readonly compensated: boolean
  readonly correlationId: string | null
  readonly traceparent: string | null
  readonly tracestate: string | null
  readonly metadata: Record<string, unknown>
  readonly clonedFrom: string | null
  /** The lease of its tasks, unless their stage has another; null: the job says nothing about it. */
  readonly leaseSeconds: number | null
  readonly deadlineAt: string | null
  readonly createdAt: string
  readonly changedAt: string
  /** When its first task of this round began; null: none has. */
  readonly startedAt: string | null
  readonly endedAt: string | null
  readonly stages: readonly StageView[]
}

/** The ids of what a request has added, in its order. */
export interface Added {
  readonly added: readonly string[]
}

/** A stage that is added to a job. Its name is, by default, the type or the queue of its tasks, numbered if it is taken. */
export type AddedStage = Omit<StageSpec, 'name'> & Partial<Pick<StageSpec, 'name'>>

/** How many tasks are in each state; those in which none is are left out. */
export type TaskCounts = Readonly<Partial<Record<TaskState, number>>>

/**
 * `priority`: the highest first. `changed`: what changed last. `longest`: what took, or has taken, the most time. By what
 * changes as it is read, a page may repeat a job or pass one over; by `newest` and `oldest` it never does.
 */
export const jobOrders = ['newest', 'oldest', 'name', 'priority', 'changed', 'longest'] as const
export type JobOrder = (typeof jobOrders)[number]

export interface JobQuery extends Numbered {
  readonly name?: string
  readonly state?: JobState | readonly JobState[]
  readonly correlationId?: string
  /** Submitted at this moment or later; an ISO 8601 text, or a Date. */
  readonly createdFrom?: Date | string
  /** Submitted at this moment or earlier. */
  readonly createdTo?: Date | string
  readonly priorityFrom?: number
  readonly priorityTo?: number
  /** In its name, in any case; or how its id begins; or its correlation id. */
  readonly search?: string
  /** Default newest: those come first. */
  readonly order?: JobOrder
  readonly limit?: number
  readonly cursor?: string
}

/** How it is leased, retried and kept goes before what its stage says of its tasks. */
export interface NewStageTask
  extends Omit<TaskTypeOptions, 'dedupeSeconds' | 'softDeadlineSeconds' | 'hardDeadlineSeconds'> {
  /** Default: the type of the stage, else its queue. */
  readonly type?: string
  readonly payload?: unknown
  readonly metadata?: Record<string, unknown>
  /** W3C trace context. Default: that of its stage, else of the job; null: none. */
  readonly traceparent?: string | null
}
