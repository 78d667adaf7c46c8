/** The API over HTTP. Every method is made from its entry in the registry of operations. */

import { newId } from '../kernel/id.ts'
import { isTransient, Problem, type ProblemCode, problems } from '../kernel/problem.ts'
import type { Call } from '../protocol/call-options.ts'
import { tasksOf } from '../protocol/jobs/define-job.ts'
import { type ArgumentSource, type OperationEntry, takesKey } from '../protocol/operation.ts'
import { namedOperations, type OperationMethods, type PawlApi } from '../protocol/operations.ts'
import { checkPayloads, type TaskDefinition } from '../protocol/tasks/new-task.ts'
import { findTask, type TaskRegistry, typeOf } from '../protocol/tasks/registry.ts'
import { jobHandle, taskHandle } from '../protocol/tasks/results.ts'
import type { SyncRequest } from '../protocol/tasks/sync.ts'
import type { NewTaskItem, TaskOptions } from '../protocol/tasks/tasks.ts'
import { recordOf } from '../protocol/tasks/type-record.ts'
import { checkOptions, type Field, type Fields, number, type OptionsOf, object, text } from '../schema/check.ts'
import { serverUrl } from '../schema/fields.ts'

const fields = {
  /** Default http://127.0.0.1:7295. */
  server: serverUrl,
  key: text(500),
  /** How long to retry while the server cannot be reached. Default 30; 0: do not retry. */
  patienceSeconds: number({ from: 0, to: 86_400 }),
  /** How long to wait for one answer. Default 30. */
  answerSeconds: number({ from: 0.1, to: 3600 }),
  /** Tasks by name. `enqueue` and `enqueueMany` then accept these names only, each with the payload of its task. */
  tasks: object as Field<TaskRegistry>,
} satisfies Fields

/** How to reach a server, and how long to wait for it. */
export interface ClientOptions extends OptionsOf<typeof fields> {}

