import type { Log } from '../engine/context.ts'
import { type DialectName, dialectNames } from '../protocol/dialects.ts'
import { callback, checkOptions, field, number, oneOf, orNull, text } from '../schema/check.ts'
import { settingFields } from '../schema/fields.ts'
import { longestYaml } from '../spec/yaml-limits.ts'
import { isLoopback } from './authenticate.ts'

export interface ServerOptions {
  /** Default 127.0.0.1. On an address that is not this machine's own, every request needs a key. */
  readonly host?: string
  /** 0: any that is free. Default 7295. */
  readonly port?: number
  /** Ask for a key on this machine's own address too, as behind a proxy. Default: only elsewhere. */
  readonly keysOnly?: boolean
  /** The largest JSON body. Default 32 MiB. */
  readonly maxBodyBytes?: number
  /** The largest YAML body, at most 2 MiB: YAML takes far more work to read than JSON. Default 2 MiB. */
  readonly maxYamlBytes?: number
  /** How long a request may take to arrive. Default 30. */
  readonly requestSeconds?: number
  /** How long a connection may stay idle between two requests. Default 75: longer than most load balancers keep theirs. */
  readonly keepAliveSeconds?: number
  /** How often a stream of events says that it is still there. Default 10. */
  readonly heartbeatSeconds?: number
  /** The other systems whose APIs are served, under `/dialects/<name>`. Default: none. */
  readonly dialects?: readonly DialectName[]
  /** The dialect that is served at `/`, for clients that take no prefix. Pawl's own routes are then under `/pawl`. */
  readonly rootDialect?: DialectName | null
  /** How long a task stays with a worker of Jobnik's that says nothing. Default 86400: 24 hours. */
  readonly jobnikLeaseSeconds?: number
  /** How long a task is left to a worker of another system that sends no heartbeats. Default: a day. */
  readonly falconeriLeaseSeconds?: number
  /** An event loop that is blocked for this long is logged and counted; 0: it is not watched. Default 1. */
  readonly blockedSeconds?: number
  /** How many streams of events may be open at once. Default 500. */
  readonly maxStreams?: number
  /** How many streams of events clients with one key may have open. Default 100. */
  readonly maxStreamsPerKey?: number
  readonly log?: Log
}

export const defaultPort = 7295
export const defaultRequestSeconds = 30
export const defaultKeepAliveSeconds = 75
/** Workers of Jobnik and Falconeri send no heartbeats. As long as Jobnik's own deployment waits for one. */
export const silentLeaseSeconds = 86_400
/** Where Pawl's own routes are while a dialect has the place at `/`. */
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
