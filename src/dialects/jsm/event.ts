/** The document's events: one for each transition, and what heartbeats say in between. */

import type { TaskError } from '../../kernel/decide.ts'
import type { TaskState } from '../../kernel/task.ts'
import { at, id, object, orNull, text, view, words } from '../../protocol/shapes.ts'
import type { EventView } from '../../protocol/tasks/tasks.ts'
import type { Schema } from '../../schema/check.ts'
import { errorOf } from './job.ts'
import { stateOf } from './transitions.ts'
import { eventTypes } from './words.ts'

export interface Event {
  readonly id: string
  readonly job_id: string
  readonly type: string
  readonly ts: string
  readonly actor: string
  readonly correlation_id: string | null
  readonly cause: string | null
  readonly payload: Readonly<Record<string, unknown>>
  readonly version: 1
}

/** What it has no name for is left out. A heartbeat also renews the lease: that is an event of its own here. */
export function eventsOf(event: EventView, traceId: string | null): Event[] {
  const type = eventTypes[event.type]
  if (type === undefined) return []
  const said: Event = {
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
  if (type !== 'job_heartbeat') return [said]
  return [said, { ...said, id: `${said.id}:lease`, type: 'job_lease_renewed' }]
}

const called: Readonly<Record<string, string>> = {
  reasonCode: 'reason_code',
  step: 'stage',
  leaseSeconds: 'lease_sec',
  heartbeatSeconds: 'heartbeat_sec',
}

/** An event of a job of ours is told in the same shape, but there are no words for the states of such a job. */
function payloadOf({ entity, from, to, epoch, payload }: EventView, traceId: string | null): Event['payload'] {
  const state = (name: string | null) => (name === null || entity !== 'task' ? null : stateOf(name as TaskState))
  const said = Object.entries(payload).map(([name, value]) => [
    called[name] ?? name,
    name === 'error' ? errorOf(value as TaskError) : value,
  ])
  return { from: state(from), to: state(to), epoch, trace_id: traceId, ...Object.fromEntries(said) }
}

const properties: Record<keyof Event, Schema> = {
  id: text,
  job_id: id,
  type: words(...new Set(Object.values(eventTypes))),
  ts: at,
  actor: text,
  correlation_id: orNull(text),
  cause: orNull(text),
  payload: object,
  version: { const: 1 },
}
export const eventSchema = view<Event>(properties)
