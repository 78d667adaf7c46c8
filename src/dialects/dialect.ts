/** What a dialect is: the words, routes and shapes of another system, spoken over the engine. It decides nothing. */

import type { Permission } from '../kernel/role.ts'
import type { DialectName } from '../protocol/dialects.ts'
import type { Schema } from '../schema/check.ts'
import type { AskersEngine } from './askers-engine.ts'
import type { Words } from './words.ts'

export interface Dialect {
  readonly name: DialectName
  /** The system that it is spoken by, for people. */
  readonly of: string
  readonly words: Words
  readonly routes: readonly DialectRoute[]
  /** What goes wrong, as its clients expect to be told. */
  refuse(fault: Fault): Answer
  /** The body of such an answer. */
  readonly faults: Schema
  /** The key in an Authorization header of its clients. Default: as a bearer. */
  secretIn?(authorization: string): string | undefined
  /** A header of its clients that holds nothing but the key, in small letters. */
  readonly keyHeader?: string
  /** Its answers hold addresses of its own, which begin with its root. */
  readonly links?: true
  /** Which roles the keys of its clients need; for docs/dialects.md. */
  readonly keys: string
  /** What it cannot say, and what of the original is done otherwise; for docs/dialects.md. */
  readonly limits: readonly string[]
}

export interface DialectRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Under the dialect's own root, `{id}` for what varies. */
  readonly path: string
  /**
   * The permission that the asker's key must have; of several, one is enough. null: anyone may ask. It is asked for before the body is
   * read; what the request then does is checked by the engine that it is given.
   */
  readonly needs: Permission | readonly Permission[] | null
  /** A further permission that the key must have. */
  readonly also?: Permission
  readonly says: string
  /** The parameters of the query, for documentation. All of them are optional texts. */
  readonly query?: readonly string[]
  /** The body of a request, for documentation. */
  readonly takes?: Schema
  /** The body of a good answer, with nothing missing and nothing more. */
  readonly answers: Schema | null
  /** The status of a good answer. Default 200, and 204 where there is no body. */
  readonly status?: number
  /** The media type of a good answer, for documentation. Default: that of JSON, or of plain text. */
  readonly mediaType?: string
  handle(ask: Ask): Promise<Answer>
}

/** A request, as it came: what it holds the dialect checks. */
export interface Ask {
  readonly engine: AskersEngine
  readonly params: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string | readonly string[]>>
  readonly body: unknown
  /** Who asks, under which idempotency key, in which trace: passed on to what the engine does. */
  readonly call: Call
  /** Where the dialect is served: what it links to begins with it. */
  readonly root: string
  /** The last event that a client of a stream has seen, as it names it when it comes back. */
  readonly lastEventId: string | undefined
  /** How often a stream says that it is still there. */
  readonly heartbeatSeconds: number
  readonly settings: DialectSettings
  /** Aborts when the client has gone or the server ends. */
  readonly signal: AbortSignal
}

/** Settings of the server that dialects need. */
export interface DialectSettings {
  /** How long a task stays with a worker of Jobnik's that says nothing. */
  readonly jobnikLeaseSeconds: number
  /** How long a datum is left to a worker of Falconeri's that says nothing. */
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
  /** A text is sent as it is, anything else as JSON; undefined: nothing is sent. */
  readonly body?: unknown
  /** In place of a body: sent piece by piece, until it ends or the client has gone. */
  readonly stream?: AsyncIterable<string>
}

/** A problem of ours, or a bug (500), before it is put into a dialect's words. */
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

/** A body whose fields only the handler knows, for documentation. */
export const someBody: Schema = { type: 'object' }

export const good = (body: unknown, status = 200): Answer => ({ status, body })
