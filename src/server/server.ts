/** Serves the engine over HTTP. */

import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fastify, { type FastifyInstance } from 'fastify'
import { dialects } from '../dialects/all.ts'
import type { Log } from '../engine/context.ts'
import { type AnyPawl, engineBehind } from '../engine/engine.ts'
import { mergedReports } from '../engine/tasks/merge-reports.ts'
import { newId } from '../kernel/id.ts'
import { Problem } from '../kernel/problem.ts'
import { permissionsOf } from '../kernel/role.ts'
import type { Me } from '../protocol/admin/admin.ts'
import { namedOperations } from '../protocol/operations.ts'
import { authenticate, type KeyRules } from './authenticate.ts'
import { bind, type Calls, openCalls, type Served } from './bind.ts'
import { bindDashboard } from './bind-dashboard.ts'
import { bindDialect, refuseIn } from './bind-dialect.ts'
import { readBodies } from './bodies.ts'
import { bindDocs } from './docs.ts'
import { limitStreams } from './event-stream.ts'
import { bindMetrics } from './metrics.ts'
import { ownRoot, type ServerOptions, serverSettings } from './options.ts'
import { notFound, problemHandler, refuseSocket, sendProblem } from './problems.ts'
import { noWatchdog, startWatchdog, type Watchdog } from './watchdog.ts'

/** A running HTTP server. */
export interface Server {
  /** Base URL of Pawl's own routes, with the actual port. */
  readonly url: string
  /** Accepts no more requests, ends those that wait for work, and finishes the others. */
  close(): Promise<void>
}

/** Starts a server. Closing it leaves the engine open. */
export async function startServer(pawl: AnyPawl, options: ServerOptions = {}): Promise<Server> {
  const engine = engineBehind(pawl)
  const settings = serverSettings(options)
  const { host, port, keysOnly, heartbeatSeconds, maxBodyBytes, log, rootDialect } = settings
  if (keysOnly && !(await engine.internals.anyKeys())) throw new Problem('KEYS_WANTED', { host })
  const calls = openCalls(engine.context.activities, engine.context.watchKey)
  const app = makeApp(settings, calls)
  app.setErrorHandler(problemHandler(log))
  const root = rootDialect === null ? '' : ownRoot
  const { internals } = engine
  const keys = { keyOf: (secret: string) => internals.keyOf(secret), anyKeys: internals.anyKeys, keysOnly }
  const { jobnikLeaseSeconds, falconeriLeaseSeconds } = settings
  const dialectSettings = { jobnikLeaseSeconds, falconeriLeaseSeconds }
  const { blockedSeconds } = settings
  const watchdog = blockedSeconds === 0 ? noWatchdog : startWatchdog(engine.context, blockedSeconds)
  const streams = limitStreams(settings)
  const reports = mergedReports(engine.context)
  const served = { engine, keys, calls, streams, reports, heartbeatSeconds, maxBodyBytes, dialectSettings }
  logRequests(app, log)
  app.register(async own => bindOwn(app, own, served, root, watchdog), { prefix: root })
  for (const name of settings.dialects) bindDialect(app, served, dialects[name], `/dialects/${name}`, log)
  if (rootDialect !== null) {
    bindDialect(app, served, dialects[rootDialect], '', log)
    // Health probes expect these at the root.
    bindHealth(app, engine, watchdog)
  }
  await app.listen({ host, port }).catch(async error => {
    await watchdog.stop()
    return portTaken(host, port)(error)
  })
  return {
    url: urlOf(app.server.address() as AddressInfo) + root,
    async close() {
      await close(app, calls)
      await watchdog.stop()
    },
  }
}

/** Pawl's own routes. */
function bindOwn(app: FastifyInstance, own: FastifyInstance, served: Served, root: string, watchdog: Watchdog): void {
  own.setNotFoundHandler(notFound(root))
  bindMetrics(app, own, served.engine, served.keys)
  for (const [name, operation] of namedOperations) bind(own, served, name, operation)
  bindHealth(own, served.engine, watchdog)
  bindDocs(own)
  bindMe(own, served.keys)
  bindDashboard(own)
}

