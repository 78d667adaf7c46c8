/** The engine's interface from the other side of HTTP: every operation is a row of the table of routes. */

import { newId } from '../kernel/id.ts'
import { Problem } from '../kernel/problem.ts'
import type { Call, PawlApi } from '../protocol/api.ts'
import { type Operation, type Route, routes, takesKey } from '../protocol/routes.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import { checkPayload, recordOf, type TaskDefinition } from '../protocol/tasks/task-type.ts'
import type { NewTaskItem, TaskOptions } from '../protocol/tasks/tasks.ts'
import { checkOptions, number, text } from '../schema/check.ts'
import { serverUrl } from '../schema/fields.ts'
import { type Ask, ask, type Link } from './http.ts'

export interface ClientOptions {
  /** Default http://127.0.0.1:7295. */
  readonly server?: string
  readonly key?: string
  /** How long to go on asking a server that cannot be reached. Default 30; 0: ask once. */
  readonly patienceSeconds?: number
  /** How long to wait for one answer. Default 30. */
  readonly answerSeconds?: number
}

export interface PawlClient extends PawlApi {
  readonly server: string
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

const fields = {
  server: serverUrl,
  key: text(500),
  patienceSeconds: number({ from: 0, to: 86_400 }),
  answerSeconds: number({ from: 0.1, to: 3600 }),
}

/** Opens a client. Nothing is sent until something is asked. */
export function connect(options: ClientOptions = {}): PawlClient {
  checkOptions(options, fields, 'client')
  const { server = 'http://127.0.0.1:7295', key, patienceSeconds = 30, answerSeconds = 30 } = options
  const link: Link = { server, key, patienceSeconds }
  const definitions = new Map<string, TaskDefinition>()
  const operations = Object.fromEntries(
    (Object.keys(routes) as Operation[]).map(operation => [
      operation,
      (...args: unknown[]) => ask(link, requestOf(operation, args, answerSeconds)),
    ]),
  ) as unknown as Pick<PawlApi, Operation>

  const client: PawlClient = {
    ...operations,
    server,
    async sync(request: SyncRequest, signal?: AbortSignal) {
      try {
        if (!signal?.aborted) return await operations.sync(request, signal)
      } catch (error) {
        if (!signal?.aborted) throw error
      }
      // It may have won something just when it was called off: asked again under its id, it gets that, and waits no more.
      return operations.sync({ ...request, waitSeconds: 0 })
    },
    async enqueue<In>(type: string | TaskDefinition<In>, payload: In, options: TaskOptions & Call = {}) {
      const { actor, idempotencyKey, ...task } = options
      if (typeof type !== 'string') await client.register(type)
      const item = { ...task, type: typeof type === 'string' ? type : type.type, payload }
      const [queued] = await client.enqueueMany([item], callOf({ actor, idempotencyKey }))
      return queued!
    },
    async enqueueMany(items: readonly NewTaskItem[], call?: Call) {
      for (const [index, { type, payload }] of items.entries()) {
        const definition = definitions.get(type)
        if (definition !== undefined) await checkPayload(definition, payload, `tasks[${index}].payload`)
      }
      return operations.enqueueMany(items, call)
    },
    async register(definition: TaskDefinition) {
      if (definitions.get(definition.type) === definition) return
      await operations.putTaskType(definition.type, recordOf(definition))
      definitions.set(definition.type, definition)
    },
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  return client
}

function callOf({ actor, idempotencyKey }: { actor: string | undefined; idempotencyKey: string | undefined }): Call {
  return { ...(actor !== undefined && { actor }), ...(idempotencyKey !== undefined && { idempotencyKey }) }
}

/** Turns the arguments of an operation into the request that the server makes them of again. */
function requestOf(operation: Operation, args: readonly unknown[], answerSeconds: number): Ask {
  const route: Route = routes[operation]
  const given = Object.fromEntries(route.takes.map((name, index) => [name, args[index]]))
  const said = (given.options ?? given.call ?? given.said ?? {}) as Record<string, unknown>
  const { tx, actor, idempotencyKey, traceparent, holder, ...options } = said
  if (tx !== undefined) throw new Problem('TRANSACTION_REMOTE', { operation })
  if (holder !== undefined) throw new Problem('OPTION_UNKNOWN', { at: operation, option: 'holder' })
  const held = 'epoch' in given ? { epoch: given.epoch, ...(given.said as object) } : undefined
  const named = (held ?? (given.options === undefined ? given.body : options)) as Record<string, unknown> | undefined
  const { path, rest } = addressOf(route.path, given.id, named)
  const isClaim = operation === 'sync' || operation === 'claims'
  // A key of our own makes it safe to send again when its answer was lost.
  const sendKey = takesKey(operation)
    ? { 'idempotency-key': encodeURIComponent(String(idempotencyKey ?? newId())) }
    : {}
  return {
    method: route.method,
    path: path + queryText(given.query),
    headers: {
      ...sendKey,
      ...(actor !== undefined && { 'pawl-actor': encodeURIComponent(String(actor)) }),
      ...(traceparent !== undefined && { traceparent: String(traceparent) }),
    },
    ...(rest !== undefined && { body: JSON.stringify(rest) }),
    repeatable: operation !== 'sync' && operation !== 'createKey',
    seconds: isClaim ? patienceOf(args[0] as SyncRequest, answerSeconds) : answerSeconds,
    signal: isClaim ? (args[route.takes.length] as AbortSignal | undefined) : undefined,
  }
}

/** A beat must be sent again before the lease is over, so it is not waited for as long as other answers. */
function patienceOf({ claim = 0, waitSeconds = 0, settled = [] }: SyncRequest, answerSeconds: number): number {
  return claim === 0 && settled.length === 0 ? Math.min(answerSeconds, 5) : answerSeconds + waitSeconds
}

/** Puts parameters into the path; those that are fields of the body are taken out of it. */
function addressOf(pattern: string, id: unknown, body: unknown) {
  let rest = body as Record<string, unknown> | undefined
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (name === 'id') return encodeURIComponent(String(id))
    const { [name]: value, ...others } = rest!
    rest = others
    return encodeURIComponent(String(value))
  })
  return { path, rest }
}

function queryText(query: unknown): string {
  const entries = Object.entries((query ?? {}) as Record<string, unknown>).filter(([, value]) => value !== undefined)
  const text = new URLSearchParams(entries.map(([name, value]): [string, string] => [name, wordOf(value)])).toString()
  return text === '' ? '' : `?${text}`
}

const wordOf = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value))
