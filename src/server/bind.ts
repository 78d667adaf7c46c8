/** Binds a route of the table to the operation that it is named for: who asks, what it says, the answer. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Call, DialectSettings } from '../dialects/dialect.ts'
import type { Pawl } from '../engine/engine.ts'
import { bulkOperations, type Operation, type Route, routes } from '../protocol/routes.ts'
import type { FeedQuery } from '../protocol/tasks/tasks.ts'
import { faultOf } from '../schema/check.ts'
import { traceparent } from '../schema/fields.ts'
import { type Asker, admit, type Door, demand, type KeyShown } from './admit.ts'
import { type Calls, demandKeyStill } from './calls.ts'
import { streamEvents } from './event-stream.ts'
import { demandQueuesOf } from './queues-of.ts'
import { readAside } from './read-aside.ts'
import { argumentsOf, type Came } from './read-request.ts'
import type { Streams } from './streams.ts'

declare module 'fastify' {
  interface FastifyRequest {
    asker: Asker | null
    /** The key was looked at before the whole body had arrived. */
    isBodyLate: boolean
  }
}

export interface Served {
  readonly engine: Pawl
  readonly door: Door
  readonly calls: Calls
  readonly streams: Streams
  /** What many workers report at once, it writes together. */
  readonly sync: ReturnType<Pawl['merging']>
  readonly heartbeatSeconds: number
  readonly maxBodyBytes: number
  readonly dialectSettings: DialectSettings
}

/** A body about one thing has at most a payload, an output and metadata, and JSON may write a character as six. */
const payloadsPerBody = 8

export function bind(app: FastifyInstance, served: Served, operation: Operation): void {
  const { engine, door, calls, sync, maxBodyBytes } = served
  const route: Route = routes[operation]
  const call = (operation === 'sync' ? sync : engine[operation]) as (...args: unknown[]) => Promise<unknown>
  app.route({
    method: route.method,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    ...(!bulkOperations.has(operation) && {
      bodyLimit: Math.min(maxBodyBytes, payloadsPerBody * engine.context.maxPayloadBytes),
    }),
    // Before the body is read: a stranger's is not worth it.
    async onRequest(request) {
      await letIn(door, request)
      demand(request.asker!, route.needs)
    },
    preHandler: admitAgain(door),
    handler: (request, reply) =>
      calls.answer(reply, request.asker!.holder, async signal => {
        const asker = request.asker!
        const args = argumentsOf(operation, request as Came, callOf(request, asker))
        if (operation === 'submit' && typeof args[0] === 'string') args[0] = await readAside(args[0])
        await demandQueuesOf(asker, engine, operation, args)
        if (operation === 'events' && wantsStream(request)) {
          return stream(served, request, reply, args[0] as FeedQuery, signal)
        }
        // What a client that has gone would claim is better left to another.
        if (operation === 'sync' || operation === 'claims') args.push(signal)
        // Where a spawn leads, and what a pipeline is, only the engine knows.
        if (operation === 'sync' || operation === 'succeed' || operation === 'submit') args.push(asker.queues)
        const answer = await call(...args)
        // The key may have been revoked while the request waited for work.
        if (operation === 'sync' || operation === 'claims') demandKeyStill(signal)
        const isSingle = operation === 'enqueueMany' && !Array.isArray(request.body)
        return reply.status(route.status).send(isSingle ? (answer as unknown[])[0] : answer)
      }),
  })
}

export async function letIn(door: Door, request: FastifyRequest, dialect?: KeyShown): Promise<void> {
  request.asker = await admit(door, request, dialect)
  request.isBodyLate = !request.raw.complete
}

/**
 * Looks at the key again if the body had not arrived when the key was first looked at: nobody is to keep a request open
 * until its key is revoked, and send the rest of it then.
 */
export function admitAgain(door: Door, dialect?: KeyShown) {
  return async (request: FastifyRequest): Promise<void> => {
    const isKeyed = request.asker !== null && request.asker.holder !== ''
    if (isKeyed && request.isBodyLate) await admit(door, request, dialect)
  }
}

/** Who asks, and the key under which the request may be repeated: both from headers, so that no body can forge them. */
export function callOf({ headers }: FastifyRequest, { name, holder }: Asker): Call {
  const key = textIn(headers['idempotency-key'])
  const said = textIn(headers['pawl-actor'])
  const actor = [name, said].filter(Boolean).join('/')
  const trace = headers.traceparent
  return {
    ...(holder !== '' && { holder }),
    ...(key !== undefined && { idempotencyKey: key }),
    ...(actor !== '' && { actor }),
    // One that is broken is as good as none, as W3C has it.
    ...(faultOf(traceparent, trace) === undefined && { traceparent: trace as string }),
  }
}

/** Headers hold Latin letters only: others come percent-encoded, as in a URL. */
function textIn(header: string | string[] | undefined): string | undefined {
  const text = header?.toString()
  try {
    return text && decodeURIComponent(text)
  } catch {
    return text
  }
}

/** A HEAD asks what a GET would answer, and a stream has no end to tell. */
function wantsStream({ headers, method }: FastifyRequest): boolean {
  return method === 'GET' && headers.accept?.includes('text/event-stream') === true
}

async function stream(
  served: Served,
  request: FastifyRequest,
  reply: FastifyReply,
  ask: FeedQuery,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const last = request.headers['last-event-id']
  // Who comes back names the last event seen, and goes on there wherever the stream first began.
  const { latest: _, ...wanted } = ask
  const from = typeof last === 'string' && last !== '' ? { ...wanted, cursor: last } : ask
  const close = served.streams.open(request.asker!)
  try {
    // Once it streams, it is no answer of the framework's any more; until then a problem is.
    await streamEvents(served, from, reply.raw, signal, () => reply.hijack())
  } finally {
    close()
  }
  return reply
}
