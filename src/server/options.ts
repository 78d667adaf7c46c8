import type { Log } from '../engine/context.ts'
import { checkOptions, number, oneOf, text } from '../kernel/check.ts'
import { isLoopback } from './admit.ts'

export interface ServerOptions {
  /** Default 127.0.0.1. On an address that is not this machine's own, every request needs a key. */
  readonly host?: string
  /** 0: any that is free. Default 7295. */
  readonly port?: number
  /** Ask for a key on this machine's own address too, as behind a proxy. Default: only elsewhere. */
  readonly keysOnly?: boolean
  /** The largest body. Default 32 MiB. */
  readonly maxBodyBytes?: number
  /** How long a request may take to arrive. Default 30. */
  readonly requestSeconds?: number
  /** How often a stream of events says that it is still there. Default 10. */
  readonly heartbeatSeconds?: number
  readonly log?: Log
}

export const defaultPort = 7295

const fields = {
  host: text(255),
  port: number({ from: 0, to: 65_535, whole: true }),
  keysOnly: oneOf([true, false]),
  maxBodyBytes: number({ from: 1000, to: 1_000_000_000, whole: true }),
  requestSeconds: number({ from: 1, to: 3600 }),
  heartbeatSeconds: number({ from: 0.1, to: 60 }),
  log: (value: unknown) => (typeof value === 'function' ? undefined : 'be a function'),
}

export function serverSettings(options: ServerOptions): Required<ServerOptions> {
  checkOptions(options, fields, 'server')
  const host = options.host ?? '127.0.0.1'
  return {
    host,
    port: options.port ?? defaultPort,
    keysOnly: options.keysOnly === true || !isLoopback(host),
    maxBodyBytes: options.maxBodyBytes ?? 32 * 1_048_576,
    requestSeconds: options.requestSeconds ?? 30,
    heartbeatSeconds: options.heartbeatSeconds ?? 10,
    log: options.log ?? (() => {}),
  }
}
