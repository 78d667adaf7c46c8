/** One look at the feed for all streams that have read everything: those that wait cost nothing more, however many. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FeedPage, FeedQuery } from '../../protocol/tasks/tasks.ts'

export type ReadFeed = (query: FeedQuery) => Promise<FeedPage>

export interface Feed {
  readonly read: ReadFeed
  /** Resolves when there may be more behind the cursor, when the time is over, or when the signal aborts. */
  more(cursor: string, ms: number, signal: AbortSignal): Promise<void>
}

const lookMs = 250

interface Waiter {
  readonly cursor: string
  wake(): void
}

export function watchFeed(read: ReadFeed): Feed {
  const waiting = new Set<Waiter>()
  let isLooking = false

  /** Those who stand elsewhere than where it looks go and look themselves: then they stand at the end, too. */
  async function look(): Promise<void> {
    const [first] = waiting
    if (first === undefined) return
    const isMore = await read({ cursor: first.cursor, limit: 1 }).then(
      ({ items }) => items.length > 0,
      // What is wrong, each of them hears when it reads.
      () => true,
    )
    for (const waiter of waiting) if (isMore || waiter.cursor !== first.cursor) waiter.wake()
  }

  async function keepLooking(): Promise<void> {
    isLooking = true
    while (waiting.size > 0) {
      await sleep(lookMs)
      await look()
    }
    isLooking = false
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
        else if (!isLooking) void keepLooking()
      })
    },
  }
}
