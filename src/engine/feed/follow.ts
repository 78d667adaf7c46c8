/** Follows the event feed: yields pages as they come, and empty pages as a heartbeat. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'

export interface Following {
  readonly signal: AbortSignal
  /** An empty page is yielded after this time without events. Default 10. */
  readonly silenceSeconds?: number
  /** Maximum number of events per page. Default 500. */
  readonly eventsPerPage?: number
}

/**
 * Yields the first page, even if it is empty, then every page with events until the signal aborts. A page is read only
 * when the consumer asks for it, so nothing piles up for a slow one. Read errors are thrown.
 */
export async function* follow(
  feed: Feed,
  query: FeedQuery,
  { signal, silenceSeconds = 10, eventsPerPage = 500 }: Following,
): AsyncGenerator<FeedPage, void, void> {
  const { cursor: from, latest, ...filter } = query
  const read = (cursor: string | undefined) =>
    feed.read({ ...filter, limit: eventsPerPage, ...(cursor !== undefined && { cursor }) })
  let page = latest === undefined ? await read(from) : await feed.read(query)
  yield page
  let yieldedAt = performance.now()
  while (!signal.aborted) {
    const leftMs = silenceSeconds * 1000 - (performance.now() - yieldedAt)
    if (page.items.length === 0 && !page.more && leftMs > 0) await feed.more(page.next, leftMs, signal)
    if (signal.aborted) return
    page = await read(page.next)
    if (page.items.length === 0 && performance.now() - yieldedAt < silenceSeconds * 1000) continue
    yield page
    yieldedAt = performance.now()
  }
}

export type ReadFeed = (query: FeedQuery) => Promise<FeedPage>

export interface Feed {
  /** Streams that read the same page at the same time share one read. */
  readonly read: ReadFeed
  /** Resolves when there may be more behind the cursor, after `ms`, or when the signal aborts. */
  more(cursor: string, ms: number, signal: AbortSignal): Promise<void>
}

const pollMs = 250

interface Waiter {
  readonly cursor: string
  wake(): void
}

/**
 * One shared poll of the feed for all streams that have read everything, so the number of waiting streams costs
 * nothing.
 */
export function watchFeed(read: ReadFeed): Feed {
  const waiting = new Set<Waiter>()
  let isPolling = false

  /** Streams at another cursor than the polled one are woken to read for themselves. They are then at the end, too. */
  async function poll(): Promise<void> {
    const [first] = waiting
    if (first === undefined) return
    const isMore = await read({ cursor: first.cursor, limit: 1 }).then(
      ({ items }) => items.length > 0,
      // Each stream gets the error when it reads.
      () => true,
    )
    for (const waiter of waiting) if (isMore || waiter.cursor !== first.cursor) waiter.wake()
  }

  async function keepPolling(): Promise<void> {
    isPolling = true
    while (waiting.size > 0) {
      await sleep(pollMs)
      await poll()
    }
    isPolling = false
  }

  return {
    read: sharing(read),
    more(cursor, ms, signal) {
      return new Promise(resolve => {
        const wake = () => {
          waiting.delete(waiter)
          clearTimeout(timer)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        const waiter = { cursor, wake }
        const timer = setTimeout(wake, ms)
        signal.addEventListener('abort', wake)
        waiting.add(waiter)
        if (signal.aborted) wake()
        else if (!isPolling) void keepPolling()
      })
    },
  }
}

/** More would all write their answers in one turn of the event loop. */
const readersPerRead = 50

/**
 * Shares reads that are under way. A page that was asked for a moment earlier lacks the latest events at most, and the
 * next read finds those. A read without a cursor is not shared: it may ask where the feed ends now.
 */
function sharing(read: ReadFeed): ReadFeed {
  const underWay = new Map<string, { readonly page: Promise<FeedPage>; readers: number }>()
  return query => {
    if (query.cursor === undefined) return read(query)
    const key = JSON.stringify(query)
    const shared = underWay.get(key)
    if (shared !== undefined && shared.readers < readersPerRead) {
      shared.readers += 1
      return shared.page
    }
    const page = read(query).finally(() => {
      if (underWay.get(key)?.page === page) underWay.delete(key)
    })
    underWay.set(key, { page, readers: 1 })
    return page
  }
}
