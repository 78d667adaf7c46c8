/** Jobs, dead letters and events as the document shows them. Its jobs are Pawl's tasks. */
import { reasonCodes, steps, type TaskError } from '../../kernel/decide.ts'
import type { TaskState } from '../../kernel/task.ts'
import { anything, at, figure, id, list, object, orNull, text, view, whole, words } from '../../protocol/shapes.ts'
import type { ClaimedTask } from '../../protocol/tasks/sync.ts'
import type { EventView, TaskView } from '../../protocol/tasks/tasks.ts'
import type { Schema } from '../../schema/check.ts'
import { eventTypes, stateOf, states } from './words.ts'

export function jobOf(task: TaskView) {
  const isHeld = task.leaseUntil !== null
  return {
    id: task.id,
    type: task.type,
    state: stateOf(task.state),
    priority: task.priority,
    payload: task.payload,
    attempts: task.tries,
    correlation_id: task.correlationId,
    trace_id: traceIdOf(task),
    lease: isHeld ? { owner: task.owner!, epoch: task.epoch, expires_at: task.leaseUntil } : null,
    created_at: task.createdAt,
    run_at: task.runAt,
    started_at: task.startedAt,
    ended_at: task.endedAt,
    cancel_requested_at: isHeld ? task.cancelRequestedAt : null,
    progress: task.progress,
    checkpoint: task.checkpoint,
    result: task.output,
    last_error: task.error === null ? null : errorOf(task.error),
    version: task.seq,
  }
}

export function claimedJobOf(task: TaskView, claimed: ClaimedTask, owner: string) {
  const { epoch, leaseUntil, leaseSeconds, heartbeatSeconds } = claimed
  const lease = { owner, epoch, expires_at: leaseUntil, lease_sec: leaseSeconds, heartbeat_sec: heartbeatSeconds }
  return { ...jobOf(task), lease }
}

export function deadLetterOf(task: TaskView) {
  const { reasonCode, step = null, lastError, lastOwner, lastLeaseExpiresAt } = task.deadLetter!
  return {
    job_id: task.id,
    type: task.type,
    payload: task.payload,
    reason_code: reasonCode,
    stage: step,
    last_error: errorOf(lastError),
    attempts: task.tries,
    last_owner: lastOwner,
    last_lease_expires_at: lastLeaseExpiresAt,
    correlation_id: task.correlationId,
    trace_id: traceIdOf(task),
    dead_lettered_at: task.endedAt!,
  }
}

/** The message of a failure from one of Pawl's workers may be any JSON. */
export function errorOf({ name, message, step }: TaskError) {
  const text = typeof message === 'string' ? message : JSON.stringify(message ?? null)
  return { error_class: name ?? null, message: text, stage: step ?? null }
}

/** The trace id that the client sent. For tasks from other clients it is the id of their trace. */
export function traceIdOf({ metadata, traceparent }: Pick<TaskView, 'metadata' | 'traceparent'>): string | null {
  return typeof metadata.trace_id === 'string' ? metadata.trace_id : (traceparent?.split('-')[1] ?? null)
}

const lastError = view<ReturnType<typeof errorOf>>({
  error_class: orNull(text),
  message: text,
  stage: orNull(words(...steps)),
})
const lease = { owner: text, epoch: whole, expires_at: at }

const properties: Record<keyof ReturnType<typeof jobOf>, Schema> = {
  id,
  type: text,
  state: words(...states),
  priority: whole,
  payload: anything,
  attempts: whole,
  correlation_id: orNull(text),
  trace_id: orNull(text),
  lease: orNull(view<typeof lease>(lease)),
  created_at: at,
  run_at: at,
  started_at: orNull(at),
  ended_at: orNull(at),
  cancel_requested_at: orNull(at),
  progress: anything,
  checkpoint: anything,
  result: anything,
  last_error: orNull(lastError),
  version: whole,
}
export const jobSchema = view<typeof properties>(properties)

export const claimSchema = orNull(
  view<typeof properties>({
    ...properties,
    lease: view<ReturnType<typeof claimedJobOf>['lease']>({
      ...lease,
      lease_sec: figure,
      heartbeat_sec: orNull(figure),
    }),
  }),
)

export const deadLetterSchema = view<ReturnType<typeof deadLetterOf>>({
  job_id: id,
  type: text,
  payload: anything,
  reason_code: words(...reasonCodes),
  stage: orNull(words(...steps)),
  last_error: lastError,
  attempts: whole,
  last_owner: orNull(text),
  last_lease_expires_at: orNull(at),
  correlation_id: orNull(text),
  trace_id: orNull(text),
  dead_lettered_at: at,
})

/**
 * An event for each transition, and one for each heartbeat. Events that the document has no name for are left out. A
 * heartbeat also renews the lease, which is a second event.
 */
export function eventsOf(event: EventView, traceId: string | null) {
  const type = eventTypes[event.type]
  if (type === undefined) return []
  const shown = {
    id: event.id,
    job_id: event.entityId,
    type,
    ts: event.ts,
    actor: event.actor,
    correlation_id: event.correlationId,
    cause: event.cause,
    payload: payloadOf(event, traceId),
    version: event.version,
  }
  if (type !== 'job_heartbeat') return [shown]
  return [shown, { ...shown, id: `${shown.id}:lease`, type: 'job_lease_renewed' }]
}

const payloadNames: Readonly<Record<string, string>> = {
  reasonCode: 'reason_code',
  step: 'stage',
  leaseSeconds: 'lease_sec',
  heartbeatSeconds: 'heartbeat_sec',
}

/** An event of a Pawl job has the same shape, without states: the dialect has no words for those of a job. */
function payloadOf({ entity, from, to, epoch, payload }: EventView, traceId: string | null) {
  const state = (name: string | null) => (name === null || entity !== 'task' ? null : stateOf(name as TaskState))
  const fields = Object.entries(payload).map(([name, value]) => [
    payloadNames[name] ?? name,
    name === 'error' ? errorOf(value as TaskError) : value,
  ])
  return { from: state(from), to: state(to), epoch, trace_id: traceId, ...Object.fromEntries(fields) }
}

export const eventSchema = view<ReturnType<typeof eventsOf>[number]>({
  id: text,
  job_id: id,
  type: words(...new Set(Object.values(eventTypes))),
  ts: at,
  actor: text,
  correlation_id: orNull(text),
  cause: orNull(text),
  payload: object,
  version: { const: 1 },
})

export const pageSchema = (items: Schema) =>
  view<{ items: unknown; next: unknown }>({ items: list(items), next: orNull(text) })
