import type { FastifyInstance } from 'fastify'
import type { Engine } from '../engine/engine.ts'
import { authenticate, type KeyRules, requirePermission } from './authenticate.ts'
import { makeMetrics } from './metrics.ts'

/** Counts every answer of the app by the pattern of its route, and serves the metrics. */
export function bindMetrics(app: FastifyInstance, own: FastifyInstance, engine: Engine, keys: KeyRules): void {
  const metrics = makeMetrics(engine)
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none'
    metrics.onRequest(route, request.method, reply.statusCode, reply.elapsedTime / 1000)
  })
  own.get('/metrics', {
    onRequest: async request => requirePermission(await authenticate(keys, request), 'read'),
    handler: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  })
}