function makeApp(settings: Required<ServerOptions>, calls: Calls): FastifyInstance {
  const { requestSeconds, keepAliveSeconds, dialects: names, rootDialect } = settings
  const app = fastify({
    genReqId: () => newId(),
    requestTimeout: requestSeconds * 1000,
    http: {
      // Node applies the larger of the two to the whole request.
      headersTimeout: requestSeconds * 1000,
      connectionsCheckingInterval: Math.min(5000, requestSeconds * 500),
    },
    keepAliveTimeout: keepAliveSeconds * 1000,
    // A connection that is silent for this long is dead: clients that wait get an answer or a sign of life sooner.
    connectionTimeout: 300_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    routerOptions: { maxParamLength: 300, ignoreTrailingSlash: true },
    clientErrorHandler: refuseSocket,
    frameworkErrors: (error, { url }, reply) => {
      const problem = new Problem('REQUEST_INVALID', { why: error.message })
      const atRoot = url.startsWith(`${ownRoot}/`) ? null : rootDialect
      const spoken = names.find(name => url.startsWith(`/dialects/${name}/`)) ?? atRoot ?? undefined
      void (spoken === undefined ? sendProblem(reply, problem) : refuseIn(dialects[spoken], reply, problem))
    },
  })
  readBodies(app, settings)
  app.decorateRequest('identity', null)
  app.decorateRequest('isBodyLate', false)
  app.addHook('onRequest', async ({ raw }) => {
    if (calls.isEnding()) throw new Problem('SERVER_CLOSING')
    refuseDoubled(raw.rawHeaders)
  })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff')
    // Otherwise the connection would stay open for the next request, and the server with it.
    if (calls.isEnding()) reply.header('connection', 'close')
  })
  return app
}

const longestAnswerMs = 30_000
const lastBytesMs = 500

/** Does not wait for clients that are still sending their request or do not read their answer. */
async function close(app: FastifyInstance, calls: Calls): Promise<void> {
  const waiting = new AbortController()
  const quiet = Promise.race([calls.end(), sleep(longestAnswerMs, undefined, { signal: waiting.signal })])
  const closed = app.close()
  await Promise.race([closed, quiet.then(() => sleep(lastBytesMs, undefined, { signal: waiting.signal }))])
  app.server.closeAllConnections()
  await closed
  quiet.catch(() => {})
  waiting.abort()
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

/** Probes need no key, and learn nothing about the store but whether it answers. */
function bindHealth(app: FastifyInstance, engine: Served['engine'], watchdog: Watchdog): void {
  app.get('/healthz', () => ({ ok: true }))
  app.get('/readyz', async () => {
    watchdog.check()
    await engine.ready()
    return { ok: true }
  })
}

/** Tells the dashboard the name and permissions of the caller. Every operation checks them again. */
function bindMe(app: FastifyInstance, keys: KeyRules): void {
  app.get('/v1/me', async (request): Promise<Me> => {
    const { name = null, roles, queues } = await authenticate(keys, request)
    return { name, role: roles[0]!, roles, permissions: permissionsOf(roles), queues }
  })
}

/**
 * Logs one line per answer at level debug: the pattern of the route and the name of the key, never the content.
 */
function logRequests(app: FastifyInstance, log: Log): void {
  app.addHook('onResponse', async (request, reply) => {
    const { traceparent } = request.headers
    log('http.request', {
      method: request.method,
      route: request.routeOptions.url ?? 'none',
      status: reply.statusCode,
      ms: Math.round(reply.elapsedTime * 1000) / 1000,
      requestId: request.id,
      ...(traceparent !== undefined && { traceparent }),
      ...(request.identity?.name !== undefined && { key: request.identity.name }),
    })
  })
}

const once = /^(host|authorization)$/i

/**
 * Node uses the first of two headers with the same name; a proxy in front may use the last, and would then have
 * approved another host or key than the one used here. `rawHeaders` alternates names and values.
 */
function refuseDoubled(rawHeaders: readonly string[]): void {
  const seen: string[] = []
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (!once.test(rawHeaders[index]!)) continue
    const name = rawHeaders[index]!.toLowerCase()
    if (seen.includes(name)) throw new Problem('REQUEST_INVALID', { why: `it has two ${name} headers` })
    seen.push(name)
  }
}
