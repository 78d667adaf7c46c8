/** One look at the feed for all streams that have read everything: those that wait cost nothing more, however many. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'

/** Whoever reads the feed for them. */
export interface FeedReader {
  events(ask: FeedQuery): Promise<FeedPage>
}

export interface FeedWatch {
  /** Resolves when there may be more behind the cursor, when the time is over, or when the signal aborts. */
  more(cursor: string, ms: number, signal: AbortSignal): Promise<void>
}

const pollMs = 250

interface Waiter {
  readonly cursor: string
  wake(): void
}

export function watchFeed(engine: FeedReader): FeedWatch {
  const waiting = new Set<Waiter>()
  let isPolling = false

  /** Those who stand elsewhere than where it looks go and look themselves: then they stand at the end, too. */
  async function poll(): Promise<void> {
    const [first] = waiting
    if (first === undefined) return
    const isMore = await engine.events({ cursor: first.cursor, limit: 1 }).then(
      ({ items }) => items.length > 0,
      // What is wrong, each of them hears when it reads.
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
