/** Jobs and dead letters as the document shows them. Its jobs are Pawl's tasks. */

import { reasonCodes, steps, type TaskError } from '../../kernel/decide.ts'
import { anything, at, figure, id, list, orNull, text, view, whole, words } from '../../protocol/shapes.ts'
import type { ClaimedTask } from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { Schema } from '../../schema/check.ts'
import { stateOf, states } from './transitions.ts'

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
  const told = typeof message === 'string' ? message : JSON.stringify(message ?? null)
  return { error_class: name ?? null, message: told, stage: step ?? null }
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

export const pageSchema = (items: Schema) =>
  view<{ items: unknown; next: unknown }>({ items: list(items), next: orNull(text) })
