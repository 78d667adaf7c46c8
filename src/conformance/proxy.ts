/** Stands between a worker and the server: writes down all that is said, and cuts, holds or swallows where a check asks. */
import { once } from 'node:events'
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { HeldTask, SettledTask, SyncAnswer, SyncRequest } from '../protocol/tasks/sync.ts'

/** One sync, as the proxy saw it. Times are those of this process. */
export interface Exchange {
  readonly sentAt: number
  readonly sync: SyncRequest
  /** What the server answered, whether the worker heard it or not. */
  answer?: SyncAnswer
  /** When the worker heard an answer of 200. */
  heardAt?: number
}

export interface Interference {
  /** Before a sync is passed on. 'unavailable': it is not, and the worker is answered 503. */
  before?(exchange: Exchange): Promise<'pass' | 'unavailable'>
  /** Once the server has answered. 'swallow': the connection breaks, and the worker never hears it. */
  after?(exchange: Exchange): Promise<'pass' | 'swallow'>
}

export interface RecordingProxy {
  readonly url: string
  readonly syncs: readonly Exchange[]
  /** Reports under one lease, each with the exchange that carried it. */
  reports(lease: HeldTask): { exchange: Exchange; settled: SettledTask }[]
  interfere(how: Interference): void
  /** Breaks every connection, and takes none until it is mended. */
  cut(): void
  mend(): void
  close(): Promise<void>
}

export const isOf = (lease: HeldTask) => (item: HeldTask) => item.id === lease.id && item.epoch === lease.epoch

export async function startProxy(server: string): Promise<RecordingProxy> {
  const syncs: Exchange[] = []
  let interference: Interference = {}
  let isCut = false
  const agent = new Agent({ keepAlive: true })
  const listener = createServer((asked, answered) => {
    const passage = { asked, answered, server, agent, syncs, interference: () => interference }
    passOn(passage).catch(() => answered.destroy())
  })
  listener.on('connection', socket => isCut && socket.destroy())
  await new Promise<void>(resolve => listener.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    syncs,
    reports: lease =>
      syncs.flatMap(exchange =>
        (exchange.sync.settled ?? []).filter(isOf(lease)).map(settled => ({ exchange, settled })),
      ),
    interfere(how) {
      interference = how
    },
    cut() {
      isCut = true
      listener.closeAllConnections()
    },
    mend() {
      isCut = false
    },
    close() {
      listener.closeAllConnections()
      agent.destroy()
      return new Promise(resolve => listener.close(() => resolve()))
    },
  }
}

interface Passage {
  readonly asked: IncomingMessage
  readonly answered: ServerResponse
  readonly server: string
  readonly agent: Agent
  readonly syncs: Exchange[]
  readonly interference: () => Interference
}

async function passOn(passage: Passage): Promise<void> {
  const { asked, answered, syncs, interference } = passage
  const body = await text(asked)
  const exchange = syncIn(asked, body)
  if (exchange !== undefined) {
    syncs.push(exchange)
    if ((await interference().before?.(exchange)) === 'unavailable') return unavailable(answered)
  }
  const { status, type, said } = await askServer(passage, body)
  if (exchange !== undefined && status === 200) {
    exchange.answer = JSON.parse(said)
    if ((await interference().after?.(exchange)) === 'swallow') {
      answered.destroy()
      return
    }
    if (!answered.destroyed) exchange.heardAt = performance.now()
  }
  answered.writeHead(status, { 'content-type': type })
  answered.end(status === 204 ? undefined : said)
}

async function askServer({ asked, answered, server, agent }: Passage, body: string) {
  // A worker that hangs up must be gone for the server too: what it would have claimed is left to another.
  const gone = new AbortController()
  answered.once('close', () => gone.abort())
  const { method = 'GET', url = '/' } = asked
  const asking = request(new URL(url, server), { method, agent, headers: headersOf(asked), signal: gone.signal })
  // It is thrown below where it counts; one that comes after the answer is of no interest.
  asking.on('error', () => {})
  asking.end(body === '' ? undefined : body)
  const [response] = (await once(asking, 'response')) as [IncomingMessage]
  return {
    status: response.statusCode!,
    type: response.headers['content-type'] ?? 'text/plain',
    said: await text(response),
  }
}

/** Undefined: it is no sync, or none that can be read; the server will say so. */
function syncIn({ url = '', method }: IncomingMessage, body: string): Exchange | undefined {
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

function unavailable(answered: ServerResponse): void {
  answered.writeHead(503, { 'content-type': 'application/problem+json' })
  answered.end(
    JSON.stringify({ type: 'about:blank', title: 'Away for a moment.', status: 503, code: 'STORE_UNAVAILABLE' }),
  )
}
