/** Options and queries of operations that are used across nouns. */

import type { ReasonCode, Step } from '../kernel/decide.ts'
import type { StageState } from '../kernel/stage.ts'
import type { Numbered, TaskQuery } from './tasks/tasks.ts'

/** Options of a request that changes something. */
export interface Call {
  /** A request that is repeated with the same key within 24 hours gets its first answer again and has no second effect. */
  readonly idempotencyKey?: string
  /** Recorded as the actor in events. */
  readonly actor?: string
  /** W3C trace context of the request. Jobs and tasks that have none of their own inherit it. */
  readonly traceparent?: string
}

export interface ControlCall extends Call {
  readonly reason?: string
  /** Refuse the request unless the job, stage or task is in one of these states. */
  readonly ifState?: string | readonly string[]
}

export interface LoseWorkerCall extends Call {
  /** Why the worker died, if known. It becomes the error of its tasks. */
  readonly reason?: string
}

export interface CancelCall extends ControlCall {
  /** Soft: running tasks are told to stop and may finish. Hard: they end at once. Default: soft. */
  readonly mode?: 'soft' | 'hard'
}

export interface RetryJobCall extends ControlCall {
  /** Create a new job with only the tasks that did not succeed, instead of retrying in place. */
  readonly clone?: boolean
  /** Name of the clone. Default: the name of the job. */
  readonly name?: string
}

/** With an epoch, the request is made in the name of that lease and refused once the lease is lost. */
export interface Fenced {
  readonly epoch?: number
}

export interface DeadLetterCall extends ControlCall, Fenced {
  readonly reasonCode: ReasonCode
  readonly step?: Step
}

export interface ApproveCall extends ControlCall {
  readonly comment?: string
  /** Data entered by the approver. Later stages can read it. */
  readonly data?: unknown
}

export interface PageQuery {
  readonly limit?: number
  readonly cursor?: string
}

export interface TaskTypeQuery extends PageQuery {
  /** Only the type of this name. If it has no settings, the page is empty. */
  readonly type?: string
}

export interface WorkerQuery extends PageQuery {
  /** Only workers that contacted the server within this time. Default: 60. */
  readonly withinSeconds?: number
}

export interface TaskEventQuery extends PageQuery {
  /** Include heartbeats. They change no state, have no seq of their own and are kept for a day. */
  readonly pulses?: boolean
}

export interface StageQuery extends PageQuery, Numbered {
  readonly state?: StageState | readonly StageState[]
  readonly jobId?: string
  readonly queue?: string
}

/** Tasks of one job or stage. */
export type TasksOfQuery = Omit<TaskQuery, 'jobId' | 'stageId'>
