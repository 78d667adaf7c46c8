/** The fields of Jobnik's requests. An unknown field is a VALIDATION_ERROR, except where Jobnik ignores it. */

import { Problem } from '../../kernel/problem.ts'
import { faultOf, field, moment, type Schema, text } from '../../schema/check.ts'
import { settingFields, traceparent, tracestate } from '../../schema/fields.ts'
import type { DialectRequest } from '../dialect.ts'
import {
  bodySchema,
  type FieldTable,
  fieldOf,
  flag,
  jsonObject,
  oneWordOf,
  type RequestField,
  textField,
  uuid,
  type ValuesOf,
  wholeNumber,
} from '../kit/fields.ts'
import { readBody, readQuery } from '../kit/read.ts'
import { priorityWords } from './priorities.ts'
import { stageWords, taskWords } from './words.ts'

const longestName = 50
const nameCheck = text(longestName)
const name = textField(nameCheck)
const jobName = textField(
  field({ type: 'string', minLength: 2, maxLength: longestName }, value =>
    typeof value === 'string' && value.length < 2 ? 'have at least 2 characters' : faultOf(nameCheck, value),
  ),
)
const traced = { traceparent: textField(traceparent), tracestate: textField(tracestate) }

interface BodyShape<Table extends FieldTable, Required extends keyof Table & string> {
  readonly fields: Table
  readonly required: readonly Required[]
  readonly schema: Schema
  readonly strict: boolean
}

export type BodyOf<Shape> =
  Shape extends BodyShape<infer Table, infer Required> ? ValuesOf<Table, Required & keyof Table> : never

function body<Table extends FieldTable, Required extends keyof Table & string>(
  fields: Table,
  required: readonly Required[],
): BodyShape<Table, Required> {
  return { fields, required, schema: bodySchema(fields, required), strict: true }
}

/** A body of which only one field counts. Jobnik ignores all others. */
function only<Name extends string, Value>(name: Name, wanted: RequestField<Value>) {
  const fields = { [name]: wanted } as Record<Name, RequestField<Value>>
  const schema: Schema = { type: 'object', properties: { [name]: wanted.check }, required: [name] }
  return { fields, required: [name], schema, strict: false } as const
}

export const bodies = {
  newJob: body(
    {
      name: jobName,
      data: jsonObject,
      priority: oneWordOf(priorityWords),
      userMetadata: jsonObject,
      ...traced,
      // An addition of Pawl's: how long a silent worker keeps a task of this job.
      leaseSeconds: fieldOf<number>(settingFields.leaseSeconds),
    },
    ['name', 'data'],
  ),
  newStage: body({ type: name, data: jsonObject, userMetadata: jsonObject, startAsWaiting: flag, ...traced }, [
    'type',
    'data',
  ]),
  newTask: body({ data: jsonObject, userMetadata: jsonObject, maxAttempts: wholeNumber(1, 1000), ...traced }, ['data']),
  priority: only('priority', oneWordOf(priorityWords)),
  jobStatus: only('status', oneWordOf(['PENDING', 'PAUSED', 'ABORTED'])),
  stageStatus: only('status', oneWordOf(['PENDING'])),
  taskStatus: only('status', oneWordOf(['COMPLETED', 'FAILED'])),
}

export function bodyOf<Table extends FieldTable, Required extends keyof Table & string>(
  { body, query }: DialectRequest,
  { fields, ...rules }: BodyShape<Table, Required>,
): ValuesOf<Table, Required> {
  queryOf(query, queries.none)
  return readBody(body, fields, rules)
}

export function newTasksIn({ body, query }: DialectRequest): BodyOf<typeof bodies.newTask>[] {
  queryOf(query, queries.none)
  if (!Array.isArray(body)) throw new Problem('BODY_INVALID', { why: 'it must be a list' })
  const { fields, ...rules } = bodies.newTask
  return body.map((task, index) => readBody(task, fields, { ...rules, at: `body[${index}]` }))
}

export function metadataIn({ body, query }: DialectRequest): Record<string, unknown> {
  queryOf(query, queries.none)
  return readParameter(body, jsonObject, 'body')
}

export const idIn = ({ params: { id } }: DialectRequest): string => readParameter(id, uuid, 'id')

export function typeIn({ params: { type }, query }: DialectRequest): string {
  queryOf(query, queries.none)
  return readParameter(type, name, 'stageType')
}

function readParameter<Value>(value: unknown, { check }: RequestField<Value>, option: string): Value {
  const must = faultOf(check, value)
  if (must !== undefined) throw new Problem('OPTION_INVALID', { option, must })
  return value as Value
}

const isDate = (value: unknown): value is Date => value instanceof Date && faultOf(moment, value) === undefined
const date: RequestField<Date> = {
  check: field({ type: 'string' }, value =>
    isDate(value) ? undefined : 'be a date and time, as in 2025-08-01T00:00:00.000Z',
  ),
  parse: text => (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(text) ? new Date(text) : undefined),
}

const paged = { page: wholeNumber(1, 1_000_000), page_size: wholeNumber(1, 100) }
const between = { from_date: date, end_date: date }

export const queries = {
  none: {},
  paged,
  withStages: { should_return_stages: flag },
  withTasks: { should_return_tasks: flag },
  jobs: { job_name: name, ...between, priority: oneWordOf(priorityWords), should_return_stages: flag, ...paged },
  jobStages: { should_return_tasks: flag, ...paged },
  stages: {
    job_id: uuid,
    stage_type: name,
    stage_operation_status: oneWordOf(stageWords),
    should_return_tasks: flag,
    ...paged,
  },
  tasks: { stage_id: uuid, stage_type: name, ...between, status: oneWordOf(taskWords), ...paged },
}

export const queryOf = <Table extends FieldTable>(query: DialectRequest['query'], table: Table) =>
  readQuery(query, table, { strict: true })
