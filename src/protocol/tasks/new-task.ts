/** Options of a new task and of all tasks of a type, and the types that a process knows. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { writeJson } from '../../kernel/json.ts'
import { Problem } from '../../kernel/problem.ts'
import type { TaskSettings } from '../../kernel/settings.ts'
import {
  anything,
  type Fields,
  field,
  isObject,
  moment,
  nested,
  number,
  type OptionsOf,
  object,
  orNull,
  type Static,
  text,
} from '../../schema/check.ts'
import { chosenId, name, priority, settingFields, traceparent, year } from '../../schema/fields.ts'

/** Maximum number of tasks in one call. */
export const maxTasksPerCall = 10_000

const span = orNull(number({ from: 0.001, to: 10 * year }))

const typeFields = {
  /** How long an ended task still blocks its dedupeKey. Default 0. */
  dedupeSeconds: number({ from: 0, to: 10 * year }),
  /** The task is late this long after it was queued, and is then claimed before all work that is not. Default: never. */
  softDeadlineSeconds: span,
  /** After this time it is claimed before all work that is only late. In a job, the job sets both. Default: never. */
  hardDeadlineSeconds: span,
} satisfies Fields

export const taskTypeFields = { ...settingFields, ...typeFields }

const payloadSchema = field<Readonly<Record<string, unknown>> | null>({ type: ['object', 'null'] }, value =>
  value === null || isObject(value) ? undefined : 'be a JSON Schema, as an object, or null',
)
const recordFields = {
  /** JSON Schema of its payloads. Default: the schema that was set before stays. */
  payloadSchema,
} satisfies Fields

export const taskTypeRecordFields = { ...taskTypeFields, ...recordFields }

const itemFields = {
  /** A UUID. Lists are ordered by id; ids that Pawl generates are ordered by time. Default: a new one. */
  id: chosenId,
  type: name,
  payload: anything,
  /** Default: the type. */
  queue: name,
  /** Higher priorities are claimed first. Default 0. */
  priority,
  /** Earliest start, by the database's clock. */
  runAt: moment,
  /** Earliest start, in seconds from now. */
  runInSeconds: number({ from: 0, to: 10 * year }),
  keepUntil: moment,
  /** While a task with this key in the same queue has not ended, no other is queued: the answer is the existing task. */
  dedupeKey: text(500),
  correlationId: name,
  /** W3C trace context. */
  traceparent,
  metadata: object,
} satisfies Fields

export const taskFields = { ...taskTypeFields, ...itemFields }

const newItem = nested(itemFields, ['type'])
type NewItem = Static<typeof newItem>

// A declaration file repeats no comment from another file, so the types of the tables are joined by name.
/** How often and how fast failed tasks are retried. */
export type RetryOptions = NonNullable<TaskTypeOptions['retry']>
/** How tasks of a type are leased, retried and kept. */
export interface TaskTypeOptions extends OptionsOf<typeof settingFields>, OptionsOf<typeof typeFields> {}
/** All settings of a type. */
export interface TaskTypeRecord extends TaskTypeOptions, OptionsOf<typeof recordFields> {}
/** Options of a new task, without type and payload. */
export interface TaskOptions extends TaskTypeOptions, Omit<NewItem, 'type' | 'payload'> {}
/** A task to enqueue. */
export interface NewTaskItem extends TaskTypeOptions, NewItem {}

/** A hard deadline must not come before the soft one. */
export function checkDeadlines(options: Partial<TaskSettings>, at: string): void {
  const { softDeadlineSeconds: soft, hardDeadlineSeconds: hard } = options
  if (typeof soft !== 'number' || typeof hard !== 'number' || soft <= hard) return
  const must = `not be before softDeadlineSeconds, which is ${soft}`
  throw new Problem('OPTION_INVALID', { at, option: 'hardDeadlineSeconds', must })
}

/**
 * A task type in this process. `In` is the queued payload; the handler gets the output of the schema. `Out` is what it
 * returns.
 */
export interface TaskDefinition<In = unknown, Out = unknown> {
  readonly type: string
  readonly schema: StandardSchemaV1<In, unknown> | undefined
  readonly options: TaskTypeOptions
  /** Never set: it only carries the type. */
  readonly output$?: Out
}

/** Validates a payload and returns the output of the schema. Throws a problem that lists all issues. */
export async function checkPayload(definition: TaskDefinition, payload: unknown, at: string): Promise<unknown> {
  if (definition.schema === undefined) return payload
  const refused = (issues: readonly string[], cause?: unknown) =>
    new Problem('PAYLOAD_REFUSED', { at, type: definition.type, issues }, cause)
  let result: StandardSchemaV1.Result<unknown>
  try {
    result = await definition.schema['~standard'].validate(payload)
  } catch (error) {
    throw refused([`its check throws: ${error instanceof Error ? error.message : String(error)}`], error)
  }
  if (result.issues === undefined) return result.value
  const issues = result.issues.map(({ message, path = [] }) => {
    const where = path.map(key => String(typeof key === 'object' ? key.key : key)).join('.')
    return where === '' ? message : `${where}: ${message}`
  })
  throw refused(issues)
}

/** Checks the payloads of tasks against the schemas of the types that this process has registered. */
export async function checkPayloads(
  registered: ReadonlyMap<string, TaskDefinition>,
  items: readonly Pick<NewTaskItem, 'type' | 'payload'>[],
): Promise<void> {
  if (registered.size === 0) return
  for (const [index, { type, payload }] of items.entries()) {
    const definition = registered.get(type)
    if (definition?.schema === undefined) continue
    const written = writeJson(payload)
    // The handler gets the payload as it comes back from the store. What is not JSON is refused when it is sent.
    if ('text' in written) await checkPayload(definition, JSON.parse(written.text), `tasks[${index}].payload`)
  }
}
