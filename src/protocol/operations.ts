/** The registry of operations: the joined entries of all nouns, and what follows from an entry. */

import type { ProblemCode } from '../kernel/problem.ts'
import { adminOperations } from './admin/admin-operations.ts'
import { jobOperations } from './jobs/job-operations.ts'
import { stageOperations } from './jobs/stage-operations.ts'
import type { Operation, OperationEntry } from './operation.ts'
import { taskOperations } from './tasks/task-operations.ts'
import { workerOperations } from './tasks/worker-operations.ts'

export type Operations = typeof jobOperations &
  typeof stageOperations &
  typeof taskOperations &
  typeof workerOperations &
  typeof adminOperations

export const operations: Operations = {
  ...jobOperations,
  ...stageOperations,
  ...taskOperations,
  ...workerOperations,
  ...adminOperations,
}

export type OperationName = keyof Operations

/** The methods of the operations, with their documentation. */
export type OperationMethods = {
  [Name in keyof Operations]: Operations[Name] extends Operation<infer Method> ? Method : never
}

export const operationNames = Object.keys(operations) as readonly OperationName[]

/** Every operation with its name. */
export const namedOperations = Object.entries(operations) as readonly [OperationName, OperationEntry][]

/** Whether the request has a body. */
export const hasBody = ({ takes }: OperationEntry) =>
  takes.some(source => source === 'body' || source === 'options' || source === 'epoch')

/** Whether a request may carry an Idempotency-Key. Reports of workers need none: their epoch identifies repeats. */
export const takesKey = ({ takes, isRepeatable }: OperationEntry) =>
  isRepeatable !== false && takes.some(source => source === 'call' || source === 'options')

/** Problems of every operation that uses the store. */
export const commonProblems: readonly ProblemCode[] = [
  'REQUEST_INVALID',
  'OPTION_UNKNOWN',
  'OPTION_INVALID',
  'BODY_TYPE',
  'KEY_MISSING',
  'KEY_REFUSED',
  'HOST_REFUSED',
  'REQUEST_SLOW',
  'HEADERS_TOO_LARGE',
  'SERVER_CLOSING',
  'SCHEMA_NEWER',
  'STORE_UNAVAILABLE',
  'STORE_BUSY',
  'STORE_FULL',
  'STORE_READ_ONLY',
  'STORE_CROWDED',
  'STORE_REFUSED',
]

const bodyProblems = ['BODY_INVALID', 'BODY_TOO_LARGE', 'PAYLOAD_INVALID'] as const

const notFoundUnder: Readonly<Record<string, ProblemCode>> = {
  '/v1/jobs/{id}': 'JOB_NOT_FOUND',
  '/v1/stages/{id}': 'STAGE_NOT_FOUND',
  '/v1/tasks/{id}': 'TASK_NOT_FOUND',
  '/v1/dead-letters/redrives/{id}': 'REDRIVE_NOT_FOUND',
  '/v1/keys/{id}': 'KEY_NOT_FOUND',
}

/** Problems with parameters of a query. */
const parameterProblems: Readonly<Record<string, ProblemCode>> = {
  cursor: 'CURSOR_INVALID',
  jobId: 'JOB_NOT_FOUND',
  stageId: 'STAGE_NOT_FOUND',
}

/** A change to a stage or a task locks its job, which may have been deleted in the meantime. */
function notFoundProblems(operation: OperationEntry): ProblemCode[] {
  const { path } = operation
  const ofPath = Object.entries(notFoundUnder).filter(([prefix]) => path === prefix || path.startsWith(`${prefix}/`))
  const isPartOfJob = /^\/v1\/(stages|tasks)\/\{id\}/.test(path)
  return [...ofPath.map(([, code]) => code), ...(isPartOfJob && hasBody(operation) ? (['JOB_NOT_FOUND'] as const) : [])]
}

/** All problems that an operation can answer with, without duplicates, in no particular order. */
export function problemsOf(operation: OperationEntry): readonly ProblemCode[] {
  return [
    ...new Set<ProblemCode>([
      ...commonProblems,
      ...(hasBody(operation) ? bodyProblems : []),
      ...(takesKey(operation) ? (['IDEMPOTENCY_MISMATCH'] as const) : []),
      ...Object.keys(operation.query ?? {}).flatMap(name => parameterProblems[name] ?? []),
      ...notFoundProblems(operation),
      ...(operation.problems ?? []),
    ]),
  ]
}
