/** The fields of requests. Unknown fields are ignored: within a version, later clients may send more. */

import { reasonCodes, steps } from '../../kernel/decide.ts'
import { faultOf, field, moment, text } from '../../schema/check.ts'
import { name as nameCheck, priority, year } from '../../schema/fields.ts'
import {
  anyJson,
  fieldOf,
  flag,
  objectOf,
  oneWordOf,
  type RequestField,
  someNumber,
  textField,
  wholeNumber,
} from '../kit/fields.ts'
import { feedTypes } from './words.ts'

const name = textField(nameCheck)
const message = textField(text(10_000))
const dateTime = textField(moment)
const key = { idempotency_key: name }

export const holderFields = { ...key, worker: name, epoch: wholeNumber(0, 2 ** 31 - 1) }

const types: RequestField<readonly string[]> = {
  check: field({ type: 'array', items: nameCheck, minItems: 1, maxItems: 1000 }, value =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.length <= 1000 &&
    value.every(each => faultOf(nameCheck, each) === undefined)
      ? undefined
      : 'be a list of the job types that the worker takes',
  ),
}

export const enqueueFields = {
  ...key,
  type: name,
  payload: anyJson,
  correlation_id: name,
  trace_id: name,
  priority: fieldOf<number>(priority),
  run_at: dateTime,
  timeout_sec: someNumber(0.001, year),
  max_attempts: wholeNumber(1, 1000),
  on_exhausted: oneWordOf(['failed', 'dead_lettered']),
  backoff: objectOf({
    base_sec: someNumber(0, year),
    factor: someNumber(1, 100),
    max_sec: someNumber(0, year),
    jitter: flag,
  }),
}

export const claimFields = {
  ...key,
  worker: name,
  types,
  lease_sec: someNumber(30, 120),
  heartbeat_sec: someNumber(10, 30),
  wait_sec: someNumber(0, 60),
}

export const heartbeatFields = { ...holderFields, progress: anyJson, checkpoint: anyJson }
export const succeedFields = { ...holderFields, result: anyJson }
export const failFields = {
  ...holderFields,
  error_class: name,
  message,
  stack: message,
  stage: oneWordOf(steps),
  retry_in_sec: someNumber(0, year),
}
export const cancelFields = {
  ...holderFields,
  mode: oneWordOf(['soft', 'hard']),
  soft: flag,
  hard: flag,
  reason: message,
}
export const deadLetterFields = {
  ...holderFields,
  reason_code: oneWordOf(reasonCodes),
  stage: oneWordOf(steps),
  reason: message,
}
export const retryFields = { ...key, reason: message }

export const pageQuery = { limit: wholeNumber(1, 1000, Number), cursor: textField(text(500)) }

export const deadLetterQuery = { ...pageQuery, type: name, reason_code: oneWordOf(reasonCodes) }

const eventType = textField(
  field({ type: 'string' }, value =>
    (feedTypes as readonly unknown[]).includes(value)
      ? undefined
      : `be one of ${feedTypes.join(', ')}; heartbeats are listed only with the events of their job`,
  ),
)

export const eventQuery = { ...pageQuery, type: eventType, since: dateTime, until: dateTime }
