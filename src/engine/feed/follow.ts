/** Follows the event feed: yields pages as they come, and empty pages as a heartbeat. */
import type { FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'
import type { Feed } from './feed-watch.ts'

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
