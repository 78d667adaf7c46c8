/** The feed as it goes on: pages as they come, and a sign of life where none comes. */
import type { FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'
import type { Feed } from './feed-watch.ts'

export interface Following {
  readonly signal: AbortSignal
  /** An empty page is given when nothing came for so long. Default 10. */
  readonly silenceSeconds?: number
  /** How many events a page has at most. Default 500. */
  readonly eventsPerPage?: number
}

/**
 * Gives the first page, whatever is in it, then every page with events, until the signal aborts. No page is read before
 * it is asked for: whoever takes them slowly has nothing pile up. What cannot be read is thrown.
 */
export async function* follow(
  feed: Feed,
  ask: FeedQuery,
  { signal, silenceSeconds = 10, eventsPerPage = 500 }: Following,
): AsyncGenerator<FeedPage, void, void> {
  const { cursor: from, latest, ...wanted } = ask
  const read = (cursor: string | undefined) =>
    feed.read({ ...wanted, limit: eventsPerPage, ...(cursor !== undefined && { cursor }) })
  let page = latest === undefined ? await read(from) : await feed.read(ask)
  yield page
  let saidAt = performance.now()
  while (!signal.aborted) {
    const leftMs = silenceSeconds * 1000 - (performance.now() - saidAt)
    if (page.items.length === 0 && !page.more && leftMs > 0) await feed.more(page.next, leftMs, signal)
    if (signal.aborted) return
    page = await read(page.next)
    if (page.items.length === 0 && performance.now() - saidAt < silenceSeconds * 1000) continue
    yield page
    saidAt = performance.now()
  }
}
