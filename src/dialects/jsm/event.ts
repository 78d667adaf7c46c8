/** The document's events: one for each transition, and one for each heartbeat. */

import type { TaskError } from '../../kernel/decide.ts'
import type { TaskState } from '../../kernel/task.ts'
import { at, id, object, orNull, text, view, words } from '../../protocol/shapes.ts'
import type { EventView } from '../../protocol/tasks/tasks.ts'
import { errorOf } from './job.ts'
import { stateOf } from './transitions.ts'
import { eventTypes } from './words.ts'

/** Events that the document has no name for are left out. A heartbeat also renews the lease, which is a second event. */
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
