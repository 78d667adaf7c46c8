/**
 * The feed as Server-Sent Events. Each event's id is the cursor behind it, so a client that was cut off names the last
 * one it saw and misses none. A comment every few seconds tells both sides that the other is there.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import type { Engine } from '../engine/engine.ts'
import type { FeedEvent, FeedPage, FeedQuery } from '../protocol/tasks/tasks.ts'

/** Events that are kept in memory for each slow client: one page, as objects and as text. */
const eventsPerPage = 50
const chunkSize = 16_384
/** A client that takes nothing for so long is cut off: it holds a page here, and comes back with its last id. */
const slowestMs = 30_000

export interface StreamSource {
  readonly engine: Pick<Engine, 'follow'>
  readonly heartbeatSeconds: number
}

/** Streams until the signal aborts. What cannot be read at all is thrown before it begins. */
export async function streamEvents(
  { engine, heartbeatSeconds }: StreamSource,
  ask: FeedQuery,
  to: ServerResponse,
  signal: AbortSignal,
  begin: () => void,
): Promise<void> {
  const pages = engine.follow(ask, { signal, silenceSeconds: heartbeatSeconds, eventsPerPage })
  const first = (await pages.next()).value as FeedPage
  const sayPage = async ({ items }: FeedPage) => {
    for (const text of inChunks(items.map(frame))) await say(to, text, signal)
  }
  begin()
  to.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
  try {
    await say(to, 'retry: 1000\n\n', signal)
    // Who is cut off before the first event must not begin at a later end.
    const begins = ask.latest !== undefined && first.items.length === 0
    if (begins) await say(to, `id: ${first.next}\n\n`, signal)
    await sayPage(first)
    for await (const page of pages) {
      if (page.items.length === 0) await say(to, ': still here\n\n', signal)
      await sayPage(page)
    }
  } catch (error) {
    // The store is away, or the client is: it comes back with the last id that it saw.
    if (!signal.aborted) to.destroy(error as Error)
  }
  to.end()
}

/** A client that reads slowly is waited for, so nothing piles up here. */
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

/** Events may be large, so what waits for a slow client is bounded by its size and not by its number. */
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
