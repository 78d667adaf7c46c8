/**
 * The fields of Jobnik's requests, and its refusals. An unknown field is a VALIDATION_ERROR, except where Jobnik ignores
 * it.
 */
import { Problem } from '../../kernel/problem.ts'
import { view } from '../../protocol/shapes.ts'
import {
  type Field,
  type Fields,
  faultOf,
  field,
  flag,
  moment,
  nested,
  number,
  object,
  oneOf,
  type Schema,
  type Shape,
  text,
  type ValueOf,
} from '../../schema/check.ts'
import { settingFields, traceparent, tracestate, chosenId as uuid } from '../../schema/fields.ts'
import { type Answer, type DialectRequest, type DialectRoute, good, route } from '../dialect.ts'
import {
  type FieldTable,
  openBody,
  type ParsedField,
  parsedFlag,
  parsedWhole,
  readBody,
  readQuery,
} from '../kit/requests.ts'
import { priorityWords, stageWords, taskWords } from './words.ts'

const longestName = 50
const name = text(longestName)
const jobName = field<string>({ type: 'string', minLength: 2, maxLength: longestName }, value =>
  typeof value === 'string' && value.length < 2 ? 'have at least 2 characters' : faultOf(name, value),
)
const traced = { traceparent, tracestate }

/** A body of which only one field counts. */
const only = <Name extends string, Value>(name: Name, field: Field<Value>) =>
  openBody({ [name]: field } as Record<Name, Field<Value>>, [name])

export const bodies = {
  newJob: nested(
    {
      name: jobName,
      data: object,
      priority: oneOf(priorityWords),
      userMetadata: object,
      ...traced,
      // An addition of Pawl's: how long a silent worker keeps a task of this job.
      leaseSeconds: settingFields.leaseSeconds,
    },
    ['name', 'data'],
  ),
  newStage: nested({ type: name, data: object, userMetadata: object, startAsWaiting: flag, ...traced }, [
    'type',
    'data',
  ]),
  newTask: nested(
    { data: object, userMetadata: object, maxAttempts: number({ from: 1, to: 1000, whole: true }), ...traced },
    ['data'],
  ),
  priority: only('priority', oneOf(priorityWords)),
  jobStatus: only('status', oneOf(['PENDING', 'PAUSED', 'ABORTED'])),
  stageStatus: only('status', oneOf(['PENDING'])),
  taskStatus: only('status', oneOf(['COMPLETED', 'FAILED'])),
}

export function bodyOf<Body extends Shape<Fields, unknown>>(
  { body, query }: DialectRequest,
  schema: Body,
): ValueOf<Body> {
  queryOf(query, queries.none)
  return readBody(body, schema)
}

export function newTasksIn({ body, query }: DialectRequest): ValueOf<typeof bodies.newTask>[] {
  queryOf(query, queries.none)
  if (!Array.isArray(body)) throw new Problem('BODY_INVALID', { why: 'it must be a list' })
  return body.map((task, index) => readBody(task, bodies.newTask, `body[${index}]`))
}

export const doneSchema = (code: string): Schema => view<{ code: string }>({ code: { const: code } })

/** The route that replaces the metadata of an entity. */
export function metadataRoute(
  entity: 'job' | 'stage' | 'task',
  needs: 'produce' | 'work',
  summary: string,
  replace: 'replaceJobMetadata' | 'replaceStageMetadata' | 'replaceTaskMetadata',
): DialectRoute {
  const modified = { code: `${entity.toUpperCase()}_MODIFIED_SUCCESSFULLY` }
  return route(`PATCH /v1/${entity}s/{id}/user-metadata`, ['operate', needs], {
    summary,
    takes: object,
    answers: doneSchema(modified.code),
    async handle(request) {
      const { engine, body, query, call } = request
      queryOf(query, queries.none)
      const metadata = readParameter(body, object, 'body')
      await engine[replace](idIn(request), metadata, call)
      return good(modified)
    },
  })
}

export const idIn = ({ params: { id } }: DialectRequest): string => readParameter(id, uuid, 'id')

export function typeIn({ params: { type }, query }: DialectRequest): string {
  queryOf(query, queries.none)
  return readParameter(type, name, 'stageType')
}

function readParameter<Value>(value: unknown, check: Field<Value>, option: string): Value {
  const must = faultOf(check, value)
  if (must !== undefined) throw new Problem('OPTION_INVALID', { option, must })
  return value as Value
}

const isDate = (value: unknown): value is Date => value instanceof Date && faultOf(moment, value) === undefined
const date: ParsedField<Date> = {
  check: field<Date>({ type: 'string' }, value =>
    isDate(value) ? undefined : 'be a date and time, as in 2025-08-01T00:00:00.000Z',
  ),
  parse: text => (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(text) ? new Date(text) : undefined),
}

const paged = { page: parsedWhole(1, 1_000_000), page_size: parsedWhole(1, 100) }
const between = { from_date: date, end_date: date }

export const queries = {
  none: {},
  paged,
  withStages: { should_return_stages: parsedFlag },
  withTasks: { should_return_tasks: parsedFlag },
  jobs: { job_name: name, ...between, priority: oneOf(priorityWords), should_return_stages: parsedFlag, ...paged },
  jobStages: { should_return_tasks: parsedFlag, ...paged },
  stages: {
    job_id: uuid,
    stage_type: name,
    stage_operation_status: oneOf(stageWords),
    should_return_tasks: parsedFlag,
    ...paged,
  },
  tasks: { stage_id: uuid, stage_type: name, ...between, status: oneOf(taskWords), ...paged },
}

export const queryOf = <Table extends FieldTable>(query: DialectRequest['query'], table: Table) =>
  readQuery(query, table, { strict: true })

export const refused = (status: number, code: string, message = code): Answer => ({ status, body: { message, code } })

export function illegal(entity: 'JOB' | 'STAGE' | 'TASK', from: string, to: string): Answer {
  return refused(400, `ILLEGAL_${entity}_STATUS_TRANSITION`, `Illegal status transition from ${from} to ${to}`)
}
