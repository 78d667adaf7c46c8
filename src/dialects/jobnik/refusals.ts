/** What goes wrong, in Jobnik's words: a message and a code. */
import { Problem, type ProblemCode } from '../../kernel/problem.ts'
import type { Answer, Fault } from '../dialect.ts'

/** Jobnik repeats these codes as the message. */
const notFound: readonly string[] = ['JOB_NOT_FOUND', 'STAGE_NOT_FOUND', 'TASK_NOT_FOUND'] satisfies ProblemCode[]

/** What is wrong with a request, whatever it is that we call it. */
const invalid: readonly string[] = [
  'OPTION_UNKNOWN',
  'OPTION_INVALID',
  'SPEC_INVALID',
  'PAYLOAD_INVALID',
  'PAYLOAD_REFUSED',
  'PAYLOAD_TOO_LARGE',
  'TOO_MANY_TASKS',
  'BODY_INVALID',
  'BODY_TOO_LARGE',
  'BODY_TYPE',
  'REQUEST_INVALID',
] satisfies ProblemCode[]

export function refuse({ status, code, message }: Fault): Answer {
  if (notFound.includes(code)) return refused(status, code)
  if (invalid.includes(code)) return refused(status === 422 ? 400 : status, 'VALIDATION_ERROR', message)
  if (code === 'STORE_UNAVAILABLE') return refused(status, 'DATABASE_RELATED_ERROR', message)
  if (status >= 500) return refused(status, 'UNKNOWN_ERROR', message)
  const answer = refused(status, code, message)
  return status === 401 ? { ...answer, headers: { 'www-authenticate': 'Bearer' } } : answer
}

export function refused(status: number, code: string, message = code): Answer {
  return { status, body: { message, code } }
}

export type Entity = 'JOB' | 'STAGE' | 'TASK'

export function illegal(entity: Entity, from: string, to: string): Answer {
  return refused(400, `ILLEGAL_${entity}_STATUS_TRANSITION`, `Illegal status transition from ${from} to ${to}`)
}

/** Does `work`; what is refused for one of these reasons is answered by `otherwise`. */
export async function unless(
  codes: readonly ProblemCode[],
  work: () => Promise<Answer>,
  otherwise: (problem: Problem) => Answer | Promise<Answer>,
): Promise<Answer> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Problem) || !codes.includes(error.code)) throw error
    return otherwise(error)
  }
}
