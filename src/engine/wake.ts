/** Tells waiting syncs that work has come: at once within the process, by NOTIFY between processes. */
import { setTimeout as sleep } from 'node:timers/promises'

/** Passes the word on to other processes. Polling stays the truth: a word that is lost costs only time. */
export interface Messenger {
  send(queues: readonly string[]): Promise<void>
  /** Calls `hear` with queues that others queued to, until the signal aborts. */
  listen(hear: (queues: readonly string[]) => void, signal: AbortSignal): void
}

export interface Wake {
  /** Work has come to these queues. */
  tell(queues: readonly string[]): void
  /** How many words have come so far: taken before a look, it makes sure that none is missed between look and wait. */
  heard(): number
  /** Resolves when work has come to one of the queues `since`, when the time is over, or when the signal aborts. */
  wait(queues: readonly string[], since: number, seconds: number, signal?: AbortSignal): Promise<void>
}

const spacingMs = 20

export function wakeBoard(messenger: Messenger | undefined, signal: AbortSignal): Wake {
  const waiting = new Set<{ queues: ReadonlySet<string>; wake(): void }>()
  const unsent = new Set<string>()
  let sending = false
  let listening = false
  let words = 0
  const lastWord = new Map<string, number>()

  const here = (queues: readonly string[]) => {
    words += 1
    for (const queue of queues) lastWord.set(queue, words)
    for (const waiter of waiting) if (queues.some(queue => queue === '*' || waiter.queues.has(queue))) waiter.wake()
  }
  // NOTIFY takes a lock that all committers share, so one is sent at once and those that follow are gathered.
  const pass = async (to: Messenger) => {
    sending = true
    while (unsent.size > 0 && !signal.aborted) {
      const queues = [...unsent]
      unsent.clear()
      await to.send(queues).catch(() => {})
      await sleep(spacingMs, undefined, { ref: false })
    }
    sending = false
  }
  return {
    tell(queues) {
      here(queues)
      if (messenger === undefined) return
      for (const queue of queues) unsent.add(queue)
      if (!sending) void pass(messenger)
    },
    heard: () => words,
    wait(queues, since, seconds, stop) {
      if (messenger !== undefined && !listening) {
        listening = true
        messenger.listen(here, signal)
      }
      return new Promise(resolve => {
        const waiter = { queues: new Set(queues), wake: () => end() }
        const timer = setTimeout(() => end(), seconds * 1000)
        const end = () => {
          waiting.delete(waiter)
          clearTimeout(timer)
          stop?.removeEventListener('abort', end)
          resolve()
        }
        waiting.add(waiter)
        stop?.addEventListener('abort', end)
        const isLate = [...queues, '*'].some(queue => (lastWord.get(queue) ?? 0) > since)
        if (isLate || stop?.aborted) end()
      })
    },
  }
}
