/**
 * A proxy between a worker and the server. It records syncs and, for a check, breaks connections or delays and drops
 * answers.
 */
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { HeldTask, SyncAnswer, SyncRequest } from '../protocol/tasks/sync.ts'

/** A sync. Times are from this process's performance.now(). */
export interface Exchange {
  readonly sentAt: number
  readonly sync: SyncRequest
  /** The server's answer, whether or not the worker received it. */
  answer?: SyncAnswer
  /** When an answer with status 200 was sent to the worker. */
  heardAt?: number
}

export interface Interference {
  /** Called before a sync is forwarded. 'unavailable': answer 503 instead. */
  before?(exchange: Exchange): Promise<'pass' | 'unavailable'>
  /** Called after the server has answered. 'swallow': close the connection instead of forwarding the answer. */
  after?(exchange: Exchange): Promise<'pass' | 'swallow'>
}

export const isForLease = (lease: HeldTask) => (item: HeldTask) => item.id === lease.id && item.epoch === lease.epoch

export async function startProxy(server: string) {
  const syncs: Exchange[] = []
  let interference: Interference = {}
  let isCut = false
  const agent = new Agent({ keepAlive: true })
  const listener = createServer((workerRequest, workerResponse) => {
    const proxied = { workerRequest, workerResponse, server, agent, syncs, interference: () => interference }
    forward(proxied).catch(() => workerResponse.destroy())
  })
  listener.on('connection', socket => isCut && socket.destroy())
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    syncs,
    /** Reports under one lease, each with the exchange that carried it. */
    reports: (lease: HeldTask) =>
      syncs.flatMap(exchange =>
        (exchange.sync.settled ?? []).filter(isForLease(lease)).map(settled => ({ exchange, settled })),
      ),
    interfere(how: Interference): void {
      interference = how
    },
    /** Breaks all connections, and refuses new ones until `mend`. */
    cut(): void {
      isCut = true
      listener.closeAllConnections()
    },
    mend(): void {
      isCut = false
    },
    close(): Promise<void> {
      listener.closeAllConnections()
      agent.destroy()
      return new Promise(resolve => listener.close(() => resolve()))
    },
  }
}

interface ProxiedRequest {
  readonly workerRequest: IncomingMessage
  readonly workerResponse: ServerResponse
  readonly server: string
  readonly agent: Agent
  readonly syncs: Exchange[]
  readonly interference: () => Interference
}

async function forward(proxied: ProxiedRequest): Promise<void> {
  const { workerRequest, workerResponse, syncs, interference } = proxied
  const body = await text(workerRequest)
  const exchange = parseSync(workerRequest, body)
  if (exchange !== undefined) {
    syncs.push(exchange)
    if ((await interference().before?.(exchange)) === 'unavailable') return unavailable(workerResponse)
  }
  const { status, type, body: answer } = await callServer(proxied, body)
  if (exchange !== undefined && status === 200) {
    exchange.answer = JSON.parse(answer)
    if ((await interference().after?.(exchange)) === 'swallow') {
      workerResponse.destroy()
      return
    }
    if (!workerResponse.destroyed) exchange.heardAt = performance.now()
  }
  workerResponse.writeHead(status, { 'content-type': type })
  workerResponse.end(status === 204 ? undefined : answer)
}

async function callServer({ workerRequest, workerResponse, server, agent }: ProxiedRequest, body: string) {
  // When the worker disconnects, the server must notice, or it would claim tasks for a worker that cannot receive them.
  const gone = new AbortController()
  workerResponse.once('close', () => gone.abort())
  const { method = 'GET', url = '/' } = workerRequest
  const serverRequest = request(new URL(url, server), {
    method,
    agent,
    headers: headersOf(workerRequest),
    signal: gone.signal,
  })
  // `once` below throws errors before the answer. Later ones do not matter.
  serverRequest.on('error', () => {})
  serverRequest.end(body === '' ? undefined : body)
  const [response] = (await once(serverRequest, 'response')) as [IncomingMessage]
  return {
    status: response.statusCode!,
    type: response.headers['content-type'] ?? 'text/plain',
    body: await text(response),
  }
}

/** Undefined if the request is not a valid sync. The server will reject it then. */
function parseSync({ url = '', method }: IncomingMessage, body: string): Exchange | undefined {
  if (method !== 'POST' || !/^\/v1\/workers\/[^/]+\/sync\/?$/.test(url)) return undefined
  try {
    const sync = JSON.parse(body)
    return typeof sync === 'object' && sync !== null ? { sentAt: performance.now(), sync } : undefined
  } catch {
    return undefined
  }
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  const kept = ['authorization', 'content-type', 'accept', 'idempotency-key', 'pawl-actor']
  return Object.fromEntries(kept.flatMap(name => (headers[name] === undefined ? [] : [[name, String(headers[name])]])))
}

function unavailable(workerResponse: ServerResponse): void {
  workerResponse.writeHead(503, { 'content-type': 'application/problem+json' })
  workerResponse.end(
    JSON.stringify({ type: 'about:blank', title: 'Away for a moment.', status: 503, code: 'STORE_UNAVAILABLE' }),
  )
}
