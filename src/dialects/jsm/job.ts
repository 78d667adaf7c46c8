/** A job, as it is shown: our task. */

import { reasonCodes, type Step, steps, type TaskError } from '../../kernel/decide.ts'
import { anything, at, figure, id, list, orNull, text, view, whole, words } from '../../protocol/shapes.ts'
import type { ClaimedTask } from '../../protocol/tasks/sync.ts'
import type { TaskView } from '../../protocol/tasks/tasks.ts'
import type { Schema } from '../../schema/check.ts'
import { type State, stateOf, states } from './transitions.ts'

export interface LastError {
  readonly error_class: string | null
  readonly message: string
  readonly stage: Step | null
}

export interface Lease {
  readonly owner: string
  /** Rises with every claim: who names it speaks for this lease and no other. */
  readonly epoch: number
  readonly expires_at: string
}

export interface Job {
  readonly id: string
  readonly type: string
  readonly state: State
  readonly priority: number
  readonly payload: unknown
  /** Those of this round, one for each claim. */
  readonly attempts: number
  readonly correlation_id: string | null
  readonly trace_id: string | null
  readonly lease: Lease | null
  readonly created_at: string
  readonly run_at: string
  readonly started_at: string | null
  readonly ended_at: string | null
  /** Asked to stop: the worker should checkpoint and end. */
  readonly cancel_requested_at: string | null
  readonly progress: unknown
  readonly checkpoint: unknown
  readonly result: unknown
  readonly last_error: LastError | null
  /** How many events there are. */
  readonly version: number
}

/** A claim also tells how long its lease is, and how far apart heartbeats may be. */
export interface ClaimedJob extends Omit<Job, 'lease'> {
  readonly lease: Lease & { readonly lease_sec: number; readonly heartbeat_sec: number | null }
}

export interface DeadLetter {
  readonly job_id: string
  readonly type: string
  readonly payload: unknown
  readonly reason_code: string
  readonly stage: Step | null
  readonly last_error: LastError
  readonly attempts: number
  readonly last_owner: string | null
  readonly last_lease_expires_at: string | null
  readonly correlation_id: string | null
  readonly trace_id: string | null
  readonly dead_lettered_at: string
}

export function jobOf(task: TaskView): Job {
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

export function claimedJobOf(task: TaskView, claimed: ClaimedTask, owner: string): ClaimedJob {
  const { epoch, leaseUntil, leaseSeconds, heartbeatSeconds } = claimed
  const lease = { owner, epoch, expires_at: leaseUntil, lease_sec: leaseSeconds, heartbeat_sec: heartbeatSeconds }
  return { ...jobOf(task), lease }
}

export function deadLetterOf(task: TaskView): DeadLetter {
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

/** A worker of ours may have said anything in place of a message. */
export function errorOf({ name, message, step }: TaskError): LastError {
  const told = typeof message === 'string' ? message : JSON.stringify(message ?? null)
  return { error_class: name ?? null, message: told, stage: step ?? null }
}

/** Kept as it came; of what others queued it is that of the trace. */
export function traceIdOf({ metadata, traceparent }: Pick<TaskView, 'metadata' | 'traceparent'>): string | null {
  return typeof metadata.trace_id === 'string' ? metadata.trace_id : (traceparent?.split('-')[1] ?? null)
}

const lastError = view<LastError>({ error_class: orNull(text), message: text, stage: orNull(words(...steps)) })
const lease: Record<keyof Lease, Schema> = { owner: text, epoch: whole, expires_at: at }

const properties: Record<keyof Job, Schema> = {
  id,
  type: text,
  state: words(...states),
  priority: whole,
  payload: anything,
  attempts: whole,
  correlation_id: orNull(text),
  trace_id: orNull(text),
  lease: orNull(view<Lease>(lease)),
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
export const jobSchema = view<Job>(properties)

export const claimSchema = orNull(
  view<ClaimedJob>({
    ...properties,
    lease: view<ClaimedJob['lease']>({ ...lease, lease_sec: figure, heartbeat_sec: orNull(figure) }),
  }),
)

export const deadLetterSchema = view<DeadLetter>({
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
