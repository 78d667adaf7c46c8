/** Fields that tasks, their types, jobs and stages have in common, each with its range. */
import { type Field, type Fields, faultOf, field, flag, nested, number, oneOf, orNull, text } from './check.ts'

export const year = 366 * 86_400

export const name = text(200)

export const names = (most: number): Field<readonly string[]> =>
  field({ type: 'array', items: name, maxItems: most }, value =>
    Array.isArray(value) && value.length <= most && value.every(item => faultOf(name, item) === undefined)
      ? undefined
      : 'be a list of names',
  )

/** An explanation for people. */
export const reason = text(10_000)

export const priority = number({ from: -1_000_000, to: 1_000_000, whole: true })

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isId(id: unknown): id is string {
  return typeof id === 'string' && uuid.test(id)
}

/** An id that the creator of an entity chooses. */
export const chosenId = field<string>({ type: 'string', pattern: uuid.source.replaceAll('a-f', 'a-fA-F') }, value =>
  isId(value) ? undefined : 'be a UUID',
)

export const serverUrl = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && /^https?:\/\/[^/]/.test(value) && URL.canParse(value)
    ? undefined
    : 'be a URL that begins with http:// or https://',
)

/** The name of a database schema. */
export const schemaName = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && /^[a-z_][a-z0-9_]{0,50}$/.test(value) ? undefined : 'be a lower-case name',
)

const w3c = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
export const traceparent = field<string>({ type: 'string', pattern: w3c.source }, value =>
  typeof value === 'string' && w3c.test(value) ? undefined : 'be a W3C traceparent',
)

/** The W3C specification requires at least 512 characters to be propagated. */
export const tracestate = text(512)

const retryFields = {
  /** Maximum number of failures, including the first try. Default 3. */
  attempts: number({ from: 1, to: 1000, whole: true }),
  /**
   * Maximum number of lost workers; null: each counts as a failure, so that a task is tried `attempts` times in total.
   * Default 3.
   */
  losses: orNull(number({ from: 1, to: 1000, whole: true })),
  /** Default 0.5. */
  delaySeconds: number({ from: 0, to: year }),
  /** Default 2. */
  factor: number({ from: 1, to: 100 }),
  /** Default 60. */
  maxSeconds: number({ from: 0, to: year }),
  /** Default true. */
  jitter: flag,
} satisfies Fields

/** How tasks are leased, retried and kept. A stage can set these fields too. */
export const settingFields = {
  retry: nested(retryFields),
  /** Default 60. */
  leaseSeconds: number({ from: 5, to: 7 * 86_400 }),
  /** Default 10; null: none. */
  heartbeatSeconds: orNull(number({ from: 1, to: 86_400 })),
  /** Default: no limit. */
  timeoutSeconds: orNull(number({ from: 0.001, to: year })),
  /** Default 30. */
  graceSeconds: number({ from: 0, to: 7 * 86_400 }),
  /** Default: never. */
  expireInSeconds: orNull(number({ from: 0.001, to: 10 * year })),
  /** How long an ended task is kept, unless it is a dead letter. Default 14 days. */
  keepSeconds: number({ from: 0, to: 100 * year }),
  /** How long a dead letter is kept. Default null: until somebody redrives or deletes it. */
  keepDeadLetterSeconds: orNull(number({ from: 0, to: 100 * year })),
  /** Default 'exhausted'. */
  deadLetter: oneOf(['exhausted', 'never']),
} satisfies Fields

/** A time limit for the store, in seconds. */
export const boundSeconds = number({ from: 0.01, to: 86_400 })
