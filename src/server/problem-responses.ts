/** The errors in the OpenAPI document: the possible problems of each status. */

import { type ProblemCode, problems } from '../kernel/problem.ts'
import { hasBody, type OperationEntry, takesKey } from '../protocol/operation.ts'
import type { Schema } from '../schema/check.ts'

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

const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }

export const problemSchema: Schema = {
  type: 'object',
  description: 'A problem, in the format of RFC 9457.',
  required: ['type', 'title', 'status'],
  properties: {
    type: { type: 'string', description: 'The address of its documentation.' },
    title: { type: 'string', description: 'What the problem means. The same for every problem with this code.' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', enum: Object.keys(problems), description: 'Absent if the cause is a bug in Pawl.' },
    hint: { type: 'string', description: 'What to do about it.' },
    details: { type: 'object', description: 'Facts about this case: names, limits, states.' },
  },
}

/**
 * One response per status. `x-problem-codes` lists the codes for programs. If the schema listed them, generated clients
 * would have one type for each operation and status.
 */
function byStatus(codes: readonly ProblemCode[]): Readonly<Record<string, Schema>> {
  const statuses = [...new Set(codes.map(code => problems[code].status))]
  const responses = statuses.map(status => {
    const same = codes.filter(code => problems[code].status === status)
    const description = same.map(code => `- \`${code}\`: ${problems[code].means}`).join('\n')
    return [status, { description, content, 'x-problem-codes': same }] as const
  })
  return Object.fromEntries(responses)
}

const common = Object.entries(byStatus(commonProblems)).map(
  ([status, response]) => [`Problem${status}`, response] as const,
)

/** Responses that most operations share. */
export const sharedResponses: Readonly<Record<string, Schema>> = {
  ...Object.fromEntries(common),
  Bug: { description: 'A bug in Pawl. To find it in the log of the server, search for `details.requestId`.', content },
  Unexpected: { description: 'Any other problem. Problems have the same shape under every status.', content },
}

const sharedNames = new Map(common.map(([name, response]) => [JSON.stringify(response), name]))
const shared = (name: string): Schema => ({ $ref: `#/components/responses/${name}` })

/** The error responses of an operation with these problems. */
export function problemResponses(codes: readonly ProblemCode[]): Record<string, Schema> {
  const listed = Object.entries(byStatus(codes)).map(([status, response]) => {
    const name = sharedNames.get(JSON.stringify(response))
    return [status, name === undefined ? response : shared(name)] as const
  })
  return { ...Object.fromEntries(listed), 500: shared('Bug'), default: shared('Unexpected') }
}
