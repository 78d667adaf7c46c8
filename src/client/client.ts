/** The API over HTTP. Every method is made from its entry in the registry of operations. */

import { newId } from '../kernel/id.ts'
import { Problem } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { Call } from '../protocol/call-options.ts'
import type { ArgumentSource, OperationEntry } from '../protocol/operation.ts'
import { namedOperations, type OperationMethods, takesKey } from '../protocol/operations.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import { checkPayload, recordOf, type TaskDefinition } from '../protocol/tasks/task-type.ts'
import type { NewTaskItem, TaskOptions } from '../protocol/tasks/tasks.ts'
import { checkOptions, number, text } from '../schema/check.ts'
import { serverUrl } from '../schema/fields.ts'
import { type Ask, ask, type Link } from './http.ts'

/** How to reach a server, and how long to wait for it. */
export interface ClientOptions {
  /** Default http://127.0.0.1:7295. */
  readonly server?: string
  readonly key?: string
  /** How long to retry while the server cannot be reached. Default 30; 0: do not retry. */
  readonly patienceSeconds?: number
  /** How long to wait for one answer. Default 30. */
  readonly answerSeconds?: number
}

/** The whole API over HTTP, from `connect`. */
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

/** Opens a client. Nothing is sent until a method is called. */
export function connect(options: ClientOptions = {}): PawlClient {
  checkOptions(options, fields, 'client')
  const { server = 'http://127.0.0.1:7295', key, patienceSeconds = 30, answerSeconds = 30 } = options
  const link: Link = { server, key, patienceSeconds }
  const definitions = new Map<string, TaskDefinition>()
  const methods = Object.fromEntries(
    namedOperations.map(([name, operation]) => [
      name,
      (...args: unknown[]) => ask(link, requestOf(name, operation, args, answerSeconds)),
    ]),
  ) as unknown as OperationMethods

  const client: PawlClient = {
    ...methods,
    server,
    async sync(request: SyncRequest, signal?: AbortSignal) {
      try {
        if (!signal?.aborted) return await methods.sync(request, signal)
      } catch (error) {
        if (!signal?.aborted) throw error
      }
      // The aborted request may have claimed tasks. Sent again under its `syncId`, it gets them without waiting.
      return methods.sync({ ...request, waitSeconds: 0 })
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
      return methods.enqueueMany(items, call)
    },
    async register(definition: TaskDefinition) {
      if (definitions.get(definition.type) === definition) return
      await methods.putTaskType(definition.type, recordOf(definition))
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

/** Turns the arguments of a method into the request from which the server restores them. */
function requestOf(name: string, operation: OperationEntry, args: readonly unknown[], answerSeconds: number): Ask {
  const { takes } = operation
  const given: Partial<Record<ArgumentSource, unknown>> = Object.fromEntries(
    takes.map((source, index) => [source, args[index]]),
  )
  const call = (given.options ?? given.call ?? given.rest ?? {}) as Record<string, unknown>
  const { tx, actor, idempotencyKey, traceparent, holder, ...options } = call
  if (tx !== undefined) throw new Problem('TRANSACTION_REMOTE', { operation: name })
  if (holder !== undefined) throw new Problem('OPTION_UNKNOWN', { at: name, option: 'holder' })
  const report = 'epoch' in given ? { epoch: given.epoch, ...(given.rest as object) } : undefined
  const fields = (report ?? (given.options === undefined ? given.body : options)) as Record<string, unknown> | undefined
  const { path, rest } = addressOf(operation.path, given.id, fields)
  // With a key of its own, the request is safe to send again when the answer was lost.
  const sendKey = takesKey(operation)
    ? { 'idempotency-key': encodeURIComponent(String(idempotencyKey ?? newId())) }
    : {}
  return {
    method: operation.method,
    path: path + queryText(given.query),
    headers: {
      ...sendKey,
      ...(actor !== undefined && { 'pawl-actor': encodeURIComponent(String(actor)) }),
      ...(traceparent !== undefined && { traceparent: String(traceparent) }),
    },
    ...(rest !== undefined && { body: JSON.stringify(rest) }),
    repeatable: operation.isRepeatable !== false,
    seconds: takes.includes('signal')
      ? secondsToWait(operation, given.body as SyncRequest, answerSeconds)
      : answerSeconds,
    signal: given.signal as AbortSignal | undefined,
  }
}

/** A heartbeat must be sent again before the lease expires, so its answer is awaited for a shorter time. */
function secondsToWait(
  { body = {} }: OperationEntry,
  { claim = 0, waitSeconds = 0, settled = [] }: SyncRequest,
  answerSeconds: number,
): number {
  // Only a request that can carry heartbeats is one. A claim alone claims a task even if it names no number.
  const isHeartbeat = Object.hasOwn(body, 'beats') && claim === 0 && settled.length === 0
  return isHeartbeat ? Math.min(answerSeconds, 5) : answerSeconds + waitSeconds
}

/** Puts parameters into the path. Those that are fields of the body are removed from it. */
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
  const text = new URLSearchParams(
    entries.map(([name, value]): [string, string] => [name, queryValue(value)]),
  ).toString()
  return text === '' ? '' : `?${text}`
}

const queryValue = (value: unknown) => (value instanceof Date ? value.toISOString() : String(value))
