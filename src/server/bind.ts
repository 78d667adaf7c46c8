/** Binds a route of the table to the operation that it is named for: who asks, what it says, the answer. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Pawl } from '../engine/engine.ts'
import { Problem } from '../kernel/problem.ts'
import { type Operation, type Route, routes } from '../protocol/routes.ts'
import type { FeedQuery } from '../protocol/tasks.ts'
import { type Asker, admit, type Door, demand } from './admit.ts'
import { streamEvents } from './event-stream.ts'
import { sendProblem } from './problems.ts'
import { demandQueues } from './queues-of.ts'
import { argumentsOf, type Came } from './read-request.ts'

declare module 'fastify' {
  interface FastifyRequest {
    asker: Asker | null
  }
}

export interface Served {
  readonly engine: Pawl
  readonly door: Door
  /** Aborts when the server closes: nobody is kept waiting then. */
  readonly ending: AbortSignal
}

export function bind(app: FastifyInstance, served: Served, operation: Operation): void {
  const { engine, door, ending } = served
  const route: Route = routes[operation]
  const call = engine[operation] as (...args: unknown[]) => Promise<unknown>
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    // Before the body is read: a stranger's is not worth it.
    async onRequest(request) {
      request.asker = await admit(door, request)
      demand(request.asker, route.needs)
    },
    async handler(request, reply) {
      const asker = request.asker!
      const args = argumentsOf(operation, request as Came, callOf(request, asker))
      await demandQueues(asker, engine, operation, args)
      if (operation === 'events' && wantsStream(request)) return stream(served, request, reply, args[0] as FeedQuery)
      if (operation === 'sync') args.push(AbortSignal.any([ending, whenGone(reply)]))
      const answer = await call(...args)
      const isSingle = operation === 'enqueueMany' && !Array.isArray(request.body)
      return reply.status(route.status).send(isSingle ? (answer as unknown[])[0] : answer)
    },
  })
}

/** Who asks, and the key under which the request may be repeated: both from headers, so that no body can forge them. */
function callOf({ headers }: FastifyRequest, { name, holder }: Asker): object {
  const key = headers['idempotency-key']
  const said = headers['pawl-actor']
  const actor = [name, said].filter(Boolean).join('/')
  return {
    ...(holder !== '' && { holder }),
    ...(key !== undefined && { idempotencyKey: key }),
    ...(actor !== '' && { actor }),
  }
}

function wantsStream({ headers }: FastifyRequest): boolean {
  return headers.accept?.includes('text/event-stream') === true
}

async function stream({ engine, ending }: Served, request: FastifyRequest, reply: FastifyReply, ask: FeedQuery) {
  const last = request.headers['last-event-id']
  const from = typeof last === 'string' && last !== '' ? { ...ask, cursor: last } : ask
  // Once it streams, it is no answer of the framework's any more; until then a problem is.
  await streamEvents(engine, from, reply.raw, AbortSignal.any([ending, whenGone(reply)]), () => reply.hijack())
  return reply
}

/** Aborts when the client hangs up before it was answered: what it would have claimed is better left to another. */
function whenGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => gone.abort())
  return gone.signal
}

const patterns = Object.values(routes).map(({ method, path }: Route) => ({
  method,
  pattern: new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}/?$`),
}))

export function notFound(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const [path = ''] = request.url.split('?')
  const methods = patterns.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method)
  if (methods.length === 0) return sendProblem(reply, new Problem('ROUTE_NOT_FOUND', { path }))
  return sendProblem(
    reply.header('allow', methods.join(', ')),
    new Problem('METHOD_REFUSED', { method: request.method, methods }),
  )
}
