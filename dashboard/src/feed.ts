/**
 * The feed of events as it happens. A lost connection is taken up again behind the last event that came, so none is
 * missed and none comes twice; a tab that nobody sees reads nothing, and goes on from there when it is looked at.
 */
import { createParser } from 'eventsource-parser'
import type { EventView } from '../../src/protocol/tasks/tasks.ts'
import { api, base, headers } from './server.ts'

export type Link = 'joining' | 'live' | 'lost' | 'paused'

export interface Watch {
  readonly types?: readonly string[]
  readonly jobId?: string
  onEvents(events: readonly EventView[]): void
  onLink(link: Link): void
  /** The server does not let this key look any more. */
  onRefused(): void
}

class Refused extends Error {
  readonly status: number
  constructor(status: number) {
    super(`The feed answered ${status}.`)
    this.status = status
  }
}

const longestPauseMs = 10_000
/** The server says every ten seconds that it is there. */
const longestSilenceMs = 25_000

/** Answers with what ends it. */
export function watchFeed(watch: Watch): () => void {
  const over = new AbortController()
  void follow(watch, over.signal)
  return () => over.abort()
}

async function follow(watch: Watch, over: AbortSignal): Promise<void> {
  // Where it began is known before the first connection, so that even one that told nothing is taken up where it was.
  let last: string | undefined
  for (let pauseMs = 500; !over.aborted; ) {
    if (document.hidden) {
      watch.onLink('paused')
      await untilSeen(over)
      continue
    }
    try {
      last ??= (await api.events({ latest: 0 })).next
      await readOnce(watch, last, over, {
        onOpen: () => (pauseMs = 500),
        onId: id => (last = id),
      })
    } catch (error) {
      if (over.aborted) return
      if (error instanceof Refused) {
        // The place is gone, as after a restore: begin where the feed is now, and read all anew.
        if (error.status === 400 || error.status === 410) last = undefined
        if (error.status === 401 || error.status === 403) watch.onRefused()
      }
    }
    if (document.hidden) continue
    watch.onLink('lost')
    await new Promise(resolve => setTimeout(resolve, pauseMs))
    pauseMs = Math.min(pauseMs * 2, longestPauseMs)
  }
}

/** One connection, until it ends, falls silent, or the tab is hidden. */
async function readOnce(
  { types, jobId, onEvents, onLink }: Watch,
  last: string,
  over: AbortSignal,
  { onOpen, onId }: { onOpen(): void; onId(id: string): void },
): Promise<void> {
  const ending = new AbortController()
  const end = () => ending.abort()
  const hide = () => document.hidden && end()
  let silence = setTimeout(end, longestSilenceMs)
  over.addEventListener('abort', end)
  document.addEventListener('visibilitychange', hide)
  try {
    const query = new URLSearchParams({
      ...(types && { types: types.join(',') }),
      ...(jobId && { jobId }),
    })
    const response = await fetch(`${base}/v1/events?${query}`, {
      headers: { ...headers(), accept: 'text/event-stream', 'last-event-id': last },
      signal: ending.signal,
    })
    if (!response.ok || response.body === null) throw new Refused(response.status)
    onOpen()
    onLink('live')
    let came: EventView[] = []
    const parser = createParser({
      onEvent({ id, data }) {
        if (id !== undefined) onId(id)
        if (data !== '') came.push(JSON.parse(data) as EventView)
      },
    })
    const text = new TextDecoder()
    const reader = response.body.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      clearTimeout(silence)
      silence = setTimeout(end, longestSilenceMs)
      parser.feed(text.decode(read.value, { stream: true }))
      if (came.length > 0) onEvents(came)
      came = []
    }
  } finally {
    clearTimeout(silence)
    over.removeEventListener('abort', end)
    document.removeEventListener('visibilitychange', hide)
  }
}

function untilSeen(over: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const look = () => {
      if (document.hidden && !over.aborted) return
      document.removeEventListener('visibilitychange', look)
      over.removeEventListener('abort', look)
      resolve()
    }
    document.addEventListener('visibilitychange', look)
    over.addEventListener('abort', look)
  })
}
