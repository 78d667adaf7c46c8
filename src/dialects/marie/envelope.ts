/** The envelope of every Marie answer, good or bad. */
import type { JobState } from '../../kernel/job.ts'
import type { TaskState } from '../../kernel/task.ts'
import { text } from '../../protocol/shapes.ts'
import type { Schema } from '../../schema/check.ts'
import type { Issue } from '../../spec/faults.ts'
import { type Answer, closedObject, type Fault } from '../dialect.ts'
import { type Rewordings, reword, rewordingOf } from '../kit/refusals.ts'
import { words } from './words.ts'

export const good = (result: unknown): Answer => ({ status: 200, body: { status: 'OK', result } })

export const refusal = (status: number, code: string, message: string): Answer => ({
  status,
  ...(status === 401 && { headers: { 'www-authenticate': 'Bearer' } }),
  body: { status: 'error', message, code },
})

export const goodSchema = (result: Schema): Schema => closedObject({ status: { const: 'OK' }, result })
export const badSchema = closedObject({ status: { const: 'error' }, message: text, code: text })

/** Marie's codes for the other problems, by status. Its documents name the first three. */
const codes: Readonly<Record<number, string>> = {
  400: 'BAD_REQUEST',
  404: 'NOT_FOUND',
  500: 'INTERNAL_ERROR',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  405: 'METHOD_NOT_ALLOWED',
  409: 'CONFLICT',
  413: 'PAYLOAD_TOO_LARGE',
}

const rewordings: Rewordings = {
  MOVE_REFUSED: { status: 409, code: 'INVALID_STATE', message: wrongState },
  ID_TAKEN: { status: 409, code: 'DUPLICATE', message: 'This id is in use, or was used before' },
  IDEMPOTENCY_MISMATCH: {
    status: 409,
    code: 'DUPLICATE',
    message: 'This id or idempotency key belongs to another job',
  },
  TASK_OF_JOB: {
    status: 409,
    code: 'CONFLICT',
    message: ({ job }) => `Job belongs to a DAG and is deleted with it, as Pawl’s job ${job}`,
  },
  TASK_NOT_FOUND: { status: 404, code: 'NOT_FOUND', message: 'Job not found' },
  BODY_INVALID: {
    status: 400,
    code: 'BAD_REQUEST',
    message: ({ why }) => `Invalid JSON payload${typeof why === 'string' ? `: ${why}` : ''}`,
  },
}

export function refuse(fault: Fault): Answer {
  const { details } = fault
  if (fault.code === 'SPEC_INVALID') return refuseGraph(details.issues as readonly Issue[])
  const { status, code, message } = reword(fault, rewordings)
  if (rewordingOf(fault.code, rewordings) !== undefined) return refusal(status, code, message)
  // Marie has one code for invalid requests, whether they can be read or not.
  const shown = status === 422 ? 400 : status
  const must = typeof details.must === 'string' ? `${details.option} must ${details.must}` : message
  return refusal(shown, codes[shown] ?? code, must)
}

const verbs: Readonly<Record<string, string>> = {
  cancel: 'stopped',
  resume: 'resumed',
  delete: 'deleted',
  stages: 'given another job',
}

function wrongState({ job, state, move }: Fault['details']): string {
  const word = job === undefined ? words.task[state as TaskState] : words.job[state as JobState]
  return `${job === undefined ? 'Job' : 'DAG'} is ${word} and cannot be ${verbs[move as string] ?? move}`
}

/** A job does not fit into its DAG: its dependencies are wrong, or its id is in use there. */
function refuseGraph(issues: readonly Issue[]): Answer {
  if (issues.some(({ at }) => at.endsWith('.name')))
    return refusal(409, 'DUPLICATE', 'A job with this id is in the DAG')
  const faults = issues.map(issue => (issue.at.endsWith('.needs') ? `dependencies: ${issue.why}` : issue.why))
  return refusal(400, 'BAD_REQUEST', faults.join('; ').replaceAll('no stage has the name', 'this DAG has no job'))
}
