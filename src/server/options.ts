import type { Log } from '../engine/context.ts'
import { withoutUndefined } from '../kernel/without-undefined.ts'
import { type DialectName, dialectNames } from '../protocol/dialects.ts'
import { callback, checkOptions, field, flag, number, oneOf, orNull, text } from '../schema/check.ts'
import { settingFields } from '../schema/fields.ts'
import { longestYaml } from '../spec/json-bounds.ts'
import { isLoopback } from './authenticate.ts'

/** Options of `startServer`. */
export interface ServerOptions {
  /** Default 127.0.0.1. On an address other than loopback, every request needs a key. */
  readonly host?: string
  /** 0: any free port. Default 7295. */
  readonly port?: number
  /** Require a key on a loopback address too, as behind a proxy. Default: only on other addresses. */
  readonly keysOnly?: boolean
  /** Maximum size of a JSON body. Default 32 MiB. */
  readonly maxBodyBytes?: number
  /** Maximum size of a YAML body, at most 2 MiB: YAML takes far more work to parse than JSON. Default 2 MiB. */
  readonly maxYamlBytes?: number
  /** How long a request may take to arrive. Default 30. */
  readonly requestSeconds?: number
  /**
   * How long a connection may stay idle between two requests. Default 75: longer than most load balancers keep
   * theirs.
   */
  readonly keepAliveSeconds?: number
  /** How often an event stream sends a sign of life. Default 10. */
  readonly heartbeatSeconds?: number
  /** Other systems whose APIs are served under `/dialects/<name>`. Default: none. */
  readonly dialects?: readonly DialectName[]
  /** The dialect that is served at `/`, for clients that take no prefix. Pawl's own routes are then under `/pawl`. */
  readonly rootDialect?: DialectName | null
  /** How long a worker of Jobnik keeps a task without reporting. Default 86400: 24 hours. */
  readonly jobnikLeaseSeconds?: number
  /** How long a worker of another system that sends no heartbeats keeps a task. Default: a day. */
  readonly falconeriLeaseSeconds?: number
  /** An event loop that is blocked for this long is logged and counted; 0: it is not watched. Default 1. */
  readonly blockedSeconds?: number
  /** Maximum number of open event streams. Default 500. */
  readonly maxStreams?: number
  /** Maximum number of open event streams per key. Default 100. */
  readonly maxStreamsPerKey?: number
  readonly log?: Log
}

/** The prefix of Pawl's own routes while a dialect is served at `/`. */
export const ownRoot = '/pawl'

const streamCount = number({ from: 1, to: 100_000, whole: true })

export const serverFields = {
  host: text(255),
  port: number({ from: 0, to: 65_535, whole: true }),
  keysOnly: flag,
  maxBodyBytes: number({ from: 1000, to: 500 * 1_048_576, whole: true }),
  maxYamlBytes: number({ from: 1000, to: longestYaml, whole: true }),
  requestSeconds: number({ from: 1, to: 3600 }),
  keepAliveSeconds: number({ from: 1, to: 3600 }),
  heartbeatSeconds: number({ from: 0.1, to: 60 }),
  dialects: field({ type: 'array', items: { type: 'string', enum: dialectNames } }, value =>
    Array.isArray(value) && value.every(item => dialectNames.includes(item))
      ? undefined
      : `be a list of ${dialectNames.join(', ')}`,
  ),
  rootDialect: orNull(oneOf(dialectNames)),
  jobnikLeaseSeconds: settingFields.leaseSeconds,
  falconeriLeaseSeconds: settingFields.leaseSeconds,
  blockedSeconds: number({ from: 0, to: 600 }),
  maxStreams: streamCount,
  maxStreamsPerKey: streamCount,
  log: callback,
}

/** Workers of Jobnik and Falconeri send no heartbeats. Jobnik's own deployment waits this long. */
const silentLeaseSeconds = 86_400

export const serverDefaults = {
  host: '127.0.0.1',
  port: 7295,
  maxBodyBytes: 32 * 1_048_576,
  maxYamlBytes: longestYaml,
  requestSeconds: 30,
  keepAliveSeconds: 75,
  heartbeatSeconds: 10,
  dialects: [],
  rootDialect: null,
  jobnikLeaseSeconds: silentLeaseSeconds,
  falconeriLeaseSeconds: silentLeaseSeconds,
  blockedSeconds: 1,
  maxStreams: 500,
  maxStreamsPerKey: 100,
  log() {},
} satisfies ServerOptions

export function serverSettings(options: ServerOptions): Required<ServerOptions> {
  checkOptions(options, serverFields, 'server')
  const settings = { ...serverDefaults, ...(withoutUndefined(options) as ServerOptions) }
  return { ...settings, keysOnly: options.keysOnly === true || !isLoopback(settings.host) }
}
