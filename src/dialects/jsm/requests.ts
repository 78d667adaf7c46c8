/** The fields of requests. Unknown fields are ignored: within a version, later clients may send more. */
import { reasonCodes, steps } from '../../kernel/decide.ts'
import { anything, faultOf, field, flag, moment, nested, number, oneOf, text } from '../../schema/check.ts'
import { reason as message, name, priority, year } from '../../schema/fields.ts'
import { openBody, parsedWhole } from '../kit/requests.ts'
import { feedTypes } from './words.ts'

const key = { idempotency_key: name }
const seconds = (from: number, to: number) => number({ from, to })
const holder = { ...key, worker: name, epoch: number({ from: 0, to: 2 ** 31 - 1, whole: true }) }

const types = field<readonly string[]>({ type: 'array', items: name, minItems: 1, maxItems: 1000 }, value =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= 1000 &&
  value.every(each => faultOf(name, each) === undefined)
    ? undefined
    : 'be a list of the job types that the worker takes',
)

export const bodies = {
  enqueue: openBody(
    {
      ...key,
      type: name,
      payload: anything,
      correlation_id: name,
      trace_id: name,
      priority,
      run_at: moment,
      timeout_sec: seconds(0.001, year),
      max_attempts: number({ from: 1, to: 1000, whole: true }),
      on_exhausted: oneOf(['failed', 'dead_lettered']),
      backoff: nested({
        base_sec: seconds(0, year),
        factor: number({ from: 1, to: 100 }),
        max_sec: seconds(0, year),
        jitter: flag,
      }),
    },
    ['type'],
  ),
  claim: openBody(
    {
      ...key,
      worker: name,
      types,
      lease_sec: seconds(30, 120),
      heartbeat_sec: seconds(10, 30),
      wait_sec: seconds(0, 60),
    },
    ['worker', 'types'],
  ),
  start: openBody(holder, ['worker']),
  heartbeat: openBody({ ...holder, progress: anything, checkpoint: anything }, ['worker']),
  succeed: openBody({ ...holder, result: anything }, ['worker']),
  fail: openBody(
    { ...holder, error_class: name, message, stack: message, stage: oneOf(steps), retry_in_sec: seconds(0, year) },
    ['worker'],
  ),
  cancel: openBody({ ...holder, mode: oneOf(['soft', 'hard']), soft: flag, hard: flag, reason: message }),
  deadLetter: openBody({ ...holder, reason_code: oneOf(reasonCodes), stage: oneOf(steps), reason: message }, [
    'reason_code',
  ]),
  retry: openBody({ ...key, reason: message }),
}

const page = { limit: parsedWhole(1, 1000, Number), cursor: text(500) }
const eventType = field<string>({ type: 'string' }, value =>
  (feedTypes as readonly unknown[]).includes(value)
    ? undefined
    : `be one of ${feedTypes.join(', ')}; heartbeats are listed only with the events of their job`,
)

export const queries = {
  page,
  deadLetters: { ...page, type: name, reason_code: oneOf(reasonCodes) },
  events: { ...page, type: eventType, since: moment, until: moment },
}
