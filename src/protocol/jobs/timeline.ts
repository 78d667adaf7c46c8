/** The states of a job's parts over time, and unsuccessful tasks grouped by similar errors. */
import { reasonCodes } from '../../kernel/decide.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import { type Fields, type OptionsOf, oneOrMore, type Static } from '../../schema/check.ts'
import { name } from '../../schema/fields.ts'
import { pageFields } from '../call-options.ts'
import { at, flag, id, list, orNull, shape, text, whole, words } from '../shapes.ts'

const taskState = words(...statesOf(taskLifecycle))

const stageSpan = shape({
  state: words(...statesOf(stageLifecycle)),
  from: at,
  /** Null: the state has not ended. */
  to: orNull(at),
})

const attemptSpan = shape({
  epoch: whole,
  worker: orNull(text),
  claimedAt: at,
  startedAt: orNull(at),
  endedAt: orNull(at),
  /** Resulting state of the task; null: the lease is still held. */
  outcome: orNull(taskState),
  cause: orNull(text),
})
/** The times of one attempt. */
export interface AttemptSpan extends Static<typeof attemptSpan> {}

export const timelineView = shape({
  stages: list(shape({ id, name: text, spans: list(stageSpan) })),
  tasks: list(shape({ id, stageId: id, state: taskState, createdAt: at, attempts: list(attemptSpan) })),
  /** Whether the job has more tasks than these. */
  more: flag,
})
/** The states of the stages of a job, and the attempts of its tasks, over time. */
export interface TimelineView extends Static<typeof timelineView> {}

export const timelineFields = {
  /** Number of tasks, the oldest of each stage first. At most 1,000. Default 200. */
  limit: pageFields.limit,
} satisfies Fields
/** Query for a timeline. */
export interface TimelineQuery extends OptionsOf<typeof timelineFields> {}

export const troubleView = shape({
  state: taskState,
  reasonCode: orNull(words(...reasonCodes)),
  type: text,
  queue: text,
  /** With # in place of numbers and ids. */
  message: text,
  count: whole,
  oldestAt: at,
  newestAt: at,
  /** The newest of these tasks. */
  taskId: id,
})
/** Unsuccessful tasks with the same reason, whose messages differ only in numbers and ids. */
export interface TroubleView extends Static<typeof troubleView> {}

export const troubleQueryFields = {
  jobId: name,
  stageId: name,
  state: oneOrMore(statesOf(taskLifecycle)),
  queue: name,
} satisfies Fields
/** Query for groups of unsuccessful tasks. */
export interface TroubleQuery extends OptionsOf<typeof troubleQueryFields> {}
