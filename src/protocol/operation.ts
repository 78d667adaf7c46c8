/**
 * One entry per operation: its HTTP route, permission, queues, input and answer. The server, the client, the OpenAPI
 * document, the docs page, the tests of roles and the in-process engine are all read off these entries.
 */

import type { ProblemCode } from '../kernel/problem.ts'
import type { Permission } from '../kernel/role.ts'
import type { Field, Fields, Schema } from '../schema/check.ts'
import { examination, keyView, lostWorkerView, madeKey, me, queueView, workerView } from './admin/admin.ts'
import { statsView } from './admin/stats.ts'
import { bodyOf, controlFields, fence } from './call-options.ts'
import { artifactView, lineage, stageFile } from './files/artifacts.ts'
import { jobView, jobWithAdded, stageJob, stageView, stageWithAdded, taskCounts } from './jobs/jobs.ts'
import { timelineView, troubleView } from './jobs/timeline.ts'
import { list, orNull, ref, text, whole } from './shapes.ts'
import { redriveAnswer, redriveProgress } from './tasks/dead-letters.ts'
import { logLineView } from './tasks/logs.ts'
import { claimedTask, heartbeatAnswer, syncAnswer } from './tasks/sync.ts'
import { attemptView, errorCause, eventView, feedEvent, feedPage, queuedTask, taskView } from './tasks/tasks.ts'

/**
 * Source of an argument. `id`: the path. `query`, `body`: the parsed request. `call`: the actor, the idempotency key
 * and the trace, from headers. `options`: body and call as one object. `epoch`, `rest`: that field of the body, and
 * the others. `signal`: aborts when the client disconnects, its key is revoked or the server shuts down; only
 * operations that can wait for work take it.
 */
export type ArgumentSource = 'id' | 'query' | 'body' | 'options' | 'call' | 'epoch' | 'rest' | 'signal'

/**
 * The queues that a limited key must include. `named`: those named in the body. `reported`: those named in the body
 * and those of the tasks that it reports on. `enqueued`: those of the new tasks. `added`: those of the new stages,
 * and one of the job. `task`, `stage`, `job`: those of the target. `siblings`: one of the stage's job. `type`: the
 * queue with the type's name.
 */
export type QueueScope = 'named' | 'reported' | 'enqueued' | 'added' | 'task' | 'stage' | 'job' | 'siblings' | 'type'

/** One operation of the API. Everything that serves, calls or documents it is derived from this entry. */
export interface OperationEntry {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Parameters other than `id` are fields of the body. */
  readonly path: string
  readonly permission: Permission
  /** Arguments of the method, in order. */
  readonly takes: readonly ArgumentSource[]
  readonly status: 200 | 201 | 204
  /** For the OpenAPI document and the docs page. */
  readonly summary: string
  readonly query?: Fields
  /** Fields of a body that is an object. */
  readonly body?: Fields
  /** Fields of the body that must be present. */
  readonly required?: readonly string[]
  /** The body is a list of these objects. */
  readonly list?: Field
  /** Instead of a list, the body may be a single object. The answer is then a single object too. */
  readonly acceptsSingle?: true
  /** The body is a job spec, as JSON or YAML, or a list of stages. The fields are defined in `spec/`. */
  readonly spec?: 'job' | 'stages'
  /** Schema of the answer; undefined: no content. */
  readonly answer?: Schema
  /** Problems that do not follow from the route or the request: only the engine can find them. */
  readonly problems?: readonly ProblemCode[]
  /** Default: the operation is not limited to the queues of a key. */
  readonly queues?: QueueScope
  /** The body may hold many objects, so only the server's general limit applies to its size. */
  readonly isBulk?: true
  /**
   * False: the client does not send the request again by itself, and no Idempotency-Key is accepted. `sync` is
   * repeated by the worker, under its `syncId`. For a request whose answer holds a secret, storing the answer would
   * store the secret.
   */
  readonly isRepeatable?: false
  /** Served as an endless stream to clients that accept `text/event-stream`. */
  readonly streams?: true
}

/** An entry with the type of its method. */
export interface Operation<Method> extends OperationEntry {
  /** Never set: it only carries the type. */
  readonly method$?: Method
}

/** Whether the request has a body. */
export const hasBody = ({ takes }: OperationEntry) =>
  takes.some(source => source === 'body' || source === 'options' || source === 'epoch')

