/** What every answer of Marie's is wrapped in, good or bad. */
import type { Schema } from '../../schema/check.ts'
import type { Answer, Fault } from '../dialect.ts'
import { wordFor } from '../words.ts'
import { words } from './words.ts'

export const good = (result: unknown): Answer => ({ status: 200, body: { status: 'OK', result } })

export const refusal = (status: number, code: string, message: string): Answer => ({
  status,
  ...(status === 401 && { headers: { 'www-authenticate': 'Bearer' } }),
  body: { status: 'error', message, code },
})

const text = { type: 'string' }

export function schemaOf(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: 'object', properties, required: Object.keys(properties), additionalProperties: false }
}

export const goodSchema = (result: Schema): Schema => schemaOf({ status: { const: 'OK' }, result })
export const badSchema: Schema = schemaOf({ status: { const: 'error' }, message: text, code: text })

/** What it would call ours: its documents name the first three. */
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

export function refuse(fault: Fault): Answer {
  const { code, details } = fault
  if (code === 'MOVE_REFUSED') return refusal(409, 'INVALID_STATE', wrongState(details))
  if (code === 'ID_TAKEN') return refusal(409, 'DUPLICATE', 'This id is used already, or was')
  if (code === 'IDEMPOTENCY_MISMATCH') return refusal(409, 'DUPLICATE', 'This id, or this key, is that of another job')
  if (code === 'TASK_OF_JOB') {
    return refusal(409, 'CONFLICT', `Job belongs to a DAG and is deleted with it, as Pawl’s job ${details.job}`)
  }
  if (code === 'TASK_NOT_FOUND') return refusal(404, 'NOT_FOUND', 'Job not found')
  if (code === 'BODY_INVALID') return refusal(400, 'BAD_REQUEST', `Invalid JSON payload${why(details)}`)
  if (code === 'SPEC_INVALID') return refuseGraph(details.issues as readonly Issue[])
  // Bad parameters are one thing to it, whether it can read them or not.
  const status = fault.status === 422 ? 400 : fault.status
  const message = typeof details.must === 'string' ? `${details.option} must ${details.must}` : fault.message
  return refusal(status, codes[status] ?? code, message)
}

const why = ({ why: said }: Fault['details']) => (typeof said === 'string' ? `: ${said}` : '')

const asked: Readonly<Record<string, string>> = {
  cancel: 'stopped',
  resume: 'resumed',
  delete: 'deleted',
  stages: 'given another job',
}

function wrongState({ job, state, move }: Fault['details']): string {
  const view = { state } as never
  const word = job === undefined ? wordFor(words.task, view, 0) : wordFor(words.job, view, 0)
  return `${job === undefined ? 'Job' : 'DAG'} is ${word} and cannot be ${asked[move as string] ?? move}`
}

interface Issue {
  readonly at: string
  readonly why: string
}

/** A DAG that a job does not fit into: of its needs, or because its name is there. */
function refuseGraph(issues: readonly Issue[]): Answer {
  if (issues.some(({ at }) => at.endsWith('.name'))) return refusal(409, 'DUPLICATE', 'A job of this id is in the DAG')
  const said = issues.map(issue => (issue.at.endsWith('.needs') ? `dependencies: ${issue.why}` : issue.why))
  return refusal(400, 'BAD_REQUEST', said.join('; ').replaceAll('no stage is called', 'this DAG has no job'))
}
