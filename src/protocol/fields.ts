/**
 * What may be said in a request, as tables of fields. The engine checks by them, the server reads queries by them, and
 * the OpenAPI document is read off them.
 */

import { outcomes, reasonCodes, steps } from '../kernel/decide.ts'
import { type Lifecycle, statesOf } from '../kernel/lifecycle.ts'
import { lifecycles } from '../kernel/lifecycles.ts'
import { Problem } from '../kernel/problem.ts'
import { roles } from '../kernel/role.ts'
import type { TaskSettings } from '../kernel/settings.ts'
import {
  anything,
  type Field,
  type Fields,
  faultOf,
  field,
  firstFault,
  isObject,
  moment,
  nested,
  number,
  object,
  oneOf,
  orNull,
  text,
} from '../schema/check.ts'
import { chosenId, name, priority, settingFields, traceparent, year } from '../schema/fields.ts'
import { logLevels, logLimits } from './tasks/logs.ts'
import { type OneOutcome, settleParts } from './tasks/sync.ts'

const flag = oneOf([true, false])
const why = text(10_000)

/** A list of at most so many; what its elements hold is checked by whoever can say which one is at fault. */
function listOf(items: Field, most: number): Field {
  return field({ type: 'array', items, maxItems: most }, value =>
    Array.isArray(value) && value.length <= most ? undefined : `be a list of at most ${most.toLocaleString('en')}`,
  )
}

/** One of the words, or several of them. */
export function some(words: readonly string[]): Field {
  const one = oneOf(words)
  const schema = { anyOf: [one, { type: 'array', items: one, maxItems: words.length }] }
  return field(schema, value => (Array.isArray(value) ? firstFault(one, value) : faultOf(one, value)))
}

export const names = (most: number): Field =>
  field({ type: 'array', items: name, maxItems: most }, value =>
    Array.isArray(value) && value.length <= most && value.every(item => faultOf(name, item) === undefined)
      ? undefined
      : 'be a list of names',
  )

export const maxClaim = 1000
export const maxTasksPerCall = 10_000
/** Most items of one kind in a sync. */
export const mostReports = 5000

const span = orNull(number({ from: 0.001, to: 10 * year }))

export const taskTypeFields: Fields = {
  ...settingFields,
  dedupeSeconds: number({ from: 0, to: 10 * year }),
  softDeadlineSeconds: span,
  hardDeadlineSeconds: span,
}

const payloadSchema = field({ type: ['object', 'null'] }, value =>
  value === null || isObject(value) ? undefined : 'be a JSON Schema, as an object, or null',
)
export const taskTypeRecordFields: Fields = { ...taskTypeFields, payloadSchema }

/** What must be done by a time should not be done only later. */
export function checkDeadlines(said: Partial<TaskSettings>, at: string): void {
  const { softDeadlineSeconds: soft, hardDeadlineSeconds: hard } = said
  if (typeof soft !== 'number' || typeof hard !== 'number' || soft <= hard) return
  const must = `not be before softDeadlineSeconds, which is ${soft}`
  throw new Problem('OPTION_INVALID', { at, option: 'hardDeadlineSeconds', must })
}

export const taskFields: Fields = {
  ...taskTypeFields,
  id: chosenId,
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
  name,
  stack: anything,
  output: anything,
  permanent: flag,
  retryInSeconds: number({ from: 0, to: year }),
  reasonCode: oneOf(reasonCodes),
  step: oneOf(steps),
}

const id = field({ type: 'string', format: 'uuid' }, () => undefined)
const epoch = field({ type: 'integer', minimum: 0 }, () => undefined)
const held: Fields = { id, epoch }

const lineFields = nested(
  {
    n: number({ from: 1, to: 2 ** 31 - 1, whole: true }),
    agoMs: number({ from: 0, to: year * 1000 }),
    level: oneOf(logLevels),
    message: field({ type: 'string' }, value => (typeof value === 'string' ? undefined : 'be a text')),
    facts: object,
  },
  ['n', 'message'],
)
const mostLines = logLimits.lines + 1
const logs = field({ type: 'array', items: lineFields, maxItems: mostLines }, value =>
  Array.isArray(value) && value.length <= mostLines
    ? firstFault(lineFields, value)
    : `be a list of at most ${mostLines} lines`,
)

const spawnedFields: Fields = { stage: name, type: name, payload: anything }

export const settledFields: Fields = {
  ...held,
  outcome: oneOf(outcomes),
  output: anything,
  error: nested(errorFields),
  partial: flag,
  reason: why,
  spawn: listOf(nested(spawnedFields), maxTasksPerCall),
  ranMs: number({ from: 0, to: year * 1000 }),
  logs,
}

export const startedFields: Fields = { ...held, agoMs: number({ from: 0, to: year * 1000 }) }

export const beatFields: Fields = { ...held, progress: anything, checkpoint: anything, logs }

/** An index holds it. */
const longestName = 2000

