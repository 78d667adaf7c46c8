/** Binds the operations of the registry to their routes. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Call, DialectSettings } from '../dialects/dialect.ts'
import type { Engine } from '../engine/engine.ts'
import { type Caller, run } from '../engine/operations.ts'
import { demandScope } from '../engine/queue-scope.ts'
import type { Reports } from '../engine/tasks/merge-reports.ts'
import type { OperationEntry } from '../protocol/operation.ts'
import { type OperationName, operations } from '../protocol/operations.ts'
import type { FeedQuery } from '../protocol/tasks/tasks.ts'
import { faultOf } from '../schema/check.ts'
import { traceparent } from '../schema/fields.ts'
import { type Asker, authenticate, type KeyRules, type KeyShown, requirePermission } from './authenticate.ts'
import { type Calls, requireUnrevoked } from './calls.ts'
import { streamEvents } from './event-stream.ts'
import { readAside } from './read-aside.ts'
import { argumentsOf, type HttpInput } from './read-request.ts'
import type { Streams } from './streams.ts'

declare module 'fastify' {
  interface FastifyRequest {
    asker: Asker | null
    /** The key was checked before the whole body had arrived. */
    isBodyLate: boolean
  }
}

export interface Served {
  readonly engine: Engine
  readonly keys: KeyRules
  readonly calls: Calls
  readonly streams: Streams
  /** Writes the reports of many workers together. */
  readonly reports: Reports
  readonly heartbeatSeconds: number
  readonly maxBodyBytes: number
  readonly dialectSettings: DialectSettings
}

/** A body about one object has at most a payload, an output and metadata, and JSON may write a character as six. */
const payloadsPerBody = 8

export function bind(app: FastifyInstance, served: Served, name: OperationName): void {
  const { engine, keys, calls, maxBodyBytes } = served
  const operation: OperationEntry = operations[name]
  const method = run[name] as (caller: Caller, ...args: unknown[]) => Promise<unknown>
  app.route({
    method: operation.method,
    url: operation.path.replace(/\{(\w+)\}/g, ':$1'),
    ...(operation.isBulk !== true && {
      bodyLimit: Math.min(maxBodyBytes, payloadsPerBody * engine.context.maxPayloadBytes),
    }),
    // Before the body is read: that of a stranger is not worth reading.
    async onRequest(request) {
      await identify(keys, request)
      requirePermission(request.asker!, operation.permission)
    },
    preHandler: checkKeyAgain(keys),
    handler: (request, reply) =>
      calls.answer(reply, request.asker!.holder, async signal => {
        const asker = request.asker!
        const caller = callerFor(served, asker)
        const args = argumentsOf(name, operation, request as HttpInput, callOf(request, asker), signal)
        if (operation.spec === 'job' && typeof args[0] === 'string') args[0] = await readAside(args[0])
        await demandScope(caller, operation, args)
        if (operation.streams === true && wantsStream(request)) {
          return stream(served, request, reply, args[0] as FeedQuery, signal)
        }
        const answer = await method(caller, ...args)
        // The key may have been revoked while the request waited for work.
        if (operation.takes.includes('signal')) requireUnrevoked(signal)
        const isSingle = operation.acceptsSingle === true && !Array.isArray(request.body)
        return reply.status(operation.status).send(isSingle ? (answer as unknown[])[0] : answer)
      }),
  })
}

export const callerFor = ({ engine, reports }: Pick<Served, 'engine' | 'reports'>, { queues }: Asker): Caller => ({
  context: engine.context,
  queues,
  reports,
})

export async function identify(keys: KeyRules, request: FastifyRequest, dialect?: KeyShown): Promise<void> {
  request.asker = await authenticate(keys, request, dialect)
  request.isBodyLate = !request.raw.complete
}

/**
 * Checks the key again if the body had not arrived when the key was first checked. Otherwise a client could keep a
 * request open until its key is revoked, and then send the rest.
 */
export function checkKeyAgain(keys: KeyRules, dialect?: KeyShown) {
  return async (request: FastifyRequest): Promise<void> => {
    const isKeyed = request.asker !== null && request.asker.holder !== ''
    if (isKeyed && request.isBodyLate) await authenticate(keys, request, dialect)
  }
}

/** The actor and the idempotency key come from headers, so that no body can forge them. */
export function callOf({ headers }: FastifyRequest, { name, holder }: Asker): Call {
  const key = textIn(headers['idempotency-key'])
  const actor = [name, textIn(headers['pawl-actor'])].filter(Boolean).join('/')
  const trace = headers.traceparent
  return {
    ...(holder !== '' && { holder }),
    ...(key !== undefined && { idempotencyKey: key }),
    ...(actor !== '' && { actor }),
    // W3C: an invalid traceparent is ignored.
    ...(faultOf(traceparent, trace) === undefined && { traceparent: trace as string }),
  }
}

/** Headers hold only Latin letters. Other characters are percent-encoded, as in a URL. */
function textIn(header: string | string[] | undefined): string | undefined {
  const text = header?.toString()
  try {
    return text && decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A HEAD gets the headers of the plain answer: a stream has no end. */
function wantsStream({ headers, method }: FastifyRequest): boolean {
  return method === 'GET' && headers.accept?.includes('text/event-stream') === true
}

async function stream(
  served: Served,
  request: FastifyRequest,
  reply: FastifyReply,
  query: FeedQuery,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const last = request.headers['last-event-id']
  // A client that reconnects continues after the last event that it saw, wherever the stream first began.
  const { latest: _, ...filter } = query
  const from = typeof last === 'string' && last !== '' ? { ...filter, cursor: last } : query
  const close = served.streams.open(request.asker!)
  try {
    // Once the stream begins, the framework no longer answers; before that it can still answer with a problem.
    await streamEvents(served, from, reply.raw, signal, () => reply.hijack())
  } finally {
    close()
  }
  return reply
}
