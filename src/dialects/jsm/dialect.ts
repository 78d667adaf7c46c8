import { type TaskState, taskLifecycle } from '../../kernel/task.ts'
import { list, orNull, text, view, words as wordsOf } from '../../protocol/shapes.ts'
import type { Schema } from '../../schema/check.ts'
import { type Answer, type Dialect, type DialectRoute, type Fault, route, someBody } from '../dialect.ts'
import { type Rewordings, reword } from '../kit/refusals.ts'
import * as queueing from './queueing.ts'
import * as reading from './reading.ts'
import * as reporting from './reporting.ts'
import { claimSchema, deadLetterSchema, eventSchema, jobSchema, pageSchema } from './views.ts'
import { movesFrom, type State, stateOf, states, words } from './words.ts'

const get = (
  path: `/${string}`,
  summary: string,
  answers: Schema,
  handle: DialectRoute['handle'],
  query: readonly string[] = [],
) => route(`GET ${path}`, 'read', { summary, query, answers, handle })

const post = (path: `/${string}`, needs: DialectRoute['needs'], summary: string, handle: DialectRoute['handle']) =>
  route(`POST ${path}`, needs, { summary, takes: someBody, answers: jobSchema, handle })

/** The holder of the lease, or an operator. */
const holderOrOperator = ['work', 'operate'] as const

const routes: readonly DialectRoute[] = [
  {
    ...post(
      '/jobs',
      'produce',
      'Enqueue a job `{type, payload, idempotency_key?, correlation_id?, trace_id?, priority?, run_at?, timeout_sec?, ' +
        'max_attempts?, on_exhausted?, backoff?}`. The same key again returns the same job.',
      queueing.enqueue,
    ),
    status: 201,
  },
  {
    ...post(
      '/jobs/claim',
      'work',
      'Claim one job `{worker, types, lease_sec?, heartbeat_sec?, wait_sec?, idempotency_key?}`. Returns the job with ' +
        'its lease, or `null`.',
      queueing.claim,
    ),
    answers: claimSchema,
  },
  post('/jobs/{id}/start', 'work', 'Report that the job has started `{worker, epoch?}`.', reporting.start),
  post(
    '/jobs/{id}/heartbeat',
    'work',
    'Renew the lease `{worker, epoch?, progress?, checkpoint?}`. `cancel_requested_at` in the answer reports a soft cancel.',
    reporting.heartbeat,
  ),
  post('/jobs/{id}/succeed', 'work', 'Report that the job succeeded `{worker, epoch?, result?}`.', reporting.succeed),
  post(
    '/jobs/{id}/fail',
    'work',
    'Report that the attempt failed `{worker, epoch?, error_class, message, stage?, stack?, retry_in_sec?}`.',
    reporting.fail,
  ),
  post(
    '/jobs/{id}/cancel',
    holderOrOperator,
    'Cancel a job `{mode: soft or hard, reason?}`. With `worker`: under its lease.',
    reporting.cancel,
  ),
  post(
    '/jobs/{id}/dead_letter',
    holderOrOperator,
    'Move a job to the dead-letter queue `{reason_code, stage?, reason?}`. With `worker`: under its lease.',
    reporting.deadLetter,
  ),
  get('/jobs/{id}', 'Get a job.', jobSchema, reading.job),
  get(
    '/jobs/{id}/events',
    'List the events of a job, oldest first (`limit`, `cursor`).',
    pageSchema(eventSchema),
    reading.events,
    ['limit', 'cursor'],
  ),
  get(
    '/events',
    'List the events of all jobs, oldest first, by type and time (`type`, `since`, `until`, `limit`, `cursor`).',
    pageSchema(eventSchema),
    reading.allEvents,
    ['type', 'since', 'until', 'limit', 'cursor'],
  ),
  get(
    '/dlq',
    'List dead letters, newest first (`type`, `reason_code`, `limit`, `cursor`).',
    pageSchema(deadLetterSchema),
    reading.deadLetters,
    ['type', 'reason_code', 'limit', 'cursor'],
  ),
  post('/dlq/{id}/retry', 'operate', 'Retry a dead letter `{reason?}`.', reporting.retry),
  get('/metrics', 'The document’s metrics.', reading.metricsSchema, reading.metrics),
]

/** The document's error classes. A refused transition also tells the job's state and the requests that it accepts. */
const errorClasses = ['ValidationError', 'TransientError', 'PermanentError', 'LeaseConflictError'] as const
type ErrorClass = (typeof errorClasses)[number]

/** Requests and fields that have another name in the engine. */
const namesHere: Readonly<Record<string, string>> = {
  deadLetter: 'dead_letter',
  redrive: 'retry',
  reasonCode: 'reason_code',
}
const nameHere = (name: unknown) => namesHere[String(name)] ?? name

const rewordings: Rewordings = {
  TASK_NOT_FOUND: { code: 'JOB_NOT_FOUND', message: 'No job has this id.' },
  TASK_BUSY: {
    code: 'JOB_BUSY',
    message: 'Another request is changing the job. Nothing was done; send the request again.',
  },
  LEASE_LOST: { message: 'The lease is lost. Stop working on the job; nothing was done.' },
  MOVE_REFUSED: {
    code: 'INVALID_TRANSITION',
    message: ({ state, move }) => `A job that is ${stateIn(state)} does not take ${nameHere(move)}.`,
  },
  IDEMPOTENCY_MISMATCH: { code: 'IDEMPOTENCY_CONFLICT' },
  OPTION_INVALID: {
    code: 'INVALID_REQUEST',
    message: ({ option, must }) => `"${nameHere(option)}" must ${must}.`,
  },
  BODY_INVALID: { code: 'INVALID_REQUEST' },
  KEY_MISSING: { code: 'UNAUTHORIZED' },
  PAYLOAD_INVALID: { message: ({ refusal, why }) => String(refusal ?? `The data cannot be stored: ${why}.`) },
  PAYLOAD_TOO_LARGE: {
    message: ({ refusal, bytes, limit }) => String(refusal ?? `The data has ${bytes} bytes; the limit is ${limit}.`),
  },
}

function refuse(fault: Fault): Answer {
  // A refusal by the worker protocol has its own message.
  const refusal = fault.details.refusal as string | undefined
  const { status, code, message } = reword({ ...fault, message: refusal ?? fault.message }, rewordings)
  return {
    status,
    body: { error_class: classOf(fault), code, message, ...transitionsFrom(stateIn(fault.details.state)) },
  }
}

const transitionsFrom = (state: State | null) => ({ state, allowed: state === null ? null : movesFrom(state) })

function classOf({ status, code }: Fault): ErrorClass {
  if (code === 'LEASE_LOST') return 'LeaseConflictError'
  if (status >= 500 || status === 408 || code === 'TASK_BUSY') return 'TransientError'
  return [400, 413, 415, 422].includes(status) ? 'ValidationError' : 'PermanentError'
}

function stateIn(state: unknown): State | null {
  return typeof state === 'string' && Object.hasOwn(taskLifecycle.states, state) ? stateOf(state as TaskState) : null
}

const faultSchema = view<Record<'error_class' | 'code' | 'message' | 'state' | 'allowed', unknown>>({
  error_class: wordsOf(...errorClasses),
  code: text,
  message: text,
  state: orNull(wordsOf(...states)),
  allowed: orNull(list(text)),
})

export const jsm: Dialect = {
  name: 'jsm',
  system: 'Job State Machine v1',
  words,
  routes,
  refuse,
  faults: faultSchema,
}
