/** Every error becomes an RFC 9457 problem. A bug becomes a 500 without details, which are only logged. */
import type { Socket } from 'node:net'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../engine/context.ts'
import { Problem, type ProblemCode, problems } from '../kernel/problem.ts'
import { dialectNames } from '../protocol/dialects.ts'
import { operations } from '../protocol/operations.ts'
import { servicePaths } from './open-api.ts'

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  if (problem.status === 401) reply.header('www-authenticate', 'Bearer')
  setRetryAfter(reply, problem)
  return reply
    .status(problem.status)
    .type('application/problem+json')
    .send(JSON.stringify(bodyOf(problem, reply.server.prefix)))
}

/** A busy store recovers sooner than one that is full, unreachable or read-only. */
const busySeconds = 1
const awaySeconds = 5

export function setRetryAfter(reply: FastifyReply, { code, status }: Problem): void {
  if (status === 503) reply.header('retry-after', code === 'STORE_BUSY' ? busySeconds : awaySeconds)
}

/** `root`: where Pawl's own routes are. */
function bodyOf({ code, details, status }: Problem, root = '') {
  const { means, hint } = problems[code]
  return { type: `${root}/docs/api#${code}`, title: means, status, detail: hint, code, hint, details }
}

export function problemHandler(log: Log) {
  return (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
    const problem = problemIn(error)
    if (problem !== undefined) return sendProblem(reply, problem)
    const detail = logBug(log, error, request)
    const bug = {
      type: 'about:blank',
      title: 'A bug in Pawl.',
      status: 500,
      detail,
      details: { requestId: request.id },
    }
    return reply.status(500).type('application/problem+json').send(JSON.stringify(bug))
  }
}

/** Returns the sentence that tells the client how to find the entry in the log. */
export function logBug(log: Log, error: Error, { id, headers: { traceparent }, method, url }: FastifyRequest): string {
  log('http.bug', {
    level: 'error',
    requestId: id,
    ...(traceparent !== undefined && { traceparent }),
    method,
    url,
    error: String(error),
    stack: error.stack,
  })
  return `The server’s log describes it under the request id ${id}.`
}

/** The problem that the client can act on; undefined: a bug. */
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
  const isClientError = error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500
  return isClientError ? new Problem('REQUEST_INVALID', { why: error.message }) : undefined
}

const socketCodes: Record<string, ProblemCode> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'REQUEST_SLOW',
  HPE_HEADER_OVERFLOW: 'HEADERS_TOO_LARGE',
}

/**
 * Answers a request that is not HTTP or arrives too slowly. It never reaches a route, so the answer goes to the
 * socket.
 */
export function refuseSocket(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const problem = new Problem(socketCodes[error.code ?? ''] ?? 'REQUEST_INVALID')
  const body = JSON.stringify(bodyOf(problem))
  const head = [
    `HTTP/1.1 ${problem.status} ${problem.code}`,
    'content-type: application/problem+json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ]
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.destroy(error)
}

interface Address {
  readonly method: string
  readonly path: string
}

/** The problem of a request without a route. It lists the methods that the path allows. `root`: prefix of all paths. */
export function missing(addresses: readonly Address[], root: string) {
  const known = addresses.map(({ method, path }) => ({
    methods: method === 'GET' ? ['GET', 'HEAD'] : [method],
    pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
  }))
  return (request: FastifyRequest, reply: FastifyReply): Problem => {
    const [path = ''] = request.url.split('?')
    const within = path.slice(root.length)
    const methods = known.filter(({ pattern }) => pattern.test(within)).flatMap(({ methods }) => methods)
    if (methods.length === 0) return new Problem('ROUTE_NOT_FOUND', { path, ...notServed(path) })
    reply.header('allow', methods.join(', '))
    return new Problem('METHOD_REFUSED', { method: request.method, methods })
  }
}

/** Dialects are served only if they are enabled. */
function notServed(path: string): { readonly todo?: string } {
  const name = /^\/dialects\/([^/]+)/.exec(path)?.[1]
  const isKnown = (dialectNames as readonly unknown[]).includes(name)
  return isKnown ? { todo: `start the server with --dialect ${name}` } : {}
}

const own: readonly Address[] = [
  ...Object.values(operations),
  ...Object.keys(servicePaths).map(path => ({ method: 'GET', path })),
]

export function notFound(root: string) {
  const why = missing(own, root)
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => sendProblem(reply, why(request, reply))
}
