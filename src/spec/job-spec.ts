/**
 * The fields of a job spec as written in TypeScript, JSON or YAML, as tables. Their types, their checks and the JSON
 * Schema are derived from them. The comments are also the descriptions in docs/job.schema.json.
 */
import { whyNotStorable, writeJson } from '../kernel/json.ts'
import {
  type Field,
  type Fields,
  faultOf,
  field,
  isObject,
  moment,
  nested,
  number,
  object,
  oneOf,
  orNull,
  type Schema,
  type Static,
  text,
  type ValueOf,
} from '../schema/check.ts'
import { chosenId, name, priority, settingFields, traceparent, tracestate, year } from '../schema/fields.ts'
import { checkCondition, type Gives, longestCondition } from './conditions.ts'
import { folderUri, inputField, inputSchema, runField, runnerField } from './file-fields.ts'
import { jobRules, type Rule, stageRules } from './rules.ts'

export const mostStages = 10_000

/** A list. Its elements are not checked here, but by `faultsIn`, which reports the place of each fault. */
export function listOf<Item extends Field>(
  items: Item,
  most: number,
  more: object = {},
): Field<readonly ValueOf<Item>[]> {
  return field({ type: 'array', items, maxItems: most, ...more }, value => {
    if (!Array.isArray(value)) return 'be a list'
    return value.length > most ? `have at most ${most} elements, not ${value.length}` : undefined
  })
}

const json = field({}, value => {
  const made = writeJson(value)
  const why = 'error' in made ? made.error : whyNotStorable(made.text)
  return why && `be JSON that can be stored: ${why}`
})

const metadata = field<Record<string, unknown>>(object, value => faultOf(object, value) ?? faultOf(json, value))

function condition(gives: Gives): Field<string> {
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
  /** Number of approvers required. Default 1. */
  approvers: number({ from: 1, to: 100, whole: true }),
  /** The stage fails if it is not approved in this time. Default: no limit. */
  timeoutSeconds: orNull(span),
  /** Question shown to the approver. */
  ask: text(10_000),
}
const gate = nested(gateFields)
/** An approval that a stage needs before it opens. */
export interface GateSpec extends Static<typeof gate> {}

const compensateFields = {
  /** Type of the undo task. Its payload holds the payload and the output of the task that it undoes. */
  task: name,
  /** Default: the type of the undo task. */
  queue: name,
}
const compensate = nested(compensateFields, ['task'])
/** The tasks that undo a stage. */
export interface CompensateSpec extends Static<typeof compensate> {}

const toleranceFields = {
  count: number({ from: 0, to: 1_000_000_000, whole: true }),
  percent: number({ from: 0, to: 100 }),
}

/** An object of its own fields, or `true` for all of its defaults. */
function orTrue<Other extends Field>(other: Other): OrTrue<true | ValueOf<Other>> {
  const schema = { anyOf: [{ type: 'boolean', const: true }, other] }
  const either = field(schema, value =>
    value === true ? undefined : isObject(value) ? faultOf(other, value) : 'be true or an object',
  )
  return Object.defineProperty(either, '~object', { value: other }) as OrTrue<true | ValueOf<Other>>
}

export interface OrTrue<Value = unknown> extends Field<Value> {
  /** The schema of the object, so that each of its faults can be reported. */
  readonly '~object'?: Field
}

/** Requires a time zone: a time without one would differ between machines. */
const zoned = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/
const exactMoment = field<Date | string>({ type: 'string', pattern: zoned.source }, value =>
  typeof value === 'string' && !zoned.test(value)
    ? 'be an ISO 8601 time with a time zone, such as 2030-01-01T00:00:00Z'
    : faultOf(moment, value),
)

