/** What requests may hold. What is not known is passed over: within a version, later clients may say more. */

import { reasonCodes, steps } from '../../kernel/decide.ts'
import { Problem } from '../../kernel/problem.ts'
import {
  anything,
  checkOptions,
  type Field,
  type Fields,
  faultOf,
  field,
  isObject,
  moment,
  nested,
  number,
  oneOf,
  text,
} from '../../schema/check.ts'
import { name, priority, year } from '../../schema/fields.ts'
import { feedTypes } from './words.ts'

const key = { idempotency_key: name }
const holder: Fields = { worker: name, epoch: number({ from: 0, to: 2 ** 31 - 1, whole: true }), ...key }
const words = text(10_000)
const flag = oneOf([true, false])

const types: Field = field({ type: 'array', items: name, minItems: 1, maxItems: 1000 }, value =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.length <= 1000 &&
  value.every(each => faultOf(name, each) === undefined)
    ? undefined
    : 'be a list of the types of jobs that it takes',
)

export const enqueueFields: Fields = {
  ...key,
  type: name,
  payload: anything,
  correlation_id: name,
  trace_id: name,
  priority,
  run_at: moment,
  timeout_sec: number({ from: 0.001, to: year }),
  max_attempts: number({ from: 1, to: 1000, whole: true }),
  on_exhausted: oneOf(['failed', 'dead_lettered']),
  backoff: nested({
    base_sec: number({ from: 0, to: year }),
    factor: number({ from: 1, to: 100 }),
    max_sec: number({ from: 0, to: year }),
    jitter: flag,
  }),
}

export const claimFields: Fields = {
  ...key,
  worker: name,
  types,
  lease_sec: number({ from: 30, to: 120 }),
  heartbeat_sec: number({ from: 10, to: 30 }),
  wait_sec: number({ from: 0, to: 60 }),
}

export const startFields: Fields = holder
export const heartbeatFields: Fields = { ...holder, progress: anything, checkpoint: anything }
export const succeedFields: Fields = { ...holder, result: anything }
export const failFields: Fields = {
  ...holder,
  error_class: name,
  message: words,
  stack: words,
  stage: oneOf(steps),
  retry_in_sec: number({ from: 0, to: year }),
}
export const cancelFields: Fields = { ...holder, mode: oneOf(['soft', 'hard']), soft: flag, hard: flag, reason: words }
export const deadLetterFields: Fields = {
  ...holder,
  reason_code: oneOf(reasonCodes),
  stage: oneOf(steps),
  reason: words,
}
export const retryFields: Fields = { ...key, reason: words }

const eventType = field({}, value =>
  (feedTypes as readonly unknown[]).includes(value)
    ? undefined
    : `be one of ${feedTypes.join(', ')}; heartbeats are among the events of their job`,
)

/** The list of all events. */
const eventQueryFields: Fields = {
  type: eventType,
  since: moment,
  until: moment,
  limit: number({ from: 1, to: 1000, whole: true }),
  cursor: text(500),
}

export interface EventQuery {
  readonly type?: string
  readonly since?: string
  readonly until?: string
  readonly limit?: number
  readonly cursor?: string
}

export function readEventQuery(query: Readonly<Record<string, unknown>>): EventQuery {
  const known = Object.entries(query).filter(([word]) => Object.hasOwn(eventQueryFields, word))
  const said = { ...Object.fromEntries(known), ...pageOf(query) }
  checkOptions(said, eventQueryFields, 'query')
  return said
}

/** Said as null, a field is as good as not said; what is only handed on may be null. */
export function readBody<Body>(body: unknown, fields: Fields, required: readonly (keyof Body & string)[] = []): Body {
  if (body !== undefined && body !== null && !isObject(body)) {
    throw new Problem('BODY_INVALID', { why: 'it must be an object' })
  }
  const isSaid = ([word, value]: [string, unknown]) =>
    Object.hasOwn(fields, word) && (value !== null || fields[word] === anything)
  const said: Record<string, unknown> = Object.fromEntries(Object.entries(body ?? {}).filter(isSaid))
  checkOptions(said, fields, 'body')
  const missing = required.find(word => said[word] === undefined)
  if (missing !== undefined) throw new Problem('OPTION_INVALID', { at: 'body', option: missing, must: 'be given' })
  return said as Body
}

/** A page of a list: a query holds texts only. */
export function pageOf({ limit, cursor }: Readonly<Record<string, unknown>>): { limit?: number; cursor?: string } {
  return {
    ...(limit !== undefined && { limit: Number(limit) }),
    ...(cursor !== undefined && { cursor: String(cursor) }),
  }
}
