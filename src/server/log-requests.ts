import type { FastifyInstance } from 'fastify'
import type { Log } from '../engine/context.ts'

/**
 * A line for each answer, by the pattern of its route: who asked, never what was said. The word is of level debug, so
 * that a process tells it only where that is asked for.
 */
export function logRequests(app: FastifyInstance, log: Log): void {
  app.addHook('onResponse', async (request, reply) => {
    const { traceparent } = request.headers
    log('http.request', {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 1000) / 1000,
      requestId: request.id,
      ...(traceparent !== undefined && { traceparent }),
      ...(request.asker?.name !== undefined && { key: request.asker.name }),
    })
  })
}