const saidArtifact: Fields = {
  name: field({ type: 'string', minLength: 1, maxLength: longestName }, value =>
    typeof value === 'string' && Buffer.byteLength(value) > longestName
      ? `have at most ${longestName} bytes`
      : faultOf(text(longestName), value),
  ),
  uri: text(8000),
  state: oneOf(['registered', 'uploaded', 'error']),
  stagedUri: text(8000),
  size: number({ from: 0, to: Number.MAX_SAFE_INTEGER, whole: true }),
  sha256: field({ type: 'string', pattern: '^[0-9a-f]{64}$' }, value =>
    typeof value === 'string' && /^[0-9a-f]{64}$/.test(value) ? undefined : 'be 64 hexadecimal digits',
  ),
  error: why,
}
export const artifactFields: Fields = { ...held, ...saidArtifact }

/** The files of one task. */
export const artifactsFields: Fields = {
  artifacts: listOf(nested(saidArtifact, ['name', 'uri', 'state']), mostReports),
  whole: oneOf([true]),
}

/** Items are looked at one by one: a bad one is refused, its neighbours go on. */
const batchOf = (fields: Fields): Field =>
  field({ type: 'array', items: nested(fields, ['id', 'epoch']), maxItems: mostReports }, value =>
    Array.isArray(value) && value.length <= mostReports && value.every(isObject)
      ? undefined
      : `be a list of at most ${mostReports} objects`,
  )

const askFields: Fields = {
  worker: name,
  session: chosenId,
  syncId: name,
  queues: names(1000),
  slots: number({ from: 1, to: 1_000_000, whole: true }),
  claim: number({ from: 0, to: maxClaim, whole: true }),
  waitSeconds: number({ from: 0, to: 60 }),
}

const { leaseSeconds, heartbeatSeconds } = settingFields
/** A claim alone, as a shell script asks for it. */
export const claimFields: Fields = {
  ...askFields,
  start: flag,
  unlessHolding: flag,
  leaseSeconds,
  heartbeatSeconds,
  defaultHeartbeatSeconds: number({ from: 1, to: 86_400 }),
}

export const syncFields: Fields = {
  ...askFields,
  started: batchOf(startedFields),
  beats: batchOf(beatFields),
  artifacts: batchOf(artifactFields),
  settled: batchOf(settledFields),
}

/** What a settle of one task may hold. */
export function settleOneFields(outcome: OneOutcome): Fields {
  return Object.fromEntries(settleParts[outcome].map(part => [part, settledFields[part]!]))
}

export const heartbeatFields: Fields = { progress: anything, checkpoint: anything }

const onceFields = { idempotencyKey: name, holder: name, asked: anything }
/** What goes with every request that changes something; over HTTP it is in headers, never in a body. */
export const callFields: Fields = { tx: anything, actor: name, ...onceFields, traceparent }

const reasonFields: Fields = { reason: why }
const mode = oneOf(['soft', 'hard'])
export const fence = { epoch: number({ from: 0, to: 2 ** 31 - 1, whole: true }) }
const deadLetterWords = { reasonCode: oneOf(reasonCodes), step: oneOf(steps) }

const everyState = [...new Set(lifecycles.flatMap(lifecycle => statesOf(lifecycle as Lifecycle)))]

export const controlFields: Fields = { ...callFields, ...reasonFields, ifState: some(everyState) }
const { tx: _, ...remoteCallFields } = callFields
export const loseWorkerFields: Fields = { ...remoteCallFields, ...reasonFields }
export const cancelFields: Fields = { ...controlFields, mode }
export const cancelTaskFields: Fields = { ...cancelFields, ...fence }
export const deadLetterFields: Fields = { ...controlFields, ...deadLetterWords, ...fence }
export const approveFields: Fields = { ...controlFields, comment: why, data: anything }
export const retryJobFields: Fields = { ...controlFields, clone: flag, name }

/** What an error says, which may be nothing. */
export const message = field({ type: 'string', maxLength: 10_000 }, value =>
  value === '' ? undefined : faultOf(why, value),
)

/** Most dead letters of one redrive. */
export const mostRedriven = 1_000_000

export const redriveFields: Fields = {
  ids: listOf(id, 10_000),
  queue: name,
  type: name,
  reasonCode: oneOf(reasonCodes),
  message,
  dryRun: flag,
  ratePerSecond: number({ from: 0.001, to: 1_000_000 }),
  payload: anything,
  limit: number({ from: 1, to: mostRedriven, whole: true }),
  reason: why,
}

const metadata = orNull(object)
export const metadataFields: Fields = { metadata, replace: flag }
export const jobPatchFields: Fields = { ...metadataFields, priority }

const roleNames = Object.keys(roles)
const rolesField = field(
  { type: 'array', items: { type: 'string', enum: roleNames }, minItems: 1, maxItems: roleNames.length },
  value =>
    Array.isArray(value) && value.length > 0 && value.every(role => roleNames.includes(role))
      ? undefined
      : `be a list of ${roleNames.join(', ')}, with at least one of them`,
)
export const keyFields: Fields = { name, role: oneOf(roleNames), roles: rolesField, queues: names(100) }

export const stageTaskFields: Fields = {
  ...settingFields,
  type: name,
  payload: anything,
  metadata: object,
  traceparent: orNull(traceparent),
}

/** The fields without those of the call. */
export function bodyOf(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !Object.hasOwn(callFields, key)))
}
