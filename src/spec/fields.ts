/** The fields of a job spec, as tables. Both the check and the JSON Schema are derived from them. */

import { whyNotStorable, writeJson } from '../kernel/json.ts'
import {
  type Field,
  faultOf,
  field,
  isObject,
  moment,
  nested,
  number,
  object,
  oneOf,
  orNull,
  text,
} from '../schema/check.ts'
import { chosenId, name, priority, settingFields, traceparent, tracestate, year } from '../schema/fields.ts'
import { checkCondition, type Gives, longestCondition } from './conditions.ts'
import { folderUri, inputField, runField, runnerField } from './file-fields.ts'
import type { JobSpec, StageSpec } from './job-spec.ts'

export const mostStages = 10_000

/** A list. Its elements are not checked here, but by `faultsIn`, which reports the place of each fault. */
export function listOf(items: Field, most: number, more: object = {}): Field {
  return field({ type: 'array', items, maxItems: most, ...more }, value => {
    if (!Array.isArray(value)) return 'be a list'
    return value.length > most ? `have at most ${most} elements, not ${value.length}` : undefined
  })
}

const json = field({}, value => {
  const made = writeJson(value)
  const why = 'error' in made ? made.error : whyNotStorable(made.text)
  return why && `be JSON that can be kept: ${why}`
})

const metadata = field(object, value => faultOf(object, value) ?? faultOf(json, value))

function condition(gives: Gives): Field {
  const short = text(longestCondition)
  return field(short, value => {
    const must = faultOf(short, value)
    const why = must === undefined ? checkCondition(value as string, gives) : undefined
    return why === undefined ? must : `be CEL: ${why}`
  })
}

const flag = oneOf([true, false])
const openness = oneOf([true, false, 'untilDone'])
const span = number({ from: 0.001, to: 10 * year })

const gateFields = {
  approvers: number({ from: 1, to: 100, whole: true }),
  timeoutSeconds: orNull(span),
  ask: text(10_000),
}

const toleranceFields = {
  count: number({ from: 0, to: 1_000_000_000, whole: true }),
  percent: number({ from: 0, to: 100 }),
}

/** An object of its own fields, or `true` for all of its defaults. */
function orTrue(other: Field): OrTrue {
  const schema = { anyOf: [{ type: 'boolean', const: true }, other] }
  const either = field(schema, value =>
    value === true ? undefined : isObject(value) ? faultOf(other, value) : 'be true or an object',
  )
  return Object.defineProperty(either, '~object', { value: other }) as OrTrue
}

export interface OrTrue extends Field {
  /** The schema of the object, so that each of its faults can be reported. */
  readonly '~object'?: Field
}

/** Requires a time zone: a time without one would differ between machines. */
const zoned = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/
const exactMoment = field({ type: 'string', pattern: zoned.source }, value =>
  typeof value === 'string' && !zoned.test(value)
    ? 'be ISO 8601 with its zone, as 2030-01-01T00:00:00Z'
    : faultOf(moment, value),
)

const stageFields = {
  name,
  needs: listOf(name, mostStages, { uniqueItems: true }),
  join: oneOf(['all', 'any', 'taken', 'done']),
  when: condition('boolean'),
  forEach: condition('list'),
  gives: condition('anything'),
  task: name,
  queue: name,
  run: runField,
  inputs: inputField,
  outputs: folderUri,
  reuse: flag,
  runner: runnerField,
  payload: json,
  payloads: listOf(json, 1_000_000),
  taskId: chosenId,
  taskMetadata: metadata,
  runAt: exactMoment,
  open: openness,
  tolerate: nested(toleranceFields),
  failFast: flag,
  onFailure: oneOf(['fail', 'failAtOnce', 'continue']),
  gate: orTrue(nested(gateFields)),
  parallelism: number({ from: 1, to: 1_000_000, whole: true }),
  compensate: nested({ task: name, queue: name }, ['task']),
  data: json,
  traceparent,
  metadata,
  ...settingFields,
} satisfies Record<keyof StageSpec, Field>

export const stageField = nested(stageFields, ['name'])

const jobFields = {
  id: chosenId,
  ifThere: oneOf(['refuse', 'add']),
  name,
  priority,
  input: json,
  metadata,
  correlationId: name,
  traceparent,
  tracestate,
  start: flag,
  open: openness,
  deadlineSeconds: orNull(span),
  staleSeconds: orNull(span),
  softDeadlineSeconds: orNull(span),
  hardDeadlineSeconds: orNull(span),
  leaseSeconds: settingFields.leaseSeconds,
  stages: listOf(stageField, mostStages),
} satisfies Record<keyof JobSpec, Field>

export const jobField = nested(jobFields, ['name'])
