/**
 * One shared poll of the feed for all streams that have read everything, so the number of waiting streams costs
 * nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'

export type ReadFeed = (query: FeedQuery) => Promise<FeedPage>

export interface Feed {
  readonly read: ReadFeed
  /** Resolves when there may be more behind the cursor, after `ms`, or when the signal aborts. */
  more(cursor: string, ms: number, signal: AbortSignal): Promise<void>
}

const pollMs = 250

interface Waiter {
  readonly cursor: string
  wake(): void
}

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
    read,
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
