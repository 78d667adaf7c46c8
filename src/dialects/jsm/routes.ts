import type { Permission } from '../../kernel/role.ts'
import type { Schema } from '../../schema/check.ts'
import { type DialectRoute, someBody } from '../dialect.ts'
import { eventSchema } from './event.ts'
import { claimSchema, deadLetterSchema, jobSchema, pageSchema } from './job.ts'
import * as looking from './looking.ts'
import { metricsSchema } from './metrics.ts'
import * as producing from './producing.ts'
import * as working from './working.ts'

const get = (
  path: string,
  says: string,
  answers: Schema,
  handle: DialectRoute['handle'],
  query: readonly string[] = [],
): DialectRoute => ({ method: 'GET', path, needs: 'read', says, query, answers, handle })

const post = (
  path: string,
  needs: Permission | readonly Permission[],
  says: string,
  handle: DialectRoute['handle'],
): DialectRoute => ({ method: 'POST', path, needs, says, takes: someBody, answers: jobSchema, handle })

/** The holder of the lease under its fence, or an operator. */
const either = ['work', 'operate'] as const

export const routes: readonly DialectRoute[] = [
  {
    ...post(
      '/jobs',
      'produce',
      'Queue a job `{type, payload, idempotency_key?, correlation_id?, trace_id?, priority?, run_at?, timeout_sec?, ' +
        'max_attempts?, on_exhausted?, backoff?}`; under the same key again: the same job.',
      producing.enqueue,
    ),
    status: 201,
  },
  {
    ...post(
      '/jobs/claim',
      'work',
      'Claim one job `{worker, types, lease_sec?, heartbeat_sec?, wait_sec?, idempotency_key?}`: the job with its ' +
        'lease, or `null`.',
      producing.claim,
    ),
    answers: claimSchema,
  },
  post('/jobs/{id}/start', 'work', 'Say that it has begun `{worker, epoch?}`.', working.start),
  post(
    '/jobs/{id}/heartbeat',
    'work',
    'Renew the lease `{worker, epoch?, progress?, checkpoint?}`; `cancel_requested_at` tells of a soft cancel.',
    working.heartbeat,
  ),
  post('/jobs/{id}/succeed', 'work', 'Say that it is done `{worker, epoch?, result?}`.', working.succeed),
  post(
    '/jobs/{id}/fail',
    'work',
    'Say that the attempt failed `{worker, epoch?, error_class, message, stage?, stack?, retry_in_sec?}`.',
    working.fail,
  ),
  post(
    '/jobs/{id}/cancel',
    either,
    'Call it off `{mode: soft or hard, reason?}`; with `worker`, in the name of the lease.',
    working.cancel,
  ),
  post(
    '/jobs/{id}/dead_letter',
    either,
    'Set it aside `{reason_code, stage?, reason?}`; with `worker`, in the name of the lease.',
    working.deadLetter,
  ),
  get('/jobs/{id}', 'A job.', jobSchema, looking.job),
  get(
    '/jobs/{id}/events',
    'What happened to a job, oldest first (`limit`, `cursor`).',
    pageSchema(eventSchema),
    looking.events,
    ['limit', 'cursor'],
  ),
  get(
    '/events',
    'Events of all jobs, oldest first, by type and time (`type`, `since`, `until`, `limit`, `cursor`).',
    pageSchema(eventSchema),
    looking.allEvents,
    ['type', 'since', 'until', 'limit', 'cursor'],
  ),
  get(
    '/dlq',
    'Dead letters, newest first (`type`, `reason_code`, `limit`, `cursor`).',
    pageSchema(deadLetterSchema),
    looking.deadLetters,
    ['type', 'reason_code', 'limit', 'cursor'],
  ),
  post('/dlq/{id}/retry', 'operate', 'Give a dead letter another round `{reason?}`.', working.retry),
  get('/metrics', 'The document’s figures.', metricsSchema, looking.metrics),
]
