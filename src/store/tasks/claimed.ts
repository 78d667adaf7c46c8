/**
 * Claimed tasks on their way to the worker. They are sent as columns, one array for each: a thousand rows cost the
 * database and this process more than the claim itself.
 */
import { type Literal, literal } from '../driver/sql.ts'

export interface Claimed {
  readonly id: string
  readonly epoch: number
  readonly type: string
  readonly payload: unknown
  readonly attempt: number
  readonly checkpoint: unknown
  readonly careful: boolean
  readonly leaseUntil: string
  readonly leaseSeconds: number
  readonly heartbeatSeconds: number | null
  readonly timeoutSeconds: number | null
  readonly correlationId: string | null
  readonly traceparent: string | null
  readonly jobId: string | null
  readonly stageId: string | null
}

/** One array per column. All of them are null if there are no tasks. */
export interface ClaimedColumns {
  readonly ids: string[] | null
  readonly epochs: number[]
  readonly types: string[]
  readonly payloads: string
  readonly attempts: number[]
  readonly leases: number[]
  readonly heartbeats: (number | null)[]
  readonly timeouts: (number | null)[]
  readonly jobIds: (string | null)[]
  readonly stageIds: (string | null)[]
  /** Fields that few tasks have, by the id of the task. */
  readonly rest: (Pick<Claimed, 'careful' | 'checkpoint' | 'correlationId' | 'traceparent'> & { id: string })[] | null
  readonly nowMs: number
}

/** The settings of a task `t` under these lease terms; if the terms are null, its own settings. */
export function settingsUnderLease(terms: string): Literal {
  return literal(`coalesce(t.settings || ${terms}, t.settings, ${terms})`)
}

/** The lease terms of a held task `t`, from the event of its claim. */
export const leaseTermsOfTask = `(select h.payload from unnest(t.history) as h
                  where h.epoch = t.epoch and h.state = 'assigned' and h.type is null)`

/** The columns of a task `t` that `aggregatedColumns` needs. `typed` is an expression for the settings of its type. */
export function claimedTaskColumns(terms: string, typed: string) {
  return literal(`t.id, t.epoch, t.type, t.payload, t.failures + t.losses + 1 as attempt, t.careful, t.checkpoint,
                t.correlation_id, t.traceparent, t.job_id, t.stage_id, t.lease_until,
                pawl.setting(${settingsUnderLease(terms).literal}, ${typed}, 'heartbeatSeconds') as heartbeat_seconds,
                pawl.setting(t.settings, ${typed}, 'timeoutSeconds') as timeout_seconds`)
}

export const aggregatedColumns = literal(`
             array_agg(id) as ids, array_agg(epoch) as epochs, array_agg(type) as types,
             '[' || string_agg(payload::text, ',') || ']' as payloads, array_agg(attempt) as attempts,
             array_agg(date_part('epoch', lease_until - pawl.clock())) as leases,
             array_agg(heartbeat_seconds) as heartbeats, array_agg(timeout_seconds) as timeouts,
             array_agg(job_id) as job_ids, array_agg(stage_id) as stage_ids,
             json_agg(json_build_object('id', id, 'careful', careful, 'checkpoint', checkpoint,
                                        'correlationId', correlation_id, 'traceparent', traceparent))
               filter (where careful or checkpoint is not null or correlation_id is not null
                          or traceparent is not null) as rest,
             min(least(lease_until, pawl.clock() + make_interval(secs => timeout_seconds))) as look_at,
             date_part('epoch', pawl.clock()) * 1000 as now_ms`)

/** The aggregated columns as JSON, which is parsed at once. */
export const columnsAsJson =
  literal(`array_to_json(ids) as ids, array_to_json(epochs) as epochs, array_to_json(types) as types,
           payloads, array_to_json(attempts) as attempts, array_to_json(leases) as leases,
           array_to_json(heartbeats) as heartbeats, array_to_json(timeouts) as timeouts,
           array_to_json(job_ids) as job_ids, array_to_json(stage_ids) as stage_ids, rest, now_ms`)

export function tasksFromColumns(won: ClaimedColumns): Claimed[] {
  if (won.ids === null) return []
  const { epochs, types, attempts, leases, heartbeats, timeouts, jobIds, stageIds, nowMs } = won
  const payloads: unknown[] = JSON.parse(won.payloads)
  const rest = new Map(won.rest?.map(one => [one.id, one]))
  let leaseUntil = ''
  return won.ids.map((id, index) => {
    const leaseSeconds = leases[index]!
    // Most tasks of a claim have the same lease, and formatting a date is slow.
    if (index === 0 || leaseSeconds !== leases[index - 1]) {
      leaseUntil = new Date(nowMs + leaseSeconds * 1000).toISOString()
    }
    const more = rest.get(id)
    return {
      id,
      epoch: epochs[index]!,
      type: types[index]!,
      payload: payloads[index],
      attempt: attempts[index]!,
      checkpoint: more?.checkpoint ?? null,
      careful: more?.careful ?? false,
      leaseUntil,
      leaseSeconds,
      heartbeatSeconds: heartbeats[index]!,
      timeoutSeconds: timeouts[index]!,
      correlationId: more?.correlationId ?? null,
      traceparent: more?.traceparent ?? null,
      jobId: jobIds[index]!,
      stageId: stageIds[index]!,
    }
  })
}
