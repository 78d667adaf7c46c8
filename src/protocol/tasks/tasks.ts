/** Shapes of tasks and events, and of queries for them. */
import { reasonCodes, steps, type TaskError } from '../../kernel/decide.ts'
import type { ErrorCause } from '../../kernel/error-cause.ts'
import { statesOf } from '../../kernel/lifecycle.ts'
import { taskLifecycle } from '../../kernel/task.ts'
import {
  type Fields,
  field,
  moment,
  orNull as nullable,
  number,
  type OptionsOf,
  oneOf,
  oneOrMore,
  type Static,
  text as shortText,
  typed,
} from '../../schema/check.ts'
import { isId, name, names, priority } from '../../schema/fields.ts'
import { createdFields, type Numbered, numberedFields, type PageQuery, pageFields } from '../call-options.ts'
import { anything, at, figure, flag, id, list, object, orNull, ref, shape, text, whole, words } from '../shapes.ts'
import { type DeadLetterQuery, deadLetterQueryFields } from './dead-letters.ts'
import type { TaskTypeOptions, TaskTypeRecord } from './new-task.ts'

export type { NewTaskItem, RetryOptions, TaskOptions, TaskTypeOptions, TaskTypeRecord } from './new-task.ts'

/** The settings of a type, with its name. */
export interface NamedTaskType extends TaskTypeRecord {
  readonly type: string
}

const taskState = words(...statesOf(taskLifecycle))

const causeFields = {
  message: text,
  name: text,
  stack: text,
  cause: ref('ErrorCause'),
  errors: list(ref('ErrorCause')),
}
/** An error that led to another one, as `cause` or as one of the `errors` of an AggregateError. */
export const errorCause = typed<ErrorCause>({ type: 'object', required: ['message'], properties: causeFields })

const error = typed<TaskError>({
  type: 'object',
  required: ['message'],
  properties: {
    ...causeFields,
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
  /** True: nothing was queued, because this earlier task has the same dedupeKey. */
  deduplicated: flag,
})
/** The answer to a new task. */
export interface QueuedTask extends Static<typeof queuedTask> {}

const deadLetterView = shape(
  {
    reasonCode: words(...reasonCodes),
    lastError: error,
    /** Number of claims in the round that ended here. */
    attempts: whole,
    lastOwner: orNull(text),
    lastLeaseExpiresAt: orNull(at),
    correlationId: orNull(text),
  },
  { step: words(...steps) },
)
/** Why a task is in the dead-letter queue. */
export interface DeadLetterView extends Static<typeof deadLetterView> {}

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
  /** Number of claims in this round. */
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
  /** How it is leased, retried and kept: only the settings of the task or its stage, not of its type. */
  settings: typed<TaskTypeOptions>({ type: 'object' }),
  metadata: object,
  progress: anything,
  checkpoint: anything,
  output: anything,
  partial: flag,
  error: orNull(error),
  deadLetter: orNull(deadLetterView),
})
/** A task. */
export interface TaskView extends Static<typeof taskView> {}

