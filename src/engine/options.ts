import { outcomes, reasonCodes, steps } from '../kernel/decide.ts'
import type { TaskSettings } from '../kernel/settings.ts'
import type { TaskTypeOptions } from '../protocol/tasks.ts'
import { anything, type Fields, moment, nested, number, oneOf, orNull, text } from './check.ts'

const year = 366 * 86_400
const name = text(200)

const retryFields: Fields = {
  attempts: number({ from: 1, to: 1000, whole: true }),
  losses: number({ from: 1, to: 1000, whole: true }),
  delaySeconds: number({ from: 0, to: year }),
  factor: number({ from: 1, to: 100 }),
  maxSeconds: number({ from: 0, to: year }),
  jitter: oneOf([true, false]),
}

export const taskTypeFields: Fields = {
  retry: nested(retryFields),
  leaseSeconds: number({ from: 5, to: 7 * 86_400 }),
  heartbeatSeconds: orNull(number({ from: 1, to: 86_400 })),
  timeoutSeconds: orNull(number({ from: 0.001, to: year })),
  graceSeconds: number({ from: 0, to: 7 * 86_400 }),
  expireInSeconds: orNull(number({ from: 0.001, to: 10 * year })),
  keepSeconds: number({ from: 0, to: 100 * year }),
  dedupeSeconds: number({ from: 0, to: 10 * year }),
  deadLetter: oneOf(['exhausted', 'never']),
}

export const taskFields: Fields = {
  ...taskTypeFields,
  type: name,
  payload: anything,
  queue: name,
  priority: number({ from: -1_000_000, to: 1_000_000, whole: true }),
  runAt: moment,
  runInSeconds: number({ from: 0, to: 10 * year }),
  keepUntil: moment,
  dedupeKey: text(500),
  correlationId: text(200),
  traceparent: value =>
    typeof value === 'string' && /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/.test(value)
      ? undefined
      : 'be a W3C traceparent',
  metadata: value =>
    typeof value === 'object' && value !== null && !Array.isArray(value) ? undefined : 'be an object',
}

const errorFields: Fields = {
  message: anything,
  stack: anything,
  permanent: oneOf([true, false]),
  retryInSeconds: number({ from: 0, to: year }),
  reasonCode: oneOf(reasonCodes),
  step: oneOf(steps),
}

export const settledFields: Fields = {
  id: anything,
  epoch: anything,
  outcome: oneOf(outcomes),
  output: anything,
  error: nested(errorFields),
  partial: oneOf([true, false]),
  reason: text(10_000),
  ranMs: number({ from: 0, to: year * 1000 }),
}

export const startedFields: Fields = {
  id: anything,
  epoch: anything,
  agoMs: number({ from: 0, to: year * 1000 }),
}

export const beatFields: Fields = { id: anything, epoch: anything, progress: anything, checkpoint: anything }

/** What goes with every request that changes something. */
export const callFields: Fields = { tx: anything, actor: name, idempotencyKey: name, holder: name }

export const controlFields: Fields = { ...callFields, reason: text(10_000) }
export const cancelFields: Fields = { ...controlFields, mode: oneOf(['soft', 'hard']) }
export const deadLetterFields: Fields = { ...controlFields, reasonCode: oneOf(reasonCodes), step: oneOf(steps) }

export const redriveFields: Fields = {
  ids: value => (Array.isArray(value) && value.length <= 1000 ? undefined : 'be a list of at most 1000 ids'),
  queue: name,
  type: name,
  reasonCode: oneOf(reasonCodes),
  dryRun: oneOf([true, false]),
  ratePerSecond: number({ from: 0.001, to: 1_000_000 }),
  payload: anything,
  limit: number({ from: 1, to: 1000, whole: true }),
  reason: text(10_000),
}

/** Settings as they are kept: flat, and only those that were said. */
export function settingsOf(options: TaskTypeOptions): Partial<TaskSettings> | undefined {
  const { retry, leaseSeconds, heartbeatSeconds, timeoutSeconds, graceSeconds } = options
  const { expireInSeconds, keepSeconds, dedupeSeconds, deadLetter } = options
  const all = {
    leaseSeconds,
    heartbeatSeconds,
    timeoutSeconds,
    graceSeconds,
    expireInSeconds,
    keepSeconds,
    dedupeSeconds,
    deadLetter,
    ...retry,
  }
  const said = Object.entries(all).filter(([, value]) => value !== undefined)
  return said.length === 0 ? undefined : Object.fromEntries(said)
}
