/** Every error becomes an RFC 9457 problem, here and nowhere else. A bug is a 500 that says nothing of itself. */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../engine/context.ts'
import { Problem, type ProblemCode, problems } from '../kernel/problem.ts'

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer')
  return reply
    .status(problem.status)
    .type('application/problem+json')
    .send(JSON.stringify(bodyOf(problem, reply.server.prefix)))
}

/** `root`: where Pawl's own routes are. */
export function bodyOf({ code, details, status }: Problem, root = '') {
  const { means, hint } = problems[code]
  return { type: `${root}/docs#${code}`, title: means, status, detail: hint, code, hint, details }
}

export function problemHandler(log: Log) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const problem = problemIn(error)
    if (problem !== undefined) return sendProblem(reply, problem)
    tellBug(log, error, request)
    const bug = { type: 'about:blank', title: 'A fault in Pawl.', status: 500, detail: 'The server’s log has it.' }
    return reply.status(500).type('application/problem+json').send(JSON.stringify(bug))
  }
}

export function tellBug(log: Log, error: Error, { headers: { traceparent }, method, url }: FastifyRequest): void {
  log('http.bug', {
    ...(traceparent !== undefined && { traceparent }),
    method,
    url,
    error: String(error),
    stack: error.stack,
  })
}

/** What the asker may act on; undefined: a bug. */
export function problemIn(error: FastifyError): Problem | undefined {
  return error instanceof Problem ? error : fromFastify(error)
}

const codes: Record<string, ProblemCode> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'BODY_TYPE',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'REQUEST_INVALID',
}

function fromFastify(error: FastifyError): Problem | undefined {
  const code = codes[error.code]
  if (code !== undefined) return new Problem(code)
  const isTheirs = error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500
  return isTheirs ? new Problem('REQUEST_INVALID', { why: error.message }) : undefined
}