const eventFields = {
  /** entityId:seq, unique among events. For a heartbeat, also its time. */
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
/** An event in the history of a job, stage, task or artifact. */
export interface EventView extends Static<typeof eventView> {}

export const attemptView = shape({
  epoch: whole,
  worker: text,
  claimedAt: at,
  startedAt: orNull(at),
  endedAt: orNull(at),
  outcome: orNull(text),
  cause: orNull(text),
  /** Why the worker skipped, cancelled or released the task, in its words. */
  reason: orNull(text),
  error: orNull(error),
})
/** The history of one lease, derived from the events. */
export interface AttemptView extends Static<typeof attemptView> {}

/** Maximum number of ids in a query. */
const mostIds = 1000

const ownTaskQueryFields = {
  /** Default newest: those come first. */
  order: oneOf(['newest', 'oldest']),
  /** Only these tasks, at most 1,000. */
  ids: field<readonly string[]>(
    { type: 'array', items: { type: 'string', format: 'uuid' }, maxItems: mostIds },
    value =>
      Array.isArray(value) && value.length <= mostIds && value.every(isId)
        ? undefined
        : `be a list of at most ${mostIds} ids`,
  ),
  state: oneOrMore(statesOf(taskLifecycle)),
  jobId: name,
  stageId: name,
  correlationId: name,
} satisfies Fields
export const taskQueryFields = {
  ...deadLetterQueryFields,
  ...createdFields,
  ...numberedFields,
  ...ownTaskQueryFields,
}
/** Query for tasks. */
export interface TaskQuery
  extends DeadLetterQuery,
    Numbered,
    OptionsOf<typeof createdFields>,
    OptionsOf<typeof ownTaskQueryFields> {}

const { jobId: _job, stageId: _stage, ...withoutParents } = taskQueryFields
export const tasksOfFields = withoutParents
/** Tasks of one job or stage. */
export type TasksOfQuery = Omit<TaskQuery, 'jobId' | 'stageId'>

const ownTaskEventFields = {
  /** Include heartbeats. They change no state, have no seq of their own and are kept for a day. */
  pulses: flag,
} satisfies Fields
export const taskEventFields = { ...pageFields, ...ownTaskEventFields }
/** Query for the events of a task. */
export interface TaskEventQuery extends PageQuery, OptionsOf<typeof ownTaskEventFields> {}

export const metadataFields = {
  /** At most 64 KiB per request; null: delete all of it. */
  metadata: nullable(object),
  /** True: replace all metadata instead of merging. */
  replace: flag,
} satisfies Fields
/** A JSON merge patch (RFC 7396): null deletes a key, an object is merged, and any other value replaces the old one. */
export interface MetadataPatch extends OptionsOf<typeof metadataFields> {}

const ownJobPatchFields = { priority } satisfies Fields
export const jobPatchFields = { ...metadataFields, ...ownJobPatchFields }
/** Changes to the metadata and the priority of a job. */
export interface JobPatch extends MetadataPatch, OptionsOf<typeof ownJobPatchFields> {}

/** A page of a list. */
export interface Page<Item> {
  readonly items: Item[]
  /** Cursor of the next page; null: this is the last page. */
  readonly next: string | null
  /** Total number of matches, if requested. */
  readonly total?: number
}

/** Maximum number of latest events in one request. */
export const mostLatest = 1000

export const feedFields = {
  /** End of the last page. Default: before the oldest stored event. */
  cursor: shortText(500),
  /**
   * Instead of `cursor` and `limit`: this many of the latest events, at most 1,000, oldest first. `next` is the end of the
   * feed, and events that are committed afterwards follow it. 0: only the end. With a filter by type, job or time, only
   * the latest tens of thousands of events are searched.
   */
  latest: number({ from: 0, to: mostLatest, whole: true }),
  /** At most 10,000. Default 1,000. */
  limit: number({ from: 1, to: 10_000, whole: true }),
  /** Only events of these types. */
  types: names(100),
  /** Only events of this job, its stages and its tasks. */
  jobId: name,
  /**
   * Only events at this time or later; ISO 8601 text or a Date. A start that a worker reported more than a minute late may
   * be missing from a search by time.
   */
  since: moment,
  /** Only events at this time or earlier. */
  until: moment,
} satisfies Fields
/** Query for the feed of all events. */
export interface FeedQuery extends OptionsOf<typeof feedFields> {}

export const feedEvent = shape({
  ...eventFields,
  /** The cursor right after this event. */
  cursor: text,
})
/** An event of the feed. */
export interface FeedEvent extends Static<typeof feedEvent> {}

export const feedPage = shape({
  items: typed<FeedEvent[]>(list(ref('FeedEvent'))),
  /** Cursor for the next page, also if this one is empty. */
  next: text,
  /** Whether there may be more events already. */
  more: flag,
})
/** A page of the feed. */
export interface FeedPage extends Static<typeof feedPage> {}
