import type { Log } from '../engine/context.ts'
import { type DialectName, dialectNames } from '../protocol/dialects.ts'
import { callback, checkOptions, field, number, oneOf, orNull, text } from '../schema/check.ts'
import { settingFields } from '../schema/fields.ts'
import { longestYaml } from '../spec/yaml-limits.ts'
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

export const defaultPort = 7295
export const defaultRequestSeconds = 30
export const defaultKeepAliveSeconds = 75
/** Workers of Jobnik and Falconeri send no heartbeats. Jobnik's own deployment waits this long. */
export const silentLeaseSeconds = 86_400
/** The prefix of Pawl's own routes while a dialect is served at `/`. */
export const ownRoot = '/pawl'

export const dialectList = field({ type: 'array', items: { type: 'string', enum: dialectNames } }, value =>
  Array.isArray(value) && value.every(item => dialectNames.includes(item))
    ? undefined
    : `be a list of ${dialectNames.join(', ')}`,
)

export const blockBound = number({ from: 0, to: 600 })
export const requestSeconds = number({ from: 1, to: 3600 })
export const keepAliveSeconds = number({ from: 1, to: 3600 })
export const defaultStreams = { maxStreams: 500, maxStreamsPerKey: 100 }
export const streamCount = number({ from: 1, to: 100_000, whole: true })
export const bodyBytes = number({ from: 1000, to: 500 * 1_048_576, whole: true })
export const yamlBytes = number({ from: 1000, to: longestYaml, whole: true })
export const defaultBodyBytes = 32 * 1_048_576

const fields = {
  host: text(255),
  port: number({ from: 0, to: 65_535, whole: true }),
  keysOnly: oneOf([true, false]),
  maxBodyBytes: bodyBytes,
  maxYamlBytes: yamlBytes,
  requestSeconds,
  keepAliveSeconds,
  heartbeatSeconds: number({ from: 0.1, to: 60 }),
  dialects: dialectList,
  rootDialect: orNull(oneOf(dialectNames)),
  jobnikLeaseSeconds: settingFields.leaseSeconds,
  falconeriLeaseSeconds: settingFields.leaseSeconds,
  blockedSeconds: blockBound,
  maxStreams: streamCount,
  maxStreamsPerKey: streamCount,
  log: callback,
}

export function serverSettings(options: ServerOptions): Required<ServerOptions> {
  checkOptions(options, fields, 'server')
  const host = options.host ?? '127.0.0.1'
  return {
    host,
    port: options.port ?? defaultPort,
    keysOnly: options.keysOnly === true || !isLoopback(host),
    maxBodyBytes: options.maxBodyBytes ?? defaultBodyBytes,
    maxYamlBytes: options.maxYamlBytes ?? longestYaml,
    requestSeconds: options.requestSeconds ?? defaultRequestSeconds,
    keepAliveSeconds: options.keepAliveSeconds ?? defaultKeepAliveSeconds,
    heartbeatSeconds: options.heartbeatSeconds ?? 10,
    dialects: options.dialects ?? [],
    rootDialect: options.rootDialect ?? null,
    jobnikLeaseSeconds: options.jobnikLeaseSeconds ?? silentLeaseSeconds,
    falconeriLeaseSeconds: options.falconeriLeaseSeconds ?? silentLeaseSeconds,
    blockedSeconds: options.blockedSeconds ?? 1,
    maxStreams: options.maxStreams ?? defaultStreams.maxStreams,
    maxStreamsPerKey: options.maxStreamsPerKey ?? defaultStreams.maxStreamsPerKey,
    log: options.log ?? (() => {}),
  }
}
