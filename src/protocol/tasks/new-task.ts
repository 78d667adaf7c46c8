/** What a task may be given when it is queued, and what a type of tasks may say of all of them. */
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

const span = orNull(number({ from: 0.001, to: 10 * year }))

const typeFields = {
  /** How long an ended task still stands for its dedupeKey. Default 0. */
  dedupeSeconds: number({ from: 0, to: 10 * year }),
  /** Not done so long after it was queued, it is late: it goes before all work that is not. Default: never late. */
  softDeadlineSeconds: span,
  /** Too late: it goes before all work that is only late. In a job both are said of the job. Default: never. */
  hardDeadlineSeconds: span,
} satisfies Fields

export const taskTypeFields = { ...settingFields, ...typeFields }

const payloadSchema = field<Readonly<Record<string, unknown>> | null>({ type: ['object', 'null'] }, value =>
  value === null || isObject(value) ? undefined : 'be a JSON Schema, as an object, or null',
)
const recordFields = {
  /** What its payloads look like, as JSON Schema. Left out, what was said before still holds. */
  payloadSchema,
} satisfies Fields

export const taskTypeRecordFields = { ...taskTypeFields, ...recordFields }

const itemFields = {
  /** A UUID. Lists are in the order of ids, and ids of its own making in the order of time. Default: a new one. */
  id: chosenId,
  type: name,
  payload: anything,
  /** Default: the type. */
  queue: name,
  /** Higher first. Default 0. */
  priority,
  /** Not before this moment, by the database's clock. */
  runAt: moment,
  /** Not before so many seconds from now. */
  runInSeconds: number({ from: 0, to: 10 * year }),
  keepUntil: moment,
  /** While a task of this queue and key has not ended, another is not queued: the answer is the first one. */
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
export type RetryOptions = NonNullable<TaskTypeOptions['retry']>
export type TaskTypeOptions = OptionsOf<typeof settingFields> & OptionsOf<typeof typeFields>
/** All that is known of a type. */
export type TaskTypeRecord = TaskTypeOptions & OptionsOf<typeof recordFields>
export type TaskOptions = TaskTypeOptions & Omit<NewItem, 'type' | 'payload'>
export type NewTaskItem = TaskTypeOptions & NewItem
