/** Shapes of jobs and stages. */
import { jobLifecycle } from '../../kernel/job.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import {
  type Fields,
  orNull as nullable,
  type OptionsOf,
  oneOf,
  oneOrMore,
  type Static,
  text as shortText,
  typed,
} from '../../schema/check.ts'
import { name, priority, settingFields, traceparent } from '../../schema/fields.ts'
import type { StageSpec } from '../../spec/job-spec.ts'
import { createdFields, type Numbered, numberedFields, type PageQuery, pageFields } from '../call-options.ts'
import { anything, at, figure, flag, id, list, object, orNull, ref, shape, text, whole, words } from '../shapes.ts'

const stageState = words(...statesOf(stageLifecycle))
const openness = words('sealed', 'open', 'untilDone')

const progress = shape({
  total: whole,
  good: whole,
  bad: whole,
  partial: whole,
  skipped: whole,
  /** Share of ended tasks in whole percent. */
  percent: whole,
})
/** Outcomes of the tasks of a stage or a whole job. */
export interface Progress extends Static<typeof progress> {}

const stageFiles = shape({
  /** Each of its tasks is a datum, with files that were listed when the stage opened. */
  datums: flag,
  /** Folder for its output files. */
  outputs: orNull(text),
  /** The component that starts its workers; null: Pawl does not start any. */
  runner: orNull(words('local', 'kubernetes')),
})
/** How a stage uses files. */
export interface StageFiles extends Static<typeof stageFiles> {}

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
  /** Regular work, or undoing another stage. */
  kind: words('work', 'undo'),
  state: stageState,
  round: whole,
  seq: whole,
  task: orNull(text),
  queue: text,
  /** Its use of files; null: none. */
  files: orNull(stageFiles),
  needs: list(text),
  open: openness,
  progress,
  /** Output of a stage without tasks; null: its tasks have their own outputs. */
  output: anything,
  /** The outcome, once it is decided. `cause` is the reason for it, also after the end. */
  endsAs: orNull(text),
  cause: orNull(text),
  /** Its state when the failure of its job stopped it; null: it was not stopped. */
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
  /** Start of its first task in this round; null: none has started. */
  startedAt: orNull(at),
  endedAt: orNull(at),
}
export const stageView = shape(stageFields)
/** A stage with its progress. */
export interface StageView extends Static<typeof stageView> {}

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
  /** Lease duration of its tasks, unless their stage sets another; null: not set by the job. */
  leaseSeconds: orNull(figure),
  deadlineAt: orNull(at),
  createdAt: at,
  changedAt: at,
  /** Start of its first task in this round; null: none has started. */
  startedAt: orNull(at),
  endedAt: orNull(at),
  stages: list(ref<StageView>('Stage')),
}
export const jobView = shape(jobFields)
/** A job with its stages and progress. */
export interface JobView extends Static<typeof jobView> {}

export const stageJob = shape({
  id,
  name: text,
  input: anything,
  round: whole,
  metadata: object,
  correlationId: orNull(text),
  /** The name of the stage. */
  stage: text,
})
/** The job of a stage, as its workers see it. */
export interface StageJob extends Static<typeof stageJob> {}

const added = {
  added: list(id),
}
const addedShape = shape(added)
/** Ids of the stages or tasks that a request added, in its order. */
export interface Added extends Static<typeof addedShape> {}

export const stageWithAdded = shape({ ...stageFields, ...added })
export const jobWithAdded = shape({ ...jobFields, ...added })

/** A stage that is added to a job. Its name is, by default, the type or the queue of its tasks, numbered if it is taken. */
export type AddedStage = Omit<StageSpec, 'name'> & Partial<Pick<StageSpec, 'name'>>

export const taskCounts = typed<Readonly<Partial<Record<TaskState, number>>>>({
  type: 'object',
  propertyNames: words(...statesOf(taskLifecycle)),
  additionalProperties: whole,
})
/** Number of tasks in each state. States without tasks are omitted. */
export type TaskCounts = Static<typeof taskCounts>

/**
 * `priority`: highest first. `changed`: last change first. `longest`: longest duration so far first. If the sort key
 * changes between pages, a job may be repeated or missed; `newest` and `oldest` never do that.
 */
export const jobOrders = ['newest', 'oldest', 'name', 'priority', 'changed', 'longest'] as const
/** Order of a list of jobs. */
export type JobOrder = (typeof jobOrders)[number]

const ownJobQueryFields = {
  order: oneOf(jobOrders),
  name,
  /** Part of its name, ignoring case, the start of its id, or its correlation id. */
  search: shortText(200),
  state: oneOrMore(statesOf(jobLifecycle)),
  correlationId: name,
  priorityFrom: priority,
  priorityTo: priority,
} satisfies Fields
export const jobQueryFields = { ...pageFields, ...createdFields, ...numberedFields, ...ownJobQueryFields }
/** Query for jobs. */
export interface JobQuery
  extends PageQuery,
    Numbered,
    OptionsOf<typeof createdFields>,
    OptionsOf<typeof ownJobQueryFields> {}

const ownStageQueryFields = {
  state: oneOrMore(statesOf(stageLifecycle)),
  jobId: name,
  queue: name,
} satisfies Fields
export const stageQueryFields = { ...pageFields, ...numberedFields, ...ownStageQueryFields }
/** Query for stages. */
export interface StageQuery extends PageQuery, Numbered, OptionsOf<typeof ownStageQueryFields> {}

const ownStageTaskFields = {
  /** Default: the type of the stage, else its queue. */
  type: name,
  payload: anything,
  metadata: object,
  /** W3C trace context. Default: that of its stage, else of the job; null: none. */
  traceparent: nullable(traceparent),
} satisfies Fields
export const stageTaskFields = { ...settingFields, ...ownStageTaskFields }
/** A task that is added to a stage. Its settings for leases, retries and retention override those of the stage. */
export interface NewStageTask extends OptionsOf<typeof settingFields>, OptionsOf<typeof ownStageTaskFields> {}
