/** The errors in the OpenAPI document: the possible problems of each status. */

import { type ProblemCode, problems } from '../kernel/problem.ts'
import { commonProblems } from '../protocol/operations.ts'
import type { Schema } from '../schema/check.ts'

const content = { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } }

export const problemSchema: Schema = {
  type: 'object',
  description: 'What went wrong, as RFC 9457 describes it.',
  required: ['type', 'title', 'status'],
  properties: {
    type: { type: 'string', description: 'Where the problem is documented.' },
    title: { type: 'string', description: 'What the problem means. The same for every problem with this code.' },
    status: { type: 'integer' },
    detail: { type: 'string' },
    code: { type: 'string', enum: Object.keys(problems), description: 'Missing if the cause is a bug in Pawl.' },
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
  Bug: { description: 'A bug in Pawl. `details.requestId` finds it in the log of the server.', content },
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
