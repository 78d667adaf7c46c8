import { outcomes, reasonCodes, steps } from '../kernel/decide.ts'
import { name, priority, settingFields, traceparent, year } from '../kernel/fields.ts'
import { Problem } from '../kernel/problem.ts'
import type { TaskSettings } from '../kernel/settings.ts'
import { anything, type Fields, moment, nested, number, object, oneOf, orNull, text } from './check.ts'

export { settingsOf } from '../kernel/settings.ts'

const span = orNull(number({ from: 0.001, to: 10 * year }))

export const taskTypeFields: Fields = {
  ...settingFields,
  dedupeSeconds: number({ from: 0, to: 10 * year }),
  softDeadlineSeconds: span,
  hardDeadlineSeconds: span,
}

/** What must be done by a time should not be done only later. */
export function checkDeadlines(said: Partial<TaskSettings>, at: string): void {
  const { softDeadlineSeconds: soft, hardDeadlineSeconds: hard } = said
  if (typeof soft !== 'number' || typeof hard !== 'number' || soft <= hard) return
  const must = `not be before softDeadlineSeconds, which is ${soft}`
  throw new Problem('OPTION_INVALID', { at, option: 'hardDeadlineSeconds', must })
}

export const taskFields: Fields = {
  ...taskTypeFields,
  type: name,
  payload: anything,
  queue: name,
  priority,
  runAt: moment,
  runInSeconds: number({ from: 0, to: 10 * year }),
  keepUntil: moment,
  dedupeKey: text(500),
  correlationId: name,
  traceparent,
  metadata: object,
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
  spawn: value => (Array.isArray(value) && value.length <= 10_000 ? undefined : 'be a list of at most 10,000 tasks'),
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
