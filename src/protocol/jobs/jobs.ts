/** Jobs and stages as they are read, in process and over HTTP. */
import { type JobState, jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { type Static, typed } from '../../schema/check.ts'
import type { StageSpec } from '../../spec/job-spec.ts'
import { anything, at, figure, flag, id, list, object, orNull, ref, shape, text, whole, words } from '../shapes.ts'
import type { Numbered, TaskTypeOptions } from '../tasks/tasks.ts'

const stageState = words(...statesOf(stageLifecycle))
const openness = words('sealed', 'open', 'untilDone')

export const progress = shape({
  total: whole,
  good: whole,
  bad: whole,
  partial: whole,
  skipped: whole,
  /** Ended, of all there are, in whole percent. */
  percent: whole,
})
/** What the tasks of a stage, or of a whole job, have come to. */
export type Progress = Static<typeof progress>

export const stageFiles = shape({
  /** Each of its tasks is a datum: it has files that were found when the stage opened. */
  datums: flag,
  /** The folder that its files go to. */
  outputs: orNull(text),
  /** Who starts its workers; null: whoever does. */
  runner: orNull(words('local', 'kubernetes')),
})
export type StageFiles = Static<typeof stageFiles>

const gateView = typed<{ readonly approvers: number; readonly ask: string | null; readonly until: string | null }>({
  type: 'object',
  properties: { approvers: whole, ask: orNull(text), until: orNull(at) },
})
const approvalView = typed<{ readonly by: string; readonly comment?: string; readonly data?: unknown }>({
  type: 'object',
  required: ['by'],
  properties: { by: text, comment: text, data: anything },
})

const stageFields = {
  id,
  jobId: id,
  name: text,
  ordinal: whole,
  /** Its own work, or the undoing of another stage. */
  kind: words('work', 'undo'),
  state: stageState,
  round: whole,
  seq: whole,
  task: orNull(text),
  queue: text,
  /** What it has to do with files; null: nothing. */
  files: orNull(stageFiles),
  needs: list(text),
  open: openness,
  progress,
  /** What a stage without tasks has given; null: its tasks have their own outputs. */
  output: anything,
  /** How it will end, once that is decided, and why; after its end, why it ended so. */
  endsAs: orNull(text),
  cause: orNull(text),
  /** The state in which the bad end of its job found it; null: it ended by itself, or has not. */
  calledOffFrom: orNull(stageState),
  /** While the stage is open: why its workers cannot be started. Afterwards: why it ended badly. */
  error: orNull(
    typed<{ readonly message: string }>({
      type: 'object',
      required: ['message'],
      properties: { message: text },
    }),
  ),
  held: flag,
  gate: orNull(gateView),
  data: anything,
  traceparent: orNull(text),
  approvals: list(approvalView),
  metadata: object,
  createdAt: at,
  changedAt: at,
  /** When its first task of this round began; null: none has. */
  startedAt: orNull(at),
  endedAt: orNull(at),
}
export const stageView = shape(stageFields)
export type StageView = Static<typeof stageView>

const jobFields = {
  id,
  name: text,
  state: words(...statesOf(jobLifecycle)),
  round: whole,
  seq: whole,
  priority: whole,
  open: openness,
  input: anything,
  progress,
  endsAs: orNull(text),
  cause: orNull(text),
  compensated: flag,
  correlationId: orNull(text),
  traceparent: orNull(text),
  tracestate: orNull(text),
  metadata: object,
  clonedFrom: orNull(id),
  /** The lease of its tasks, unless their stage has another; null: the job says nothing about it. */
  leaseSeconds: orNull(figure),
  deadlineAt: orNull(at),
  createdAt: at,
  changedAt: at,
  /** When its first task of this round began; null: none has. */
  startedAt: orNull(at),
  endedAt: orNull(at),
  stages: list(ref<StageView>('Stage')),
}
export const jobView = shape(jobFields)
export type JobView = Static<typeof jobView>

const added = {
  added: list(id),
}
const addedShape = shape(added)
/** The ids of what a request has added, in its order. */
export type Added = Static<typeof addedShape>

export const stageWithAdded = shape({ ...stageFields, ...added })
export const jobWithAdded = shape({ ...jobFields, ...added })

/** A stage that is added to a job. Its name is, by default, the type or the queue of its tasks, numbered if it is taken. */
export type AddedStage = Omit<StageSpec, 'name'> & Partial<Pick<StageSpec, 'name'>>

export const taskCounts = typed<Readonly<Partial<Record<TaskState, number>>>>({
  type: 'object',
  propertyNames: words(...statesOf(taskLifecycle)),
  additionalProperties: whole,
})
/** How many tasks are in each state; those in which none is are left out. */
export type TaskCounts = Static<typeof taskCounts>

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
