/** What may be asked about tasks, and what is answered: the same in process and over HTTP. */
import type { ReasonCode, Step, TaskError } from '../../kernel/decide.ts'
import type { TaskState } from '../../kernel/task.ts'

export interface RetryOptions {
  /** Failures a task may have, the first try included. Default 3. */
  readonly attempts?: number
  /** Lost workers a task may have; null: each counts as a failure, so that a task is tried `attempts` times in all. Default 3. */
  readonly losses?: number | null
  /** Default 0.5. */
  readonly delaySeconds?: number
  /** Default 2. */
  readonly factor?: number
  /** Default 60. */
  readonly maxSeconds?: number
  /** Default true. */
  readonly jitter?: boolean
}

export interface TaskTypeOptions {
  readonly retry?: RetryOptions
  /** Default 60. */
  readonly leaseSeconds?: number
  /** Default 10; null: none. */
  readonly heartbeatSeconds?: number | null
  /** Default: no limit. */
  readonly timeoutSeconds?: number | null
  /** Default 30. */
  readonly graceSeconds?: number
  /** Default: never. */
  readonly expireInSeconds?: number | null
  /** How long an ended task is kept, unless it is a dead letter. Default 14 days. */
  readonly keepSeconds?: number
  /** How long a dead letter is kept. Default null: until somebody redrives or deletes it. */
  readonly keepDeadLetterSeconds?: number | null
  /** How long an ended task still stands for its dedupeKey. Default 0. */
  readonly dedupeSeconds?: number
  /** Not done so long after it was queued, it is late: it goes before all work that is not. Default: never late. */
  readonly softDeadlineSeconds?: number | null
  /** Too late: it goes before all work that is only late. In a job both are said of the job. Default: never. */
  readonly hardDeadlineSeconds?: number | null
  /** Default 'exhausted'. */
  readonly deadLetter?: 'exhausted' | 'never'
}

/** All that is known of a type. */
export interface TaskTypeRecord extends TaskTypeOptions {
  /** What its payloads look like, as JSON Schema. Left out, what was said before still holds. */
  readonly payloadSchema?: Readonly<Record<string, unknown>> | null
}

export interface NamedTaskType extends TaskTypeRecord {
  readonly type: string
}

export interface TaskOptions extends TaskTypeOptions {
  /** A UUID. Lists are in the order of ids, and ids of its own making in the order of time. Default: a new one. */
  readonly id?: string
  /** Default: the type. */
  readonly queue?: string
  /** Higher first. Default 0. */
  readonly priority?: number
  /** Not before this moment, by the database's clock. */
  readonly runAt?: Date | string
  /** Not before so many seconds from now. */
  readonly runInSeconds?: number
  readonly keepUntil?: Date | string
  /** While a task of this queue and key has not ended, another is not queued: the answer is the first one. */
  readonly dedupeKey?: string
  readonly correlationId?: string
  /** W3C trace context. */
  readonly traceparent?: string
  readonly metadata?: Record<string, unknown>
}

export interface NewTaskItem extends TaskOptions {
  readonly type: string
  readonly payload?: unknown
}

export interface QueuedTask {
  readonly id: string
  readonly state: TaskState
  /** True: an earlier task stands for the same dedupeKey, and this is it; nothing was queued. */
  readonly deduplicated: boolean
}

export interface TaskView {
  readonly id: string
  readonly queue: string
  readonly type: string
  readonly state: TaskState
  readonly priority: number
  readonly round: number
  readonly epoch: number
  readonly seq: number
  readonly failures: number
  readonly losses: number
  /** How often it was claimed in this round. */
  readonly tries: number
  readonly runAt: string
  readonly createdAt: string
  readonly changedAt: string
  readonly startedAt: string | null
  readonly endedAt: string | null
  readonly leaseUntil: string | null
  readonly expireAt: string | null
  readonly keepUntil: string | null
  readonly cancelRequestedAt: string | null
  readonly owner: string | null
  readonly jobId: string | null
  readonly stageId: string | null
  readonly dedupeKey: string | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  readonly payload: unknown
  /** How it is leased, retried and kept, as far as it was said of it or its stage; its type and the defaults say the rest. */
  readonly settings: TaskTypeOptions
  readonly metadata: Record<string, unknown>
  readonly progress: unknown
  readonly checkpoint: unknown
  readonly output: unknown
  readonly partial: boolean
  readonly error: TaskError | null
  readonly deadLetter: DeadLetterView | null
}

export interface DeadLetterView {
  readonly reasonCode: ReasonCode
  readonly step?: Step
  readonly lastError: TaskError
  /** How often it was claimed in the round that led here. */
  readonly attempts: number
  readonly lastOwner: string | null
  readonly lastLeaseExpiresAt: string | null
  readonly correlationId: string | null
}

export interface EventView {
  /** entityId:seq, which no other event has; of a heartbeat also its moment. */
  readonly id: string
  readonly entity: 'job' | 'stage' | 'task' | 'artifact'
  readonly entityId: string
  readonly jobId: string | null
  readonly seq: number
  readonly type: string
  readonly from: string | null
  readonly to: string
  readonly ts: string
  readonly actor: string
  readonly cause: string | null
  readonly correlationId: string | null
  readonly traceId: string | null
  readonly epoch: number
  readonly payload: Record<string, unknown>
  readonly version: 1
}

/** What happened under one lease: a view over the events. */
export interface AttemptView {
  readonly epoch: number
  readonly worker: string
  readonly claimedAt: string
  readonly startedAt: string | null
  readonly endedAt: string | null
  readonly outcome: string | null
  readonly cause: string | null
  readonly error: TaskError | null
}

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

export interface FeedEvent extends EventView {
  /** The cursor right behind this event. */
  readonly cursor: string
}

export interface FeedPage {
  readonly items: FeedEvent[]
  /** Where to go on; also when there was nothing. */
  readonly next: string
  /** There may be more already; false: this is the end, for now. */
  readonly more: boolean
}
