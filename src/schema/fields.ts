/** Fields that tasks, their types, jobs and stages have in common, each with its range: said once, so that they agree. */
import { type Fields, field, nested, number, oneOf, orNull, text } from './check.ts'

export const year = 366 * 86_400

export const name = text(200)

export const priority = number({ from: -1_000_000, to: 1_000_000, whole: true })

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export function isId(id: unknown): id is string {
  return typeof id === 'string' && uuid.test(id)
}

/** The id of something that is to be made, where whoever makes it chooses it. */
export const chosenId = field<string>({ type: 'string', pattern: uuid.source.replaceAll('a-f', 'a-fA-F') }, value =>
  isId(value) ? undefined : 'be a UUID',
)

export const serverUrl = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && /^https?:\/\/[^/]/.test(value) && URL.canParse(value)
    ? undefined
    : 'be a URL that begins with http:// or https://',
)

/** The name of a schema of the database. */
export const schemaName = field<string>({ type: 'string' }, value =>
  typeof value === 'string' && /^[a-z_][a-z0-9_]{0,50}$/.test(value) ? undefined : 'be a plain lower-case name',
)

const w3c = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/
export const traceparent = field<string>({ type: 'string', pattern: w3c.source }, value =>
  typeof value === 'string' && w3c.test(value) ? undefined : 'be a W3C traceparent',
)

/** W3C has it that so many characters are passed on. */
export const tracestate = text(512)

const retryFields = {
  attempts: number({ from: 1, to: 1000, whole: true }),
  losses: orNull(number({ from: 1, to: 1000, whole: true })),
  delaySeconds: number({ from: 0, to: year }),
  factor: number({ from: 1, to: 100 }),
  maxSeconds: number({ from: 0, to: year }),
  jitter: oneOf([true, false]),
} satisfies Fields

/** How tasks are leased, retried and kept, as it may be said of a stage. */
export const settingFields = {
  retry: nested(retryFields),
  leaseSeconds: number({ from: 5, to: 7 * 86_400 }),
  heartbeatSeconds: orNull(number({ from: 1, to: 86_400 })),
  timeoutSeconds: orNull(number({ from: 0.001, to: year })),
  graceSeconds: number({ from: 0, to: 7 * 86_400 }),
  expireInSeconds: orNull(number({ from: 0.001, to: 10 * year })),
  keepSeconds: number({ from: 0, to: 100 * year }),
  keepDeadLetterSeconds: orNull(number({ from: 0, to: 100 * year })),
  deadLetter: oneOf(['exhausted', 'never']),
} satisfies Fields

/** How long the store may take for something, in seconds. */
export const boundSeconds = number({ from: 0.01, to: 86_400 })
