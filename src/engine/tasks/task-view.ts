import { toSettingsInput } from '../../kernel/settings.ts'
import type { DeadLetterView, TaskView } from '../../protocol/tasks/tasks.ts'
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
