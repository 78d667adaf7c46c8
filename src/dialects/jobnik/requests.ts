/** The bodies of Jobnik's requests. An unknown field is a VALIDATION_ERROR, except where Jobnik ignores it. */

import { Problem } from '../../kernel/problem.ts'
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
  text,
} from '../../schema/check.ts'
import { isId, settingFields, traceparent, tracestate } from '../../schema/fields.ts'
import type { Ask } from '../dialect.ts'
import { type Priority, priorityWords } from './priorities.ts'

export interface NewJob {
  readonly name: string
  readonly data: Record<string, unknown>
  readonly priority?: Priority
  readonly userMetadata?: Record<string, unknown>
  readonly traceparent?: string
  readonly tracestate?: string
  /** An addition of Pawl's: how long a task of this job stays with a worker that says nothing. */
  readonly leaseSeconds?: number
}

export interface NewStage {
  readonly type: string
  readonly data: Record<string, unknown>
  readonly userMetadata?: Record<string, unknown>
  readonly startAsWaiting?: boolean
  readonly traceparent?: string
}

export interface NewTask {
  readonly data: Record<string, unknown>
  readonly userMetadata?: Record<string, unknown>
  readonly maxAttempts?: number
  readonly traceparent?: string
}

const longestWord = 50
const word = text(longestWord)
const jobName = field({ type: 'string', minLength: 2, maxLength: longestWord }, value =>
  typeof value === 'string' && value.length < 2 ? 'have at least 2 characters' : faultOf(word, value),
)
const traced = { traceparent, tracestate }

/** An object of which only one field counts; any others are ignored. */
function only(name: string, wanted: Field): Field {
  return field({ type: 'object', properties: { [name]: wanted }, required: [name] }, value => {
    if (!isObject(value)) return 'be an object'
    const fault = faultOf(wanted, value[name])
    return fault && `have a "${name}" that must ${fault}`
  })
}

const bodies = {
  newJob: nested(
    {
      name: jobName,
      data: object,
      priority: oneOf(priorityWords),
      userMetadata: object,
      ...traced,
      leaseSeconds: settingFields.leaseSeconds,
    },
    ['name', 'data'],
  ),
  newStage: nested(
    { type: word, data: object, userMetadata: object, startAsWaiting: oneOf([true, false]), ...traced },
    ['type', 'data'],
  ),
  priority: only('priority', oneOf(priorityWords)),
  jobStatus: only('status', oneOf(['PENDING', 'PAUSED', 'ABORTED'])),
  stageStatus: only('status', oneOf(['PENDING'])),
  taskStatus: only('status', oneOf(['COMPLETED', 'FAILED'])),
  metadata: object,
} satisfies Record<string, Field>

const newTask = nested(
  { data: object, userMetadata: object, maxAttempts: number({ from: 1, to: 1000, whole: true }), ...traced },
  ['data'],
)

export function bodyOf<Body>({ body, query }: Ask, kind: keyof typeof bodies): Body {
  queryOf(query, {})
  check(body, bodies[kind], 'body')
  return body as Body
}

/** The bodies of requests, for documentation. */
export const bodySchemas = {
  ...bodies,
  newTasks: { type: 'array', items: newTask },
}

export function newTasksIn({ body, query }: Ask): NewTask[] {
  queryOf(query, {})
  if (!Array.isArray(body)) throw invalid('body', 'be a list')
  for (const [index, task] of body.entries()) check(task, newTask, `body[${index}]`)
  return body
}

export function idIn({ params: { id } }: Ask): string {
  if (!isId(id)) throw invalid('id', 'be a UUID')
  return id
}

export function typeIn({ params: { type }, query }: Ask): string {
  queryOf(query, {})
  check(type, word, 'stageType')
  return type!
}

/** Reads the text of a query parameter; undefined: it cannot be meant. */
interface Reader<Value> {
  readonly must: string
  read(text: string): Value | undefined
}

const flag: Reader<boolean> = {
  must: 'be true or false',
  read: said => ({ true: true, false: false })[said],
}

function wholeFrom(from: number, to: number): Reader<number> {
  return {
    must: `be a whole number from ${from} to ${to}`,
    read: said => (/^\d{1,9}$/.test(said) && Number(said) >= from && Number(said) <= to ? Number(said) : undefined),
  }
}

const date: Reader<Date> = {
  must: 'be a date and time, as in 2025-08-01T00:00:00.000Z',
  read: said => {
    const isWhole = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i.test(said)
    return isWhole && faultOf(moment, said) === undefined ? new Date(said) : undefined
  },
}

const name: Reader<string> = {
  must: `have 1 to ${longestWord} characters`,
  read: said => (faultOf(word, said) === undefined ? said : undefined),
}

const id: Reader<string> = { must: 'be a UUID', read: said => (isId(said) ? said : undefined) }

function among<Word extends string>(words: readonly Word[]): Reader<Word> {
  return { must: `be one of ${words.join(', ')}`, read: said => words.find(each => each === said) }
}

const paged = { page: wholeFrom(1, 1_000_000), page_size: wholeFrom(1, 100) }
const between = { from_date: date, end_date: date }
export const stageWords = ['CREATED', 'PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'ABORTED', 'WAITING'] as const
export const taskWords = ['CREATED', 'PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'RETRIED'] as const

export const queries = {
  none: {},
  paged,
  withStages: { should_return_stages: flag },
  withTasks: { should_return_tasks: flag },
  jobs: { job_name: name, ...between, priority: among(priorityWords), should_return_stages: flag, ...paged },
  jobStages: { should_return_tasks: flag, ...paged },
  stages: {
    job_id: id,
    stage_type: name,
    stage_operation_status: among(stageWords),
    should_return_tasks: flag,
    ...paged,
  },
  tasks: { stage_id: id, stage_type: name, ...between, status: among(taskWords), ...paged },
}

type Read<Table> = { readonly [Name in keyof Table]?: Table[Name] extends Reader<infer Value> ? Value : never }

export function queryOf<Table extends Record<string, Reader<unknown>>>(query: Ask['query'], table: Table): Read<Table> {
  const entries = Object.entries(query).map(([parameter, said]) => {
    const reader = Object.hasOwn(table, parameter) ? table[parameter] : undefined
    if (reader === undefined) throw new Problem('OPTION_UNKNOWN', { at: 'query', option: parameter })
    const value = typeof said === 'string' ? reader.read(said) : undefined
    if (value === undefined) throw invalid(parameter, reader.must)
    return [parameter, value]
  })
  return Object.fromEntries(entries)
}

function check(value: unknown, wanted: Field, where: string): void {
  const fault = faultOf(wanted, value)
  if (fault !== undefined) throw invalid(where, fault)
}

function invalid(option: string, must: string): Problem {
  return new Problem('OPTION_INVALID', { option, must })
}
