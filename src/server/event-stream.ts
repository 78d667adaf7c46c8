/**
 * The feed as Server-Sent Events. Each event's id is the cursor behind it, so a client that was cut off names the last
 * one it saw and misses none. A comment every few seconds tells both sides that the other is there.
 */
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Pawl } from '../engine/engine.ts'
import type { FeedEvent, FeedQuery } from '../protocol/tasks.ts'

const lookMs = 250
const heartbeatMs = 10_000
const eventsPerPage = 500

/** Streams until the signal aborts. What cannot be read at all is thrown before it begins. */
export async function streamEvents(
  engine: Pick<Pawl, 'events'>,
  ask: FeedQuery,
  to: ServerResponse,
  signal: AbortSignal,
  begin: () => void,
): Promise<void> {
  const read = (cursor?: string) =>
    engine.events({ ...ask, limit: eventsPerPage, ...(cursor !== undefined && { cursor }) })
  let page = await read(ask.cursor)
  begin()
  to.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  to.flushHeaders()
  let saidAt = performance.now()
  const say = async (text: string) => {
    saidAt = performance.now()
    // A client that reads slowly is waited for; nothing piles up here.
    if (!to.write(text)) await once(to, 'drain', { signal })
  }
  try {
    await say('retry: 1000\n\n')
    while (!signal.aborted) {
      if (page.items.length > 0) await say(page.items.map(frame).join(''))
      else {
        if (performance.now() - saidAt > heartbeatMs) await say(': still here\n\n')
        await sleep(lookMs, undefined, { signal })
      }
      page = await read(page.next)
    }
  } catch (error) {
    // The store is away, or the client is: it comes back with the last id that it saw.
    if (!signal.aborted) to.destroy(error as Error)
  }
  to.end()
}

function frame({ cursor, ...event }: FeedEvent): string {
  return `id: ${cursor}\nevent: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`
}
