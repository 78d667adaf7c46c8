/** When each part of a job was in which state, for a picture of its time; and what ended badly, by what is alike. */
import type { ReasonCode } from '../../kernel/decide.ts'
import type { StageState } from '../../kernel/stage.ts'
import type { TaskState } from '../../kernel/task.ts'

export interface StageSpan {
  readonly state: StageState
  readonly from: string
  /** Null: it still is. */
  readonly to: string | null
}

export interface AttemptSpan {
  readonly epoch: number
  readonly worker: string | null
  readonly claimedAt: string
  readonly startedAt: string | null
  readonly endedAt: string | null
  /** What the task became; null: it is still held. */
  readonly outcome: TaskState | null
  readonly cause: string | null
}

export interface TimelineView {
  readonly stages: readonly { readonly id: string; readonly name: string; readonly spans: readonly StageSpan[] }[]
  readonly tasks: readonly {
    readonly id: string
    readonly stageId: string
    readonly state: TaskState
    readonly createdAt: string
    readonly attempts: readonly AttemptSpan[]
  }[]
  /** It has more tasks than these. */
  readonly more: boolean
}

export interface TimelineQuery {
  /** Tasks, the oldest of each stage first. At most 1,000. Default 200. */
  readonly limit?: number
}

/** Tasks that ended badly and for the same reason: their messages differ in numbers and ids at most. */
export interface TroubleView {
  readonly state: TaskState
  readonly reasonCode: ReasonCode | null
  readonly type: string
  readonly queue: string
  /** With # where numbers and ids stood. */
  readonly message: string
  readonly count: number
  readonly oldestAt: string
  readonly newestAt: string
  /** The newest of them. */
  readonly taskId: string
}

export interface TroubleQuery {
  readonly jobId?: string
  readonly stageId?: string
  readonly state?: TaskState | readonly TaskState[]
  readonly queue?: string
}
