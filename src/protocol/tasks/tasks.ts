/** What may be asked about tasks, and what is answered: the same in process and over HTTP. */
import { type ReasonCode, reasonCodes, steps, type TaskError } from '../../kernel/decide.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { type Static, typed } from '../../schema/check.ts'
import { anything, at, figure, flag, id, list, object, orNull, ref, shape, text, whole, words } from '../shapes.ts'
import type { TaskTypeOptions, TaskTypeRecord } from './new-task.ts'

export type { NewTaskItem, RetryOptions, TaskOptions, TaskTypeOptions, TaskTypeRecord } from './new-task.ts'

export interface NamedTaskType extends TaskTypeRecord {
  readonly type: string
}

const taskState = words(...statesOf(taskLifecycle))

const error = typed<TaskError>({
  type: 'object',
  required: ['message'],
  properties: {
    message: text,
    name: text,
    stack: text,
    output: text,
    permanent: flag,
    retryInSeconds: figure,
    reasonCode: text,
    step: text,
  },
})

export const queuedTask = shape({
  id,
  state: taskState,
  /** True: an earlier task stands for the same dedupeKey, and this is it; nothing was queued. */
  deduplicated: flag,
})
export type QueuedTask = Static<typeof queuedTask>

const deadLetterView = shape(
  {
    reasonCode: words(...reasonCodes),
    lastError: error,
    /** How often it was claimed in the round that led here. */
    attempts: whole,
    lastOwner: orNull(text),
    lastLeaseExpiresAt: orNull(at),
    correlationId: orNull(text),
  },
  { step: words(...steps) },
)
export type DeadLetterView = Static<typeof deadLetterView>

export const taskView = shape({
  id,
  queue: text,
  type: text,
  state: taskState,
  priority: whole,
  round: whole,
  epoch: whole,
  seq: whole,
  failures: whole,
  losses: whole,
  /** How often it was claimed in this round. */
  tries: whole,
  runAt: at,
  createdAt: at,
  changedAt: at,
  startedAt: orNull(at),
  endedAt: orNull(at),
  leaseUntil: orNull(at),
  expireAt: orNull(at),
  keepUntil: orNull(at),
  cancelRequestedAt: orNull(at),
  owner: orNull(text),
  jobId: orNull(id),
  stageId: orNull(id),
  dedupeKey: orNull(text),
  correlationId: orNull(text),
  traceparent: orNull(text),
  payload: anything,
  /** How it is leased, retried and kept, as far as it was said of it or its stage; its type and the defaults say the rest. */
  settings: typed<TaskTypeOptions>({ type: 'object' }),
  metadata: object,
  progress: anything,
  checkpoint: anything,
  output: anything,
  partial: flag,
  error: orNull(error),
  deadLetter: orNull(deadLetterView),
})
export type TaskView = Static<typeof taskView>

const eventFields = {
  /** entityId:seq, which no other event has; of a heartbeat also its moment. */
  id: text,
  entity: words('job', 'stage', 'task', 'artifact'),
  entityId: id,
  jobId: orNull(id),
  seq: whole,
  type: text,
  from: orNull(text),
  to: text,
  ts: at,
  actor: text,
  cause: orNull(text),
  correlationId: orNull(text),
  traceId: orNull(text),
  epoch: whole,
  payload: object,
  version: typed<1>({ type: 'integer', const: 1 }),
}
export const eventView = shape(eventFields)
export type EventView = Static<typeof eventView>

export const attemptView = shape({
  epoch: whole,
  worker: text,
  claimedAt: at,
  startedAt: orNull(at),
  endedAt: orNull(at),
  outcome: orNull(text),
  cause: orNull(text),
  error: orNull(error),
})
/** What happened under one lease: a view over the events. */
export type AttemptView = Static<typeof attemptView>

/** For whoever turns pages by their number: what changes in between may be seen twice, or not at all. */
export interface Numbered {
  /** So many are passed over. Default 0. */
  readonly offset?: number
  /** True: the answer says how many there are in all. */
  readonly total?: boolean
}

export interface TaskQuery extends Numbered {
  /** Only these, at most 1,000. */
  readonly ids?: readonly string[]
  readonly jobId?: string
  readonly stageId?: string
  readonly queue?: string
  readonly type?: string
  readonly state?: TaskState | readonly TaskState[]
  readonly correlationId?: string
  /** Only dead letters of this reason. */
  readonly reasonCode?: ReasonCode
  /** Only those whose error says this; other numbers and ids in it are taken for the same. */
  readonly message?: string
  /** Made at this moment or later; an ISO 8601 text, or a Date. */
  readonly createdFrom?: Date | string
  /** Made at this moment or earlier. */
  readonly createdTo?: Date | string
  /** Default newest: those come first. */
  readonly order?: 'newest' | 'oldest'
  /** At most 1,000. Default 100. */
  readonly limit?: number
  readonly cursor?: string
}

/** A JSON merge patch (RFC 7396): a key that is null goes, one that is an object is merged, and any other is replaced. */
export interface MetadataPatch {
  /** At most 64 KiB at a time; null: all of it goes. */
  readonly metadata?: Record<string, unknown> | null
  /** True: it is no patch, but takes the place of all that is there. */
  readonly replace?: boolean
}

export interface JobPatch extends MetadataPatch {
  readonly priority?: number
}

export interface Page<Item> {
  readonly items: Item[]
  /** The cursor of the next page; null: this was the last. */
  readonly next: string | null
  /** How many there are in all, where that was asked for. */
  readonly total?: number
}

export interface FeedQuery {
  /** Where the last page ended. Default: the oldest event that is kept. */
  readonly cursor?: string
  /**
   * In place of a cursor and a limit: so many of the latest events, at most 1,000, oldest first, and as `next` the end of
   * the feed; 0: only the end. What is committed afterwards comes behind it. Of what was asked for by type, job or time,
   * only the latest tens of thousands of events are looked through.
   */
  readonly latest?: number
  /** At most 10,000. Default 1,000. */
  readonly limit?: number
  /** Only events of these types. */
  readonly types?: readonly string[]
  /** Only events of this job, its stages and its tasks. */
  readonly jobId?: string
  /**
   * Only events that happened at this moment or later; an ISO 8601 text, or a Date. A start that a worker reported more
   * than a minute late may be missing from a search by time.
   */
  readonly since?: Date | string
  /** Only events that happened at this moment or earlier. */
  readonly until?: Date | string
}

export const feedEvent = shape({
  ...eventFields,
  /** The cursor right behind this event. */
  cursor: text,
})
export type FeedEvent = Static<typeof feedEvent>

export const feedPage = shape({
  items: typed<FeedEvent[]>(list(ref('FeedEvent'))),
  /** Where to go on; also when there was nothing. */
  next: text,
  /** There may be more already; false: this is the end, for now. */
  more: flag,
})
export type FeedPage = Static<typeof feedPage>
