import type { Permission } from '../../kernel/role.ts'
import type { Schema } from '../../schema/check.ts'
import { type Dialect, type DialectRoute, good, someBody } from '../dialect.ts'
import { eventSchema } from './event.ts'
import { claimSchema, deadLetterSchema, jobSchema, pageSchema } from './job.ts'
import { keys, limits } from './limits.ts'
import { metricsSchema, readMetrics } from './metrics.ts'
import * as queueing from './queueing.ts'
import * as reading from './reading.ts'
import { faultSchema, refuse } from './refusals.ts'
import * as reporting from './reporting.ts'
import { words } from './words.ts'

const get = (
  path: string,
  summary: string,
  answers: Schema,
  handle: DialectRoute['handle'],
  query: readonly string[] = [],
): DialectRoute => ({ method: 'GET', path, needs: 'read', summary, query, answers, handle })

const post = (
  path: string,
  needs: Permission | readonly Permission[],
  summary: string,
  handle: DialectRoute['handle'],
): DialectRoute => ({ method: 'POST', path, needs, summary, takes: someBody, answers: jobSchema, handle })

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
  get('/metrics', 'The document’s metrics.', metricsSchema, async ({ engine }) => good(await readMetrics(engine))),
]

export const jsm: Dialect = {
  name: 'jsm',
  system: 'Job State Machine v1',
  words,
  routes,
  refuse,
  faults: faultSchema,
  keys,
  limits,
}
