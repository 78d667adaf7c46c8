/** A dialect serves the routes, shapes and state names of another system over the engine. It decides nothing itself. */

import type { Permission } from '../kernel/role.ts'
import type { DialectName } from '../protocol/dialects.ts'
import { view } from '../protocol/shapes.ts'
import type { Schema } from '../schema/check.ts'
import type { DialectEngine } from './dialect-engine.ts'
import type { Words } from './words.ts'

export interface Dialect {
  readonly name: DialectName
  /** The system whose clients use the dialect, for people. */
  readonly system: string
  readonly words: Words
  readonly routes: readonly DialectRoute[]
  /** Answers with an error as the clients of the system expect it. */
  refuse(fault: Fault): Answer
  /** The body of an error. */
  readonly faults: Schema
  /** Finds the key in an Authorization header. Default: it is the bearer token. */
  secretIn?(authorization: string): string | undefined
  /** A header that contains nothing but the key, in lower case. */
  readonly keyHeader?: string
  /** Answers contain links to the dialect's own routes, which begin with its root. */
  readonly links?: true
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

export interface DialectRoute {
  readonly method: Method
  /** Relative to the dialect's root, with `{id}` for a parameter. */
  readonly path: string
  /**
   * The permission that the key must have; one of a list is enough. null: no key is needed. It is checked before the
   * body is read. The engine that the handler gets checks everything that the request then does.
   */
  readonly needs: Permission | readonly Permission[] | null
  /** A further permission that the key must have. */
  readonly also?: Permission
  readonly summary: string
  /** The parameters of the query, for documentation. All of them are optional texts. */
  readonly query?: readonly string[]
  /** The body of a request, for documentation. */
  readonly takes?: Schema
  /** The exact body of a successful answer. */
  readonly answers: Schema | null
  /** The status of a successful answer. Default: 200, or 204 without a body. */
  readonly status?: number
  /** The media type of a successful answer, for documentation. Default: JSON, or plain text for a text. */
  readonly mediaType?: string
  handle(request: DialectRequest): Promise<Answer>
}

export function route(
  address: `${Method} /${string}`,
  needs: DialectRoute['needs'],
  rest: Omit<DialectRoute, 'method' | 'path' | 'needs'>,
): DialectRoute {
  const [method, path] = address.split(' ') as [Method, string]
  return { method, path, needs, ...rest }
}

/** A request as it was sent. The dialect validates it. */
export interface DialectRequest {
  readonly engine: DialectEngine
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | readonly string[]>>
  readonly body: unknown
  /** The actor, idempotency key and trace of the request, for the engine. */
  readonly call: Call
  /** The root of the dialect: its links begin with it. */
  readonly root: string
  /** The last event that a reconnecting client of a stream has seen. */
  readonly lastEventId: string | undefined
  /** The interval of a stream's keep-alive comments. */
  readonly heartbeatSeconds: number
  readonly settings: DialectSettings
  /** Aborts when the client disconnects or the server closes. */
  readonly signal: AbortSignal
}

/** Settings of the server that dialects need. */
export interface DialectSettings {
  /** How long a silent Jobnik worker keeps its task. */
  readonly jobnikLeaseSeconds: number
  /** How long a silent Falconeri pod keeps its datum. */
  readonly falconeriLeaseSeconds: number
}

export interface Call {
  readonly actor?: string
  readonly holder?: string
  readonly idempotencyKey?: string
  readonly traceparent?: string
}

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  /** Text is sent unchanged, anything else as JSON; undefined: no body. */
  readonly body?: unknown
  /** Sent piece by piece instead of a body, until it ends or the client disconnects. */
  readonly stream?: AsyncGenerator<string, void, void>
}

/** A problem, or a bug (500), before the dialect puts it into its own words. */
export interface Fault {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Describes the permissions that a route needs, for people. */
export function neededFor({ needs, also }: Pick<DialectRoute, 'needs' | 'also'>): string {
  if (needs === null) return 'no key'
  return [[needs].flat().join(' or '), ...(also === undefined ? [] : [also])].join(' and ')
}

/** Documents a body whose fields are described in the summary of the route, or in those of the original. */
export const someBody: Schema = { type: 'object' }

export const good = (body: unknown, status = 200): Answer => ({ status, body })

/** The schema of an answer with these properties and no others. */
export const closedObject = (properties: Readonly<Record<string, Schema>>): Schema =>
  view<Record<string, unknown>>(properties)
