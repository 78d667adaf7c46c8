/** Options and queries that operations of several nouns share. */

import { reasonCodes, steps } from '../kernel/decide.ts'
import { type Lifecycle, statesOf } from '../kernel/lifecycle.ts'
import { lifecycles } from '../kernel/lifecycles.ts'
import {
  anything,
  type Fields,
  flag,
  moment,
  nested,
  number,
  type OptionsOf,
  oneOf,
  oneOrMore,
  type Static,
  text,
} from '../schema/check.ts'
import { name, reason, traceparent } from '../schema/fields.ts'

const headerFields = {
  /**
   * A request that is repeated with the same key within 24 hours gets its first answer again and has no second
   * effect.
   */
  idempotencyKey: name,
  /** Recorded as the actor in events. */
  actor: name,
  /** W3C trace context of the request. Jobs and tasks that have none of their own inherit it. */
  traceparent,
} satisfies Fields
/** Options of a request that changes something. */
export interface Call extends OptionsOf<typeof headerFields> {}

const remoteCallFields = { ...headerFields, holder: name, asked: anything }
/** Options of every request that changes something. Over HTTP they are in headers, never in a body. */
export const callFields = { ...remoteCallFields, tx: anything }

/** The fields without those of the call. */
export function bodyOf(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !Object.hasOwn(callFields, key)))
}

const everyState = [...new Set(lifecycles.flatMap(lifecycle => statesOf(lifecycle as Lifecycle)))]

const ownControlFields = {
  reason,
  /** Refuse the request unless the job, stage or task is in one of these states. */
  ifState: oneOrMore(everyState),
} satisfies Fields
export const controlFields = { ...callFields, ...ownControlFields }
/** Options of a request that changes the state of a job, stage or task. */
export interface ControlCall extends Call, OptionsOf<typeof ownControlFields> {}

const ownLoseWorkerFields = {
  /** Why the worker died, if known. It becomes the error of its tasks. */
  reason,
} satisfies Fields
export const loseWorkerFields = { ...remoteCallFields, ...ownLoseWorkerFields }
/** Options of `loseWorker`. */
export interface LoseWorkerCall extends Call, OptionsOf<typeof ownLoseWorkerFields> {}

const ownCancelFields = {
  /** Soft: running tasks are told to stop and may finish. Hard: they end at once. Default: soft. */
  mode: oneOf(['soft', 'hard']),
} satisfies Fields
export const cancelFields = { ...controlFields, ...ownCancelFields }
/** Options of a cancellation. */
export interface CancelCall extends ControlCall, OptionsOf<typeof ownCancelFields> {}

const ownRetryJobFields = {
  /** Create a new job with only the tasks that did not succeed, instead of retrying in place. */
  clone: flag,
  /** Name of the clone. Default: the name of the job. */
  name,
} satisfies Fields
export const retryJobFields = { ...controlFields, ...ownRetryJobFields }
/** Options of `retryJob`. */
export interface RetryJobCall extends ControlCall, OptionsOf<typeof ownRetryJobFields> {}

export const fence = { epoch: number({ from: 0, to: 2 ** 31 - 1, whole: true }) } satisfies Fields
/** With an epoch, the request is made in the name of that lease and refused once the lease is lost. */
export interface Fenced extends OptionsOf<typeof fence> {}
export const cancelTaskFields = { ...cancelFields, ...fence }

const ownDeadLetterFields = { reasonCode: oneOf(reasonCodes), step: oneOf(steps) } satisfies Fields
const ownDeadLetter = nested(ownDeadLetterFields, ['reasonCode'])
export const deadLetterFields = { ...controlFields, ...ownDeadLetterFields, ...fence }
/** Options of `deadLetter`: the reason is required. */
export interface DeadLetterCall extends ControlCall, Fenced, Static<typeof ownDeadLetter> {}

const ownApproveFields = {
  comment: reason,
  /** Data entered by the approver. Later stages can read it. */
  data: anything,
} satisfies Fields
export const approveFields = { ...controlFields, ...ownApproveFields }
/** Options of `approve` and `reject`. */
export interface ApproveCall extends ControlCall, OptionsOf<typeof ownApproveFields> {}

export const endFields = {
  /** Wait up to this long for the end, and answer at once when it comes. At most 60. Default 0: answer now. */
  waitSeconds: number({ from: 0, to: 60 }),
} satisfies Fields
/** How long a read waits for the end of a task or a job. */
export interface EndQuery extends OptionsOf<typeof endFields> {}

const limit = number({ from: 1, to: 1000, whole: true })
export const pageFields = {
  /** At most 1,000. Default 100. A page of large items has fewer, and `next` leads to the others. */
  limit,
  cursor: text(500),
} satisfies Fields
/** Selects a page of a list. */
export interface PageQuery extends OptionsOf<typeof pageFields> {}

/** For lists sorted by name. The cursor holds a name, and each of its characters may take eight in the cursor. */
export const namedPageFields = { limit, cursor: text(2000) } satisfies Fields

/** For pages by number. If the list changes in between, items may be repeated or missed. */
export const numberedFields = {
  /** Number of items to skip. Default 0. */
  offset: number({ from: 0, to: 1_000_000_000, whole: true }),
  /** True: the answer includes the total number of matches. */
  total: flag,
} satisfies Fields
/** Selects a page by number instead of a cursor. */
export interface Numbered extends OptionsOf<typeof numberedFields> {}

export const createdFields = {
  /** Created at this time or later; ISO 8601 text or a Date. */
  createdFrom: moment,
  /** Created at this time or earlier. */
  createdTo: moment,
} satisfies Fields
