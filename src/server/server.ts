/** Serves the engine over HTTP. */
import type { AddressInfo } from 'node:net'
import fastify, { type FastifyInstance } from 'fastify'
import type { Pawl } from '../engine/engine.ts'
import { Problem } from '../kernel/problem.ts'
import { type Operation, routes } from '../protocol/routes.ts'
import { bind, notFound, type Served } from './bind.ts'
import { readBodies } from './bodies.ts'
import { openApi } from './open-api.ts'
import { type ServerOptions, serverSettings } from './options.ts'
import { problemHandler, sendProblem } from './problems.ts'

export interface Server {
  /** Where it listens, with the port that it got. */
  readonly url: string
  /** Takes no more requests, ends those that wait for work, and finishes what it answers. */
  close(): Promise<void>
}

/** Serves until it is closed. Closing it leaves the engine open. */
export async function startServer(engine: Pawl, options: ServerOptions = {}): Promise<Server> {
  const { host, port, keysOnly, log, maxBodyBytes, requestSeconds } = serverSettings(options)
  if (keysOnly && !(await engine.anyKeys())) throw new Problem('KEYS_WANTED', { host })
  const ending = new AbortController()
  const app = fastify({
    bodyLimit: maxBodyBytes,
    requestTimeout: requestSeconds * 1000,
    keepAliveTimeout: 75_000,
    forceCloseConnections: 'idle',
    routerOptions: { maxParamLength: 300, ignoreTrailingSlash: true },
    frameworkErrors: (error, _request, reply) => {
      void sendProblem(reply, new Problem('REQUEST_INVALID', { why: error.message }))
    },
  })
  readBodies(app)
  app.setErrorHandler(problemHandler(log))
  app.setNotFoundHandler(notFound)
  app.decorateRequest('asker', null)
  const door = { keyOf: (secret: string) => engine.keyOf(secret), keysOnly }
  const served: Served = { engine, door, ending: ending.signal }
  for (const operation of Object.keys(routes) as Operation[]) bind(app, served, operation)
  bindPlain(app, engine)
  await app.listen({ host, port }).catch(portTaken(host, port))
  return {
    url: urlOf(app.server.address() as AddressInfo),
    async close() {
      ending.abort()
      await app.close()
    },
  }
}

/** What anyone may ask: it says nothing that is kept in the store. */
function bindPlain(app: FastifyInstance, engine: Pawl): void {
  const document = JSON.stringify(openApi())
  app.get('/openapi.json', (_request, reply) => reply.type('application/json').send(document))
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', async () => {
    await engine.ready()
    return { ok: true }
  })
}

function portTaken(host: string, port: number) {
  return (error: NodeJS.ErrnoException): never => {
    if (error.code === 'EADDRINUSE') throw new Problem('PORT_TAKEN', { host, port }, error)
    if (error.code === 'EADDRNOTAVAIL' || error.code === 'ENOTFOUND' || error.code === 'EACCES') {
      throw new Problem('PORT_REFUSED', { host, port, why: error.code }, error)
    }
    throw error
  }
}

function urlOf({ address, family, port }: AddressInfo): string {
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`
}
