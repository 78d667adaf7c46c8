import { toSettingsInput } from '../../kernel/settings.ts'
import type { AttemptView, DeadLetterView, EventView, TaskView } from '../../protocol/tasks/tasks.ts'
import type { EventRow } from '../../store/feed/feed.ts'
import type { TaskRow } from '../../store/tasks/read-tasks.ts'

export const iso = (date: Date | null) => date?.toISOString() ?? null

export const parseDate = (moment: Date | string | undefined) => (moment === undefined ? null : new Date(moment))

export function toTaskView(row: TaskRow): TaskView {
  const { id, queue, type, state, priority, round, epoch, seq, failures, losses, tries, owner, jobId, stageId } = row
  const { dedupeKey, correlationId, traceparent, payload, progress, checkpoint, output, partial, error } = row
  return {
    id,
    queue,
    type,
    state,
    priority,
    round,
    epoch,
    seq,
    failures,
    losses,
    tries,
    runAt: row.runAt.toISOString(),
    createdAt: row.createdAt.toISOString(),
    changedAt: row.changedAt.toISOString(),
    startedAt: iso(row.startedAt),
    endedAt: iso(row.endedAt),
    leaseUntil: iso(row.leaseUntil),
    expireAt: iso(row.expireAt),
    keepUntil: iso(row.keepUntil),
    cancelRequestedAt: iso(row.cancelAt),
    owner,
    jobId,
    stageId,
    dedupeKey,
    correlationId,
    traceparent,
    payload,
    settings: toSettingsInput(row.settings ?? {}),
    metadata: row.metadata ?? {},
    progress,
    checkpoint,
    output,
    partial,
    error,
    deadLetter: row.deadLetter as DeadLetterView | null,
  }
}

export function toEventView(row: EventRow): EventView {
  return {
    id: row.pulseUs === undefined ? `${row.entityId}:${row.seq}` : `${row.entityId}:${row.seq}@${row.pulseUs}`,
    entity: row.type.slice(0, row.type.indexOf('.')) as EventView['entity'],
    entityId: row.entityId,
    jobId: row.jobId,
    seq: row.seq,
    type: row.type,
    from: row.fromState,
    to: row.toState,
    ts: row.ts.toISOString(),
    actor: row.actor,
    cause: row.cause,
    correlationId: row.correlationId,
    traceId: row.traceparent?.split('-')[1] ?? null,
    epoch: row.epoch,
    payload: row.payload ?? {},
    version: 1,
  }
}

/** Derives the attempts of a task from its events, one per epoch. */
export function toAttempts(events: readonly EventView[]): AttemptView[] {
  const attempts = new Map<number, AttemptView>()
  for (const event of events) {
    if (event.type === 'task.claimed') {
      const worker = event.actor.replace(/^worker:/, '')
      const begun = { startedAt: null, endedAt: null, outcome: null, cause: null, error: null }
      attempts.set(event.epoch, { epoch: event.epoch, worker, claimedAt: event.ts, ...begun })
      continue
    }
    const attempt = attempts.get(event.epoch)
    if (attempt === undefined || attempt.endedAt !== null || event.from === event.to) continue
    if (event.type === 'task.started') attempts.set(event.epoch, { ...attempt, startedAt: event.ts })
    else {
      const error = (event.payload.error as AttemptView['error']) ?? null
      attempts.set(event.epoch, { ...attempt, endedAt: event.ts, outcome: event.to, cause: event.cause, error })
    }
  }
  return [...attempts.values()]
}
