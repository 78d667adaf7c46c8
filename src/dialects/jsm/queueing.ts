/** Enqueues jobs and claims them. */
import type { NewTaskItem } from '../../protocol/tasks/tasks.ts'
import type { ValueOf } from '../../schema/check.ts'
import { type Answer, type DialectRequest, good } from '../dialect.ts'
import { readBody } from '../kit/requests.ts'
import { bodies } from './requests.ts'
import { claimedJobOf, jobOf } from './views.ts'

/** An idempotency key in the body counts like one in the header. */
export function callUnder({ call }: DialectRequest, body: { readonly idempotency_key?: string }) {
  const { idempotency_key: idempotencyKey } = body
  return idempotencyKey === undefined ? call : { ...call, idempotencyKey }
}

export async function enqueue(request: DialectRequest): Promise<Answer> {
  const { engine } = request
  const body = readBody(request.body ?? {}, bodies.enqueue)
  const [queued] = await engine.enqueueMany([taskOf(body)], callUnder(request, body))
  return good(jobOf(await engine.task(queued!.id)), 201)
}

/** Sets only the fields that the request has. The job's type may set the others. */
function taskOf(body: ValueOf<typeof bodies.enqueue>): NewTaskItem {
  const { trace_id, max_attempts, on_exhausted, backoff = {} } = body
  const retry = withoutUndefined({
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
    ...withoutUndefined({
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

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function withoutUndefined<T extends object>(options: T): Defined<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Defined<T>
}

/**
 * A trace id in the W3C format is passed on to tracing. The caller's span is not known: it is derived from the trace, so
 * that a repeated request queues the same job.
 */
function traceparentOf(traceId: string): string | undefined {
  const isTrace = /^[0-9a-f]{32}$/.test(traceId) && !/^0*$/.test(traceId.slice(16))
  return isTrace ? `00-${traceId}-${traceId.slice(16)}-01` : undefined
}

/** The longest interval that the document allows. A worker that names no interval may need it. */
const longestHeartbeat = 30

export async function claim(request: DialectRequest): Promise<Answer> {
  const { engine, signal } = request
  const body = readBody(request.body ?? {}, bodies.claim)
  const wanted = {
    worker: body.worker,
    queues: body.types,
    defaultHeartbeatSeconds: longestHeartbeat,
    ...(body.heartbeat_sec !== undefined && { heartbeatSeconds: body.heartbeat_sec }),
    ...(body.lease_sec !== undefined && { leaseSeconds: body.lease_sec }),
    ...(body.wait_sec !== undefined && { waitSeconds: body.wait_sec }),
  }
  const { traceparent: _, ...call } = callUnder(request, body)
  const [claimed] = await engine.claims(wanted, call, signal)
  return good(claimed === undefined ? null : claimedJobOf(await engine.task(claimed.id), claimed, body.worker))
}