const stageFields = {
  /** Unique within the job. */
  name,
  /** Names of the stages it depends on. Default: the previous stage in the list. []: none, it opens at once. */
  needs: listOf(name, mostStages, { uniqueItems: true }),
  /**
   * When the stage opens. `all`: all needs are met. `any`: one is met. `taken`: like `all`, but a need whose tasks skipped
   * themselves counts as skipped. `done`: all needs have ended, with any outcome. Except for `done`, a stage is skipped
   * if all stages in its `needs` were skipped. Default all.
   */
  join: oneOf(['all', 'any', 'taken', 'done']),
  /** CEL condition over `input` and `stages`. If it is false, the stage is skipped. */
  when: condition('boolean'),
  /** CEL expression for a list. Each element becomes the payload of one task. */
  forEach: condition('list'),
  /** CEL expression over `input` and `stages` for the output of the stage. Such a stage has no tasks and ends at once. */
  gives: condition('anything'),
  /**
   * Type of its tasks. Not needed for a stage that is only a gate, or if the tasks added to an open stage name their
   * type.
   */
  task: name,
  /** Default: the task type. */
  queue: name,
  /** Command that its tasks run, on workers started with `--commands`. Replaces `task`. */
  run: runField,
  /** Input files, listed when the stage opens. Each datum becomes one task. */
  inputs: inputField,
  /** Folder for the output files of its tasks, `file://…` or `s3://…`. Each file is published exactly once. */
  outputs: folderUri,
  /** True: skip a datum if the same command has already processed it with the same inputs and settings. Default false. */
  reuse: flag,
  /**
   * Where the workers for its command run. `local`: in a server with `--commands`, or workers that you start for the
   * queue. `kubernetes`: in pods that Pawl starts. Default local.
   */
  runner: runnerField,
  /** Payload of its only task. Default null. */
  payload: json,
  /** Payloads. Each becomes one task. */
  payloads: listOf(json, 1_000_000),
  /** Id of its only task, a UUID. Default: a new one. */
  taskId: chosenId,
  /** Metadata of each of its tasks. */
  taskMetadata: metadata,
  /** Its tasks are not claimed before this time. */
  runAt: exactMoment,
  /**
   * True: tasks can be added until the stage is sealed. `untilDone`: until all of its tasks, at least one, have ended.
   * Default false.
   */
  open: openness,
  /**
   * How many tasks may end without success, as a count or in percent. The stage is then partial instead of failed.
   * Default none.
   */
  tolerate: nested(toleranceFields),
  /** False: let all tasks finish even if too many have already failed. Default true. */
  failFast: flag,
  /**
   * Effect on the job if the stage fails. `continue`: the job goes on and ends as partial. `failAtOnce`: the job fails as
   * soon as the stage is certain to fail, without waiting for running tasks. Default fail.
   */
  onFailure: oneOf(['fail', 'failAtOnce', 'continue']),
  /** The stage opens only after approval. True: one approver and no time limit. */
  gate: orTrue<Field<GateSpec>>(gate),
  /** Maximum number of its tasks that are claimed at the same time. Default: no limit. */
  parallelism: number({ from: 1, to: 1_000_000, whole: true }),
  /** Undoes each of its succeeded tasks if the job fails or is cancelled later. */
  compensate: compensate as Field<CompensateSpec>,
  /** Any JSON for the workers of its tasks. The engine does not read it. Default null. */
  data: json,
  /** W3C trace context of its tasks. Default: the job's. */
  traceparent,
  /** Any data for people and tools. The engine does not read it. */
  metadata,
  ...settingFields,
} satisfies Fields

const stageField = nested(stageFields, ['name'])
/** A stage of a job. Its settings for tasks (retry, leaseSeconds, …) override those of the task type. */
export interface StageSpec extends Static<typeof stageField> {}

const jobFields = {
  /** Id of the job, a UUID. Default: a new one. */
  id: chosenId,
  /**
   * If a job with this `id` exists: `add` adds the stages to it and ignores the other fields. The job must be open, or
   * have been `untilDone` and have ended well. Default refuse.
   */
  ifThere: oneOf(['refuse', 'add']),
  /** Name of the job. It need not be unique. */
  name,
  /** Higher priorities run first. Default 0. */
  priority,
  /** Any JSON; conditions read it as `input`. Default null. */
  input: json,
  /** Any data for people and tools. The engine does not read it. */
  metadata,
  /** Links the job to the request or process that caused it. */
  correlationId: name,
  /** W3C trace context. */
  traceparent,
  /** W3C trace state: vendor-specific data that accompanies `traceparent`. */
  tracestate,
  /** False: the job waits until it is started. Default true. */
  start: flag,
  /**
   * True: stages can be added until the job is sealed. `untilDone`: until all of its stages, at least one, have ended.
   * Default false.
   */
  open: openness,
  /** Time limit from the start of the job. After it, the job is stopped and expires. Default: no limit. */
  deadlineSeconds: orNull(span),
  /** The job fails after this long without progress and without a running task. Default: off. */
  staleSeconds: orNull(span),
  /** When the job should have ended. Its priority rises as the time approaches. */
  softDeadlineSeconds: orNull(span),
  /** When the job must have ended. Its priority rises further. */
  hardDeadlineSeconds: orNull(span),
  /** Lease duration of all tasks, including those of stages added later, unless the stage or task sets its own. */
  leaseSeconds: settingFields.leaseSeconds,
  /** Stages in order. Each needs the previous one unless it has `needs`. Only an open job may have none. */
  stages: listOf<Field<StageSpec>>(stageField, mostStages),
} satisfies Fields

export const jobField = nested(jobFields, ['name'])
/** A job to submit: stages and their dependencies. */
export interface JobSpec extends Static<typeof jobField> {}

export function jobSpecSchema(): Schema {
  const job = withRules(jobField, jobRules)
  const properties = job.properties as Record<string, Schema>
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'A job of Pawl',
    ...job,
    properties: { ...properties, stages: { ...properties.stages, items: { $ref: '#/$defs/stage' } } },
    $defs: { stage: withRules(stageField, stageRules), inputs: inputSchema },
  }
}

function withRules(schema: Schema, rules: readonly Rule[]): Schema {
  return { ...schema, allOf: rules.map(rule => rule.schema) }
}
