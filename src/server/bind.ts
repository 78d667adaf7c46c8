/**
 * Binds the operations of the registry to their routes: authenticates a request, maps it to the arguments of its operation,
 * and answers with the result. The engine validates the arguments, as it does in process.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Call, DialectSettings } from '../dialects/dialect.ts'
import type { WatchKey } from '../engine/admin/keys.ts'
import type { Activities } from '../engine/admin/process-metrics.ts'
import type { Engine } from '../engine/engine.ts'
import { type Caller, run } from '../engine/operations.ts'
import { demandPermission, demandScope } from '../engine/queue-scope.ts'
import type { Reports } from '../engine/tasks/merge-reports.ts'
import { Problem } from '../kernel/problem.ts'
import { type ArgumentSource, bodyFields, hasBody, type OperationEntry } from '../protocol/operation.ts'
import type { OperationName } from '../protocol/operations.ts'
import type { FeedQuery } from '../protocol/tasks/tasks.ts'
import { checkOptions, type Fields, faultOf, isObject, type Schema } from '../schema/check.ts'
import { traceparent } from '../schema/fields.ts'
import { checkKeyAgain, type Identity, identify, type KeyRules } from './authenticate.ts'
import { parseSpecText } from './bodies.ts'
import { answerWithStream, type Streams, wantsStream } from './event-stream.ts'

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

export function bind(app: FastifyInstance, served: Served, name: OperationName, operation: OperationEntry): void {
  const { engine, keys, calls, maxBodyBytes } = served
  const readArguments = argumentReader(name, operation)
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
      demandPermission(request.identity!.roles, operation.permission)
    },
    preHandler: checkKeyAgain(keys),
    handler: (request, reply) =>
      calls.answer(reply, request.identity!.holder, async signal => {
        const identity = request.identity!
        const caller: Caller = {
          context: engine.context,
          queues: identity.queues,
          holder: identity.holder,
          reports: served.reports,
        }
        const args = readArguments(request as HttpInput, callOf(request, identity), signal)
        if (operation.spec === 'job' && typeof args[0] === 'string') args[0] = await parseSpecText(args[0])
        await demandScope(caller, operation, args)
        if (operation.streams === true && wantsStream(request)) {
          return answerWithStream(served, request, reply, args[0] as FeedQuery, signal)
        }
        const answer = await method(caller, ...args)
        // The key may have been revoked while the request waited for work.
        if (operation.takes.includes('signal')) requireUnrevoked(signal)
        const isSingle = operation.acceptsSingle === true && !Array.isArray(request.body)
        return reply.status(operation.status).send(isSingle ? (answer as unknown[])[0] : answer)
      }),
  })
}

/** The actor and the idempotency key come from headers, so that no body can forge them. */
export function callOf({ headers }: FastifyRequest, { name, holder }: Identity): Call {
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

export interface HttpInput {
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | readonly string[]>>
  readonly body: unknown
}

/** Maps a request to the arguments of its operation, in order. */
function argumentReader(name: string, operation: OperationEntry) {
  const fieldsOfBody = bodyFields(operation)
  return (input: HttpInput, call: object, signal: AbortSignal): unknown[] => {
    const body = hasBody(operation) ? bodyOf(name, operation, fieldsOfBody, input) : undefined
    const query = queryOf(operation.query ?? {}, input.query, name)
    const fields = body as Record<string, unknown>
    const sources: Record<ArgumentSource, () => unknown> = {
      id: () => input.params.id,
      query: () => query,
      body: () => body,
      options: () => ({ ...fields, ...call }),
      call: () => call,
      epoch: () => fields.epoch,
      rest() {
        const { epoch: _, ...rest } = fields
        return rest
      },
      signal: () => signal,
    }
    return operation.takes.map(source => sources[source]())
  }
}

function bodyOf(name: string, operation: OperationEntry, fields: Fields, { body, params }: HttpInput): unknown {
  const { list, acceptsSingle, spec, required = [] } = operation
  if (spec === 'job') {
    if (isObject(body) || typeof body === 'string') return body
    throw refused('be a job spec')
  }
  if (list !== undefined || spec === 'stages') {
    if (Array.isArray(body)) return body
    if (acceptsSingle && isObject(body)) return [body]
    throw refused(acceptsSingle ? 'be an object or a list of them' : 'be a list')
  }
  if (body !== undefined && !isObject(body)) throw refused('be an object')
  checkOptions(body ?? {}, fields, name)
  const missing = required.find(field => body?.[field] === undefined)
  if (missing !== undefined) throw new Problem('OPTION_INVALID', { at: name, option: missing, must: 'be given' })
  const { id: _, ...inPath } = params
  return { ...body, ...inPath }
}

function refused(must: string): Problem {
  return new Problem('BODY_INVALID', { why: `it must ${must}` })
}

/** A query holds only texts. The schema of a field says which type is meant. */
function queryOf(fields: Fields, query: HttpInput['query'], name: string): Record<string, unknown> {
  const entries = Object.entries(query).map(([field, value]) => {
    const known = Object.hasOwn(fields, field) ? fields[field] : undefined
    return [field, known === undefined ? value : parsed(value, known)] as const
  })
  const values = Object.fromEntries(entries)
  checkOptions(values, fields, name)
  return values
}

function parsed(value: string | readonly string[], schema: Schema): unknown {
  const types = [schema, ...((schema.anyOf as Schema[] | undefined) ?? [])].map(({ type }) => type)
  const texts = [value].flat().flatMap(text => (types.includes('array') ? text.split(',') : [text]))
  if (types.includes('array')) return texts
  const [text] = texts as [string]
  if (texts.length > 1) return texts
  if (types.includes('boolean') && (text === 'true' || text === 'false')) return text === 'true'
  const isNumber = types.includes('integer') || types.includes('number')
  return isNumber && text.trim() !== '' && Number.isFinite(Number(text)) ? Number(text) : text
}

/**
 * Requests in progress. Each has a signal that aborts when its client disconnects, its key is revoked or the server shuts
 * down, so that nobody is kept waiting. The server stops when the last of them has ended.
 */
export interface Calls {
  isEnding(): boolean
  /** Runs `work` as a request in progress. `keyId`: id of the request's key; '': it has none. */
  answer<T>(reply: FastifyReply, keyId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Aborts all requests in progress; resolves when they have ended. */
  end(): Promise<void>
}

/** Time for the last bytes of a stream. If its client does not read, the stream would not end by itself. */
const lastBytesMs = 1000

/** Throws if the key of the request was revoked while it was being answered. */
export function requireUnrevoked(signal: AbortSignal): void {
  if (signal.reason instanceof Problem) throw signal.reason
}

/** One reason for all requests: without it, each would create an error with a stack. */
const answered = new Error('the request was answered')

export function openCalls(activities: Activities, watchKey: WatchKey): Calls {
  const open = new Set<AbortController>()
  let whenQuiet: (() => void) | undefined
  let isEnding = false
  return {
    isEnding: () => isEnding,
    async answer(reply, keyId, work) {
      const call = new AbortController()
      const hangUp = () => call.abort()
      let cut: NodeJS.Timeout | undefined
      const refuse = () => {
        call.abort(new Problem('KEY_MISSING'))
        cut = setTimeout(() => reply.raw.headersSent && reply.raw.destroy(), lastBytesMs)
      }
      const unwatch = keyId === '' ? undefined : watchKey(keyId, refuse)
      reply.raw.once('close', hangUp)
      open.add(call)
      const end = activities.begin(`${reply.request.method} ${reply.request.routeOptions.url ?? ''}`)
      if (isEnding) call.abort()
      try {
        return await work(call.signal)
      } finally {
        reply.raw.off('close', hangUp)
        unwatch?.()
        clearTimeout(cut)
        // Also ends work that was started for an answer that has been sent, or that nobody reads.
        call.abort(answered)
        end()
        open.delete(call)
        if (open.size === 0) whenQuiet?.()
      }
    },
    end() {
      isEnding = true
      for (const call of open) call.abort()
      return new Promise(resolve => {
        whenQuiet = resolve
        if (open.size === 0) resolve()
      })
    },
  }
}