/** Whether a request may carry an Idempotency-Key. Reports of workers need none: their epoch identifies repeats. */
export const takesKey = ({ takes, isRepeatable }: OperationEntry) =>
  isRepeatable !== false && takes.some(source => source === 'call' || source === 'options')

/** The fields of the body. Parameters of the path are not repeated in it. */
export function bodyFields({ path, body = {} }: OperationEntry): Fields {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !path.includes(`{${name}}`)))
}

type Details = Partial<OperationEntry> & Pick<OperationEntry, 'summary'>

/** A GET. */
export const read = <Method>(path: string, details: Details): Operation<Method> => ({
  method: 'GET',
  path,
  permission: 'read',
  takes: [...(path.includes('{id}') ? (['id'] as const) : []), ...(details.query ? (['query'] as const) : [])],
  status: 200,
  ...details,
})

/** A POST. */
export const post = <Method>(
  path: string,
  permission: Permission,
  takes: readonly ArgumentSource[],
  details: Details,
): Operation<Method> => ({ method: 'POST', path, permission, takes, status: 200, ...details })

/** Something that an operator does to a job, stage, task or worker, which refuses it in some states. */
export const control = <Method>(path: string, details: Details): Operation<Method> =>
  post(path, 'operate', ['id', 'options'], { body: bodyOf(controlFields), problems: ['MOVE_REFUSED'], ...details })

/** Changes metadata. */
export const patch = <Method>(path: string, details: Details): Operation<Method> =>
  post(path, 'operate', ['id', 'body', 'call'], { method: 'PATCH', ...details })

/** A report on one task by the worker that holds its lease. */
export const report = <Method>(path: string, { body, required = [], problems = [], ...details }: Details) =>
  post<Method>(path, 'work', ['id', 'epoch', 'rest'], {
    body: { ...fence, ...body },
    required: ['epoch', ...required],
    problems: ['LEASE_LOST', 'TASK_BUSY', 'MOVE_REFUSED', 'PAYLOAD_TOO_LARGE', ...problems],
    queues: 'task',
    ...details,
  })

/** The schemas of the OpenAPI document, by name. */
export const views = {
  Task: taskView,
  QueuedTask: queuedTask,
  Event: eventView,
  FeedEvent: feedEvent,
  TaskCounts: taskCounts,
  Attempt: attemptView,
  ErrorCause: errorCause,
  Stage: stageView,
  StageWithAdded: stageWithAdded,
  Job: jobView,
  JobWithAdded: jobWithAdded,
  StageFile: stageFile,
  StageJob: stageJob,
  Artifact: artifactView,
  Lineage: lineage,
  Stats: statsView,
  Queue: queueView,
  Worker: workerView,
  LostWorker: lostWorkerView,
  Examination: examination,
  Me: me,
  Key: keyView,
  MadeKey: madeKey,
  Timeline: timelineView,
  Trouble: troubleView,
  LogLine: logLineView,
  RedriveProgress: redriveProgress,
  Heartbeat: heartbeatAnswer,
  Redrive: redriveAnswer,
  ClaimedTask: claimedTask,
  SyncAnswer: syncAnswer,
  FeedPage: feedPage,
} satisfies Record<string, Schema>

/** A page of a list. */
export const pageOf = (item: Schema, more: Readonly<Record<string, Schema>> = {}): Schema => ({
  type: 'object',
  properties: { items: list(item), next: orNull(text), ...more },
  required: ['items', 'next', ...Object.keys(more)],
  additionalProperties: false,
})

export const page = (name: keyof typeof views, more: Readonly<Record<string, Schema>> = {}) => pageOf(ref(name), more)

/** A page with the total number of matches, if the query asks for it. */
export const pageWithTotal = (name: keyof typeof views): Schema => ({
  ...page(name, { total: whole }),
  required: ['items', 'next'],
})

/** Problems that several operations share. */
export const newPayloads = ['PAYLOAD_REFUSED', 'PAYLOAD_TOO_LARGE', 'TOO_MANY_TASKS'] as const
export const newStages = ['SPEC_INVALID', 'SEALED', 'MOVE_REFUSED', ...newPayloads] as const
/** Stages with files run programs, which may be in Kubernetes. */
export const files = ['FILES_OUTSIDE', 'INPUTS_INVALID', 'URI_INVALID', 'POD_NOT_ALLOWED'] as const
export const nextRound = ['MOVE_REFUSED', 'JOB_COMPENSATED', 'OUTPUT_LOST', 'DEDUPE_CONFLICT'] as const
