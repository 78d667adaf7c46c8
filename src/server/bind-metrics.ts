import type { FastifyInstance } from 'fastify'
import type { Pawl } from '../engine/engine.ts'
import { admit, type Door, demand } from './admit.ts'
import { makeMetrics } from './metrics.ts'

/** Counts every answer of the app, by the pattern of its route, and offers all figures to whoever may read. */
export function bindMetrics(app: FastifyInstance, own: FastifyInstance, engine: Pawl, door: Door): void {
  const metrics = makeMetrics(engine)
  app.addHook('onResponse', async (request, reply) => {
    const route = request.routeOptions.url ?? 'none'
    metrics.onRequest(route, request.method, reply.statusCode, reply.elapsedTime / 1000)
  })
  own.get('/metrics', {
    onRequest: async request => demand(await admit(door, request), 'read'),
    handler: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  })
}
