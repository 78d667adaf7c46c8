/**
 * The live event feed. A lost connection resumes after the last event received, so none is missed or repeated. A hidden
 * tab reads nothing, and resumes when it is visible again.
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
  /** The server rejects the key. */
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
/** The server sends a sign of life every ten seconds. */
const longestSilenceMs = 25_000

/** Returns a function that stops it. */
export function watchFeed(watch: Watch): () => void {
  const over = new AbortController()
  void follow(watch, over.signal)
  return () => over.abort()
}

async function follow(watch: Watch, over: AbortSignal): Promise<void> {
  // The position is known before the first connection, so even one that sent nothing resumes at the right place.
  let last: string | undefined
  for (let pauseMs = 500; !over.aborted; ) {
    if (document.hidden) {
      watch.onLink('paused')
      await untilVisible(over)
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
        // The position is gone, for example after a restore: start at the current end.
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
    let received: EventView[] = []
    const parser = createParser({
      onEvent({ id, data }) {
        if (id !== undefined) onId(id)
        if (data !== '') received.push(JSON.parse(data) as EventView)
      },
    })
    const text = new TextDecoder()
    const reader = response.body.getReader()
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      clearTimeout(silence)
      silence = setTimeout(end, longestSilenceMs)
      parser.feed(text.decode(read.value, { stream: true }))
      if (received.length > 0) onEvents(received)
      received = []
    }
  } finally {
    clearTimeout(silence)
    over.removeEventListener('abort', end)
    document.removeEventListener('visibilitychange', hide)
  }
}

function untilVisible(over: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const check = () => {
      if (document.hidden && !over.aborted) return
      document.removeEventListener('visibilitychange', check)
      over.removeEventListener('abort', check)
      resolve()
    }
    document.addEventListener('visibilitychange', check)
    over.addEventListener('abort', check)
  })
}
