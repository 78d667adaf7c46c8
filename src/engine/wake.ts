/**
 * Tells waiting syncs that work has come: at once within the process, by NOTIFY between processes, and by one look for
 * all of them, every two seconds and when the next task comes due. A word wakes a few; those that win as much as they
 * asked for wake the next, so that a thousand who wait do not all run for one task.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** Passes the word on to other processes. Looking stays the truth: a word that is lost costs only time. */
export interface Messenger {
  send(queues: readonly string[]): Promise<void>
  /** Calls `hear` with queues that others queued to, until the signal aborts. */
  listen(onNotified: (queues: readonly string[]) => void, signal: AbortSignal): void
}

export interface Wake {
  /** Work has come to these queues. */
  notify(queues: readonly string[]): void
  /** There may be more in these queues than was claimed. */
  wakeSome(queues: readonly string[]): void
  /** A task comes due in so many seconds. */
  expectDueIn(seconds: number): void
  /** How many words have come so far: taken before a look, it makes sure that none is missed between look and wait. */
  notificationCount(): number
  /** Resolves when work has come to one of the queues `since`, when the time is over, or when the signal aborts. */
  wait(queues: readonly string[], since: number, seconds: number, signal?: AbortSignal): Promise<void>
  /** Calls `hear` with every word that comes, from this process or another. */
  subscribe(listener: (words: readonly string[]) => void): void
  /** How many wait. */
  waiterCount(): number
}

/** In how many seconds each of these queues has something to claim; 0 or less: now. */
export type FindDue = (queues: readonly string[]) => Promise<readonly { queue: string; seconds: number }[]>

const spacingMs = 20
const pollMs = 2000
const wokenAtOnce = 4

interface Waiter {
  readonly queues: ReadonlySet<string>
  wake(): void
}

const maxRememberedQueues = 10_000

export function makeWake(messenger: Messenger | undefined, findDue: FindDue, signal: AbortSignal): Wake {
  const waiting = new Set<Waiter>()
  const unsent = new Set<string>()
  const listeners = new Set<(count: readonly string[]) => void>()
  const lastNotified = new Map<string, number>()
  let sending = false
  let listening = false
  let words = 0

  const wakeSome = (queues: readonly string[]) => {
    if (queues.includes('*')) {
      for (const waiter of [...waiting]) waiter.wake()
      return
    }
    for (const queue of queues) {
      const few = [...waiting].filter(waiter => waiter.queues.has(queue)).slice(0, wokenAtOnce)
      for (const waiter of few) waiter.wake()
    }
  }
  const notifyHere = (queues: readonly string[]) => {
    words += 1
    // What is forgotten is found by the next look.
    if (lastNotified.size > maxRememberedQueues) lastNotified.clear()
    for (const queue of queues) lastNotified.set(queue, words)
    for (const listener of listeners) listener(queues)
    wakeSome(queues)
  }
  // NOTIFY takes a lock that all committers share, so one is sent at once and those that follow are gathered.
  const sendUnsent = async (to: Messenger) => {
    sending = true
    while (unsent.size > 0 && !signal.aborted) {
      const queues = [...unsent]
      unsent.clear()
      await to.send(queues).catch(() => {})
      await sleep(spacingMs, undefined, { ref: false })
    }
    sending = false
  }
  const listen = () => {
    if (messenger === undefined || listening) return
    listening = true
    messenger.listen(notifyHere, signal)
  }
  const poll = startPolling(waiting, findDue, wakeSome)
  return {
    notify(queues) {
      notifyHere(queues)
      if (messenger === undefined) return
      for (const queue of queues) unsent.add(queue)
      if (!sending) void sendUnsent(messenger)
    },
    wakeSome: wakeSome,
    expectDueIn: seconds => poll.within(seconds * 1000),
    notificationCount: () => words,
    waiterCount: () => waiting.size,
    subscribe(listener) {
      listeners.add(listener)
      listen()
    },
    wait(queues, since, seconds, stop) {
      listen()
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
        poll.within(pollMs)
        stop?.addEventListener('abort', end)
        const isLate = [...queues, '*'].some(queue => (lastNotified.get(queue) ?? 0) > since)
        if (isLate || stop?.aborted) end()
      })
    },
  }
}

/** One look for all who wait: again when the next task comes due, and at the latest when a word may have been lost. */
function startPolling(waiting: ReadonlySet<Waiter>, findDue: FindDue, wakeSome: (queues: readonly string[]) => void) {
  let timer: NodeJS.Timeout | undefined
  let nextPollAt = Number.POSITIVE_INFINITY

  const within = (ms: number) => {
    const pollAt = performance.now() + ms
    if (pollAt >= nextPollAt) return
    nextPollAt = pollAt
    clearTimeout(timer)
    timer = setTimeout(pollOnce, ms)
    timer.unref()
  }
  async function pollOnce(): Promise<void> {
    nextPollAt = Number.POSITIVE_INFINITY
    const queues = new Set([...waiting].flatMap(waiter => [...waiter.queues]))
    if (queues.size === 0) return
    // A store that is away is heard of by those who claim.
    const found = await findDue([...queues]).catch(() => [])
    for (const { queue, seconds } of found) if (seconds <= 0) wakeSome([queue])
    const next = found.map(({ seconds }) => seconds * 1000).filter(ms => ms > 0)
    within(Math.max(1, Math.min(pollMs, ...next)))
  }
  return { within }
}
