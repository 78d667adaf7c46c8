/**
 * The feed as Server-Sent Events. The id of an event is the cursor after it, so a client that was disconnected
 * continues after the last event it saw. A comment every few seconds shows both sides that the connection is alive.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Engine } from '../engine/engine.ts'
import { Problem } from '../kernel/problem.ts'
import type { FeedEvent, FeedPage, FeedQuery } from '../protocol/tasks/tasks.ts'
import type { Identity } from './authenticate.ts'

/** Events held in memory for each slow client: one page, as objects and as text. */
const eventsPerPage = 50
const chunkSize = 16_384
/** A client that reads nothing for this long is disconnected, because it holds a page in memory. It can reconnect. */
const slowestMs = 30_000

export interface StreamSource {
  readonly engine: Pick<Engine, 'follow'>
  readonly heartbeatSeconds: number
}

/** A HEAD gets the headers of the plain answer: a stream has no end. */
export function wantsStream({ headers, method }: FastifyRequest): boolean {
  return method === 'GET' && headers.accept?.includes('text/event-stream') === true
}

/** Answers a request with a stream of the events that the query selects. */
export async function answerWithStream(
  served: StreamSource & { readonly streams: Streams },
  request: FastifyRequest,
  reply: FastifyReply,
  query: FeedQuery,
  signal: AbortSignal,
): Promise<FastifyReply> {
  const last = request.headers['last-event-id']
  // A client that reconnects continues after the last event that it saw, wherever the stream first began.
  const { latest: _, ...filter } = query
  const from = typeof last === 'string' && last !== '' ? { ...filter, cursor: last } : query
  const close = served.streams.open(request.identity!)
  try {
    // Once the stream begins, the framework no longer answers; before that it can still answer with a problem.
    await streamEvents(served, from, reply.raw, signal, () => reply.hijack())
  } finally {
    close()
  }
  return reply
}

/** Streams until the signal aborts. An error of the first read is thrown before the stream begins. */
export function streamEvents(
  { engine, heartbeatSeconds }: StreamSource,
  ask: FeedQuery,
  to: ServerResponse,
  signal: AbortSignal,
  begin: () => void,
): Promise<void> {
  const pages = engine.follow(ask, { signal, silenceSeconds: heartbeatSeconds, eventsPerPage })
  const head = {
    status: 200,
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' },
  }
  return streamTexts(head, eventTexts(pages, ask), to, signal, begin)
}

async function* eventTexts(pages: AsyncIterable<FeedPage>, ask: FeedQuery): AsyncGenerator<string, void, void> {
  let isFirst = true
  for await (const { items, next } of pages) {
    if (isFirst) {
      yield 'retry: 1000\n\n'
      // A client that is disconnected before the first event must not resume at a later end of the feed.
      if (ask.latest !== undefined && items.length === 0) yield `id: ${next}\n\n`
    } else if (items.length === 0) yield ': still here\n\n'
    isFirst = false
    yield* inChunks(items.map(frame))
  }
}

/**
 * Sends texts as the client reads them, until they end or the signal aborts. An error before the first of them is thrown
 * before the stream begins.
 */
export async function streamTexts(
  { status, headers }: { readonly status: number; readonly headers: Readonly<Record<string, string>> },
  texts: AsyncGenerator<string, void, void>,
  to: ServerResponse,
  signal: AbortSignal,
  begin: () => void,
): Promise<void> {
  let next = await texts.next()
  begin()
  to.writeHead(status, { 'x-content-type-options': 'nosniff', ...headers })
  try {
    // A client that has left reads nothing: waiting for it would hold its place.
    for (; next.done !== true && !signal.aborted; next = await texts.next()) await say(to, next.value, signal)
  } catch (error) {
    // The store or the client is gone. The client reconnects with the last id it saw.
    if (!signal.aborted) to.destroy(error as Error)
  } finally {
    await texts.return()
  }
  to.end()
}

/** Waits for slow clients, so that nothing accumulates in memory. */
async function say(to: ServerResponse, text: string, signal: AbortSignal): Promise<void> {
  if (to.write(text)) return
  const late = new AbortController()
  const end = () => late.abort()
  const timer = setTimeout(end, slowestMs)
  signal.addEventListener('abort', end)
  try {
    await once(to, 'drain', { signal: late.signal })
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}

/** Events may be large, so the buffer for a slow client is limited by size, not by count. */
function* inChunks(frames: readonly string[]): Generator<string> {
  let chunk = ''
  for (const text of frames) {
    chunk += text
    if (chunk.length < chunkSize) continue
    yield chunk
    chunk = ''
  }
  if (chunk !== '') yield chunk
}

function frame({ cursor, ...event }: FeedEvent): string {
  const { type } = event
  return `id: ${cursor}\n${type === null ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`
}

export interface StreamLimits {
  readonly maxStreams: number
  readonly maxStreamsPerKey: number
}

export interface Streams {
  /** Reserves a place for a stream. Call the returned function to release it. */
  open(identity: Pick<Identity, 'holder'>): () => void
}

/**
 * Limits open streams. Each holds memory as long as its client is connected, even if the client never reads. There is a
 * limit for all streams and one per key, so that one client cannot take the places of all others.
 */
export function limitStreams({ maxStreams, maxStreamsPerKey }: StreamLimits): Streams {
  const openOf = new Map<string, number>()
  let all = 0
  return {
    open({ holder }) {
      const mine = openOf.get(holder) ?? 0
      // Without keys, clients cannot be told apart, so only the total limit applies.
      if (holder !== '' && mine >= maxStreamsPerKey) throw new Problem('STREAMS_OF_KEY', { most: maxStreamsPerKey })
      if (all >= maxStreams) throw new Problem('STREAMS_FULL', { most: maxStreams })
      all += 1
      openOf.set(holder, mine + 1)
      let isOpen = true
      return () => {
        if (!isOpen) return
        isOpen = false
        all -= 1
        const left = openOf.get(holder)! - 1
        if (left === 0) openOf.delete(holder)
        else openOf.set(holder, left)
      }
    },
  }
}
