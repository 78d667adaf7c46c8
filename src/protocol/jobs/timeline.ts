/** When each part of a job was in which state, for a picture of its time; and what ended badly, by what is alike. */
import { reasonCodes } from '../../kernel/decide.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { stageLifecycle } from '../../kernel/stage.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import type { Static } from '../../schema/check.ts'
import { at, flag, id, list, orNull, shape, text, whole, words } from '../shapes.ts'

const taskState = words(...statesOf(taskLifecycle))

const stageSpan = shape({
  state: words(...statesOf(stageLifecycle)),
  from: at,
  /** Null: it still is. */
  to: orNull(at),
})

const attemptSpan = shape({
  epoch: whole,
  worker: orNull(text),
  claimedAt: at,
  startedAt: orNull(at),
  endedAt: orNull(at),
  /** What the task became; null: it is still held. */
  outcome: orNull(taskState),
  cause: orNull(text),
})
export type AttemptSpan = Static<typeof attemptSpan>

export const timelineView = shape({
  stages: list(shape({ id, name: text, spans: list(stageSpan) })),
  tasks: list(shape({ id, stageId: id, state: taskState, createdAt: at, attempts: list(attemptSpan) })),
  /** It has more tasks than these. */
  more: flag,
})
export type TimelineView = Static<typeof timelineView>

export interface TimelineQuery {
  /** Tasks, the oldest of each stage first. At most 1,000. Default 200. */
  readonly limit?: number
}

export const troubleView = shape({
  state: taskState,
  reasonCode: orNull(words(...reasonCodes)),
  type: text,
  queue: text,
  /** With # where numbers and ids stood. */
  message: text,
  count: whole,
  oldestAt: at,
  newestAt: at,
  /** The newest of them. */
  taskId: id,
})
/** Tasks that ended badly and for the same reason: their messages differ in numbers and ids at most. */
export type TroubleView = Static<typeof troubleView>

export interface TroubleQuery {
  readonly jobId?: string
  readonly stageId?: string
  readonly state?: TaskState | readonly TaskState[]
  readonly queue?: string
}
