/** Serves a dialect: its routes under their own root, its header for keys, and errors in its format. */
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Answer, type Dialect, type DialectRoute, type Fault, good } from '../dialects/dialect.ts'
import { engineFor } from '../dialects/dialect-engine.ts'
import { openApiOf } from '../dialects/docs.ts'
import type { Log } from '../engine/context.ts'
import { demandPermission } from '../engine/queue-scope.ts'
import { type Problem, problems } from '../kernel/problem.ts'
import { checkKeyAgain, type Identity, identify, refusePages } from './authenticate.ts'
import { callOf, type HttpInput, requireUnrevoked, type Served } from './bind.ts'
import { streamTexts } from './event-stream.ts'
import { logBug, missing, problemIn, setRetryAfter } from './problems.ts'

/** `root`: the prefix of its paths, without a trailing slash. */
export function bindDialect(app: FastifyInstance, served: Served, dialect: Dialect, root: string, log: Log): void {
  app.register(
    async scope => {
      scope.setErrorHandler((error: FastifyError, request, reply) => {
        const problem = problemIn(error)
        if (problem !== undefined) return refuseIn(dialect, reply, problem)
        const bug = { status: 500, code: 'BUG', details: { requestId: request.id } }
        const message = `A bug in Pawl. ${logBug(log, error, request)}`
        return send(reply, dialect.refuse({ ...bug, message }))
      })
      const routes = routesOf(dialect, root)
      const why = missing(routes, root)
      scope.setNotFoundHandler((request, reply) => refuseIn(dialect, reply, why(request, reply)))
      for (const route of routes) bindRoute(scope, served, dialect, route, root)
    },
    { prefix: root },
  )
}

/** Some clients prepend the root to links that already begin with it, so those paths are served too. */
function routesOf(dialect: Dialect, root: string): readonly DialectRoute[] {
  const { routes, links } = dialect
  const documented = [...routes, documentOf(dialect, root)]
  if (links !== true || root === '') return documented
  return [...documented, ...routes.map(route => ({ ...route, path: `${root}${route.path}` }))]
}

function documentOf(dialect: Dialect, root: string): DialectRoute {
  const document = openApiOf(dialect, root)
  return {
    method: 'GET',
    path: '/openapi.json',
    needs: null,
    summary: 'These routes, as an OpenAPI document.',
    answers: { type: 'object' },
    handle: async () => good(document),
  }
}

/** Sends a problem in the format of the dialect. */
export function refuseIn(dialect: Dialect, reply: FastifyReply, problem: Problem): FastifyReply {
  setRetryAfter(reply, problem)
  return send(reply, dialect.refuse(faultOf(problem)))
}

function bindRoute(scope: FastifyInstance, served: Served, dialect: Dialect, route: DialectRoute, root: string): void {
  const { keys, calls, streams, heartbeatSeconds, dialectSettings: settings } = served
  scope.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    async onRequest(request) {
      if (route.needs === null) return
      if (route.method === 'GET' && route.needs !== 'read') refusePages(request)
      await identify(keys, request, dialect)
      demandPermission(request.identity!.roles, route.needs)
      if (route.also !== undefined) demandPermission(request.identity!.roles, route.also)
    },
    preHandler: checkKeyAgain(keys, dialect),
    handler: (request, reply) =>
      calls.answer(reply, request.identity?.holder ?? '', async signal => {
        const { params, query, body } = request as HttpInput
        const identity = request.identity ?? nobody
        const engine = engineFor(served, identity)
        const input = { params, query, body, call: callOf(request, identity), lastEventId: lastIdIn(request) }
        const answer = await route.handle({ engine, root, heartbeatSeconds, settings, signal, ...input })
        requireUnrevoked(signal)
        // A HEAD gets the headers only: a stream may have no end.
        if (answer.stream === undefined || request.method === 'HEAD') return send(reply, answer)
        return sendStream(reply, answer, answer.stream, streams.open(identity), signal)
      }),
  })
}

/** Like Pawl's own streams: a client that does not read is disconnected. `close` releases the place of the stream. */
async function sendStream(
  reply: FastifyReply,
  { status, headers = {} }: Answer,
  texts: AsyncGenerator<string, void, void>,
  close: () => void,
  signal: AbortSignal,
): Promise<FastifyReply> {
  try {
    await streamTexts({ status, headers }, texts, reply.raw, signal, () => reply.hijack())
  } finally {
    close()
  }
  return reply
}

/** The client of a route that needs no key. */
const nobody: Identity = { name: undefined, roles: ['viewer'], queues: null, holder: '' }

function lastIdIn({ headers }: FastifyRequest): string | undefined {
  const last = headers['last-event-id']
  return typeof last === 'string' && last !== '' ? last : undefined
}

function send(reply: FastifyReply, { status, headers = {}, body }: Answer): FastifyReply {
  reply.status(status).headers(headers)
  if (body === undefined || typeof body === 'string') {
    if (body !== undefined && headers['content-type'] === undefined) reply.type('text/plain; charset=utf-8')
    return reply.send(body)
  }
  return reply.type(headers['content-type'] ?? 'application/json; charset=utf-8').send(JSON.stringify(body))
}

/** Omits hints that refer to the details or to Pawl's own pages: clients of dialects see neither. */
function faultOf({ status, code, message, details }: Problem): Fault {
  const { hint } = problems[code]
  const isSeen = !/\b(details|docs)\b/.test(hint)
  return { status, code, message: isSeen ? message : message.slice(0, -hint.length).trimEnd(), details }
}