/** The whole API over HTTP, from `connect`. */
export interface PawlClient<Tasks extends TaskRegistry = TaskRegistry> extends PawlApi<Tasks> {
  readonly server: string
  close(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Opens a client. Nothing is sent until a method is called. */
export function connect<const Tasks extends TaskRegistry = TaskRegistry>(
  options: ClientOptions & { readonly tasks?: Tasks } = {},
): PawlClient<Tasks> {
  checkOptions(options, fields, 'client')
  const { server = 'http://127.0.0.1:7295', key, patienceSeconds = 30, answerSeconds = 30, tasks } = options
  const link: Link = { server, key, patienceSeconds }
  const definitions = new Map<string, TaskDefinition>()
  const methods = Object.fromEntries(
    namedOperations.map(([name, operation]) => [
      name,
      (...args: unknown[]) => ask(link, requestOf(name, operation, args, answerSeconds)),
    ]),
  ) as unknown as OperationMethods

  const enqueueAll = async (used: readonly (string | TaskDefinition)[], items: readonly NewTaskItem[], call?: Call) => {
    for (const task of new Set(used)) if (typeof task !== 'string') await client.register(task)
    await checkPayloads(definitions, items)
    return methods.enqueueMany(items, call)
  }
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
    async enqueue(named: string | TaskDefinition, payload: unknown, options: TaskOptions & Call = {}) {
      const { actor, idempotencyKey, ...rest } = options
      const task = findTask(tasks, named)
      const [queued] = await enqueueAll([task], [{ ...rest, type: typeOf(task), payload }], {
        actor,
        idempotencyKey,
      } as Call)
      return taskHandle(methods, queued!)
    },
    async submit(spec, call) {
      for (const task of new Set(tasksOf(spec))) await client.register(task)
      return jobHandle(methods, await methods.submit(spec, call))
    },
    async enqueueMany(items: readonly NewTaskItem[], call?: Call) {
      const found = items.map(({ type }) => findTask(tasks, type))
      const typed = items.map((item, index) => ({ ...item, type: typeOf(found[index]!) }))
      return enqueueAll(found, typed, call)
    },
    async register(definition: TaskDefinition) {
      if (definitions.get(definition.type) === definition) return
      await methods.putTaskType(definition.type, recordOf(definition))
      definitions.set(definition.type, definition)
    },
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  return client as unknown as PawlClient<Tasks>
}

/** Turns the arguments of a method into the request from which the server restores them. */
function requestOf(name: string, operation: OperationEntry, args: readonly unknown[], answerSeconds: number) {
  const { takes } = operation
  const bySource: Partial<Record<ArgumentSource, unknown>> = Object.fromEntries(
    takes.map((source, index) => [source, args[index]]),
  )
  const call = (bySource.options ?? bySource.call ?? bySource.rest ?? {}) as Record<string, unknown>
  const { tx, actor, idempotencyKey, traceparent, holder, ...options } = call
  if (tx !== undefined) throw new Problem('TRANSACTION_REMOTE', { operation: name })
  if (holder !== undefined) throw new Problem('OPTION_UNKNOWN', { at: name, option: 'holder' })
  const report = 'epoch' in bySource ? { epoch: bySource.epoch, ...(bySource.rest as object) } : undefined
  const fields = (report ?? (bySource.options === undefined ? bySource.body : options)) as
    | Record<string, unknown>
    | undefined
  const { path, rest } = addressOf(operation.path, bySource.id, fields)
  // With a key of its own, the request is safe to send again when the answer was lost.
  const sendKey = takesKey(operation)
    ? { 'idempotency-key': encodeURIComponent(String(idempotencyKey ?? newId())) }
    : {}
  return {
    method: operation.method,
    path: path + queryText(bySource.query),
    headers: {
      ...sendKey,
      ...(actor !== undefined && { 'pawl-actor': encodeURIComponent(String(actor)) }),
      ...(traceparent !== undefined && { traceparent: String(traceparent) }),
    },
    ...(rest !== undefined && { body: JSON.stringify(rest) }),
    /** If it is sent twice, it has no second effect. So it may be sent again when the answer was lost. */
    repeatable: operation.isRepeatable !== false,
    /** How long to wait for the answer. */
    seconds: takes.includes('signal')
      ? secondsToWait(operation, { ...((bySource.query ?? bySource.body) as object) }, answerSeconds)
      : answerSeconds,
    signal: bySource.signal as AbortSignal | undefined,
  }
}

/** A heartbeat must be sent again before the lease expires, so its answer is awaited for a shorter time. */
function secondsToWait(
  { body = {} }: OperationEntry,
  { claim = 0, waitSeconds = 0, settled = [] }: Partial<SyncRequest>,
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

type Ask = ReturnType<typeof requestOf>

interface Link {
  readonly server: string
  readonly key: string | undefined
  /** How long to retry while the server cannot be reached. */
  readonly patienceSeconds: number
}

const firstPauseMs = 100
const longestPauseMs = 3000

/**
 * Sends a request, and again where that is safe. Returns the body of the answer, undefined if it is empty. An error
 * becomes the problem that the server names.
 */
async function ask(link: Link, what: Ask): Promise<unknown> {
  const until = performance.now() + link.patienceSeconds * 1000
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await askOnce(link, what)
    } catch (error) {
      if (!isTransient(error) || !what.repeatable || what.signal?.aborted || performance.now() + pauseMs > until)
        throw error
      // With jitter: not all clients at once when a server comes back.
      await pause(pauseMs * (0.5 + Math.random() / 2), what.signal)
    }
  }
}

/** Sleeps until the time is over or the signal aborts. Runs in browsers too, so without Node's timers. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const timer = setTimeout(end, ms)
    signal?.addEventListener('abort', end)
  })
}

async function askOnce({ server, key }: Link, { method, path, headers, body, seconds, signal }: Ask): Promise<unknown> {
  const late = AbortSignal.timeout(Math.ceil(seconds * 1000))
  let text: string
  let response: Response
  try {
    response = await fetch(new URL(server.replace(/\/+$/, '') + path), {
      method,
      headers: {
        ...headers,
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
      },
      ...(body !== undefined && { body }),
      signal: signal === undefined ? late : AbortSignal.any([signal, late]),
    })
    text = await response.text()
  } catch (error) {
    const why = late.aborted ? `no answer in ${seconds} s` : reasonOf(error)
    throw new Problem('SERVER_UNREACHABLE', { server, why }, error)
  }
  const answer = parsed(text)
  if (response.ok) return answer
  throw problemIn(answer, response.status, server)
}

function parsed(text: string): unknown {
  try {
    return text === '' ? undefined : JSON.parse(text)
  } catch {
    return undefined
  }
}

function problemIn(answer: unknown, status: number, server: string): Error {
  const { code, details } = (answer ?? {}) as { code?: string; details?: Record<string, unknown> }
  if (code !== undefined && Object.hasOwn(problems, code)) return new Problem(code as ProblemCode, details)
  // The server failed, not the request: it may succeed the next time.
  if (status >= 500) {
    const request = details?.requestId === undefined ? '' : `, request id ${details.requestId}`
    return new Problem('SERVER_UNREACHABLE', { server, why: `HTTP ${status}${request}` })
  }
  return new Error(`The server answered ${status}: ${JSON.stringify(answer ?? null)}`)
}

/** The root cause of "fetch failed". */
function reasonOf(error: unknown): string {
  const { cause, message } = error as Error
  const inner = cause as (Error & { code?: string }) | undefined
  return inner?.code ?? inner?.message ?? message
}
