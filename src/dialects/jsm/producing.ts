/** Queueing jobs, and claiming them. */
import type { NewTaskItem } from '../../protocol/tasks/tasks.ts'
import { type Answer, type Ask, good } from '../dialect.ts'
import { claimFields, enqueueFields, readBody } from './bodies.ts'
import { claimedJobOf, jobOf } from './job.ts'

interface Keyed {
  readonly idempotency_key?: string
}

/** A key in the body is as good as one in the header. */
export function callUnder({ call }: Ask, { idempotency_key: key }: Keyed) {
  return key === undefined ? call : { ...call, idempotencyKey: key }
}

interface EnqueueBody extends Keyed {
  readonly type: string
  readonly payload?: unknown
  readonly correlation_id?: string
  readonly trace_id?: string
  readonly priority?: number
  readonly run_at?: string
  readonly timeout_sec?: number
  readonly max_attempts?: number
  readonly on_exhausted?: 'failed' | 'dead_lettered'
  readonly backoff?: { base_sec?: number; factor?: number; max_sec?: number; jitter?: boolean }
}

export async function enqueue(ask: Ask): Promise<Answer> {
  const { engine } = ask
  const body = readBody<EnqueueBody>(ask.body, enqueueFields, ['type'])
  const [queued] = await engine.enqueueMany([taskOf(body)], callUnder(ask, body))
  return good(jobOf(await engine.task(queued!.id)), 201)
}

/** Only what was said: what was not, the type may say. */
function taskOf(body: EnqueueBody): NewTaskItem {
  const { trace_id, max_attempts, on_exhausted, backoff = {} } = body
  const retry = said({
    attempts: max_attempts,
    losses: max_attempts,
    delaySeconds: backoff.base_sec,
    factor: backoff.factor,
    maxSeconds: backoff.max_sec,
    jitter: backoff.jitter,
  })
  return {
    type: body.type,
    payload: body.payload ?? null,
    ...said({
      priority: body.priority,
      runAt: body.run_at,
      timeoutSeconds: body.timeout_sec,
      correlationId: body.correlation_id,
      deadLetter: on_exhausted && (on_exhausted === 'failed' ? ('never' as const) : ('exhausted' as const)),
      retry: Object.keys(retry).length === 0 ? undefined : retry,
      ...(trace_id !== undefined && { metadata: { trace_id }, traceparent: traceparentOf(trace_id) }),
    }),
  }
}

type Said<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function said<T extends object>(options: T): Said<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Said<T>
}

/**
 * One that is of W3C's form goes on to our workers as such. The caller's span it does not tell: the same trace always
 * makes the same one, so that a job that is sent again is the same.
 */
function traceparentOf(traceId: string): string | undefined {
  const isTrace = /^[0-9a-f]{32}$/.test(traceId) && !/^0*$/.test(traceId.slice(16))
  return isTrace ? `00-${traceId}-${traceId.slice(16)}-01` : undefined
}

interface ClaimBody extends Keyed {
  readonly worker: string
  readonly types: readonly string[]
  readonly lease_sec?: number
  readonly heartbeat_sec?: number
  readonly wait_sec?: number
}

/** The longest interval that the document allows: who says nothing may be one that needs it. */
const longestHeartbeat = 30

export async function claim(ask: Ask): Promise<Answer> {
  const { engine, signal } = ask
  const body = readBody<ClaimBody>(ask.body, claimFields, ['worker', 'types'])
  const wanted = {
    worker: body.worker,
    queues: body.types,
    defaultHeartbeatSeconds: longestHeartbeat,
    ...(body.heartbeat_sec !== undefined && { heartbeatSeconds: body.heartbeat_sec }),
    ...(body.lease_sec !== undefined && { leaseSeconds: body.lease_sec }),
    ...(body.wait_sec !== undefined && { waitSeconds: body.wait_sec }),
  }
  const { traceparent: _, ...call } = callUnder(ask, body)
  const [claimed] = await engine.claims(wanted, call, signal)
  return good(claimed === undefined ? null : claimedJobOf(await engine.task(claimed.id), claimed, body.worker))
}
