/**
 * Wakes waiting syncs when there is new work: at once within the process, by NOTIFY between processes, and by one
 * shared poll every two seconds and when the next task comes due. A notification wakes only a few waiters. Those that
 * get as many tasks as they asked for wake the next, so a thousand waiters do not all race for one task.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** Notifies other processes. Polling remains authoritative: a lost notification only costs time. */
export interface Messenger {
  send(queues: readonly string[]): Promise<void>
  /** Calls `onNotified` with queues that other processes added work to, until the signal aborts. */
  listen(onNotified: (queues: readonly string[]) => void, signal: AbortSignal): void
}

export type Wake = ReturnType<typeof makeWake>

/** Returns in how many seconds each of these queues has something to claim; 0 or less: now. */
export type FindDue = (queues: readonly string[]) => Promise<readonly { queue: string; seconds: number }[]>

const spacingMs = 20
const pollMs = 2000
const wokenAtOnce = 4

interface Waiter {
  readonly queues: ReadonlySet<string>
  wake(): void
}

const maxRememberedQueues = 10_000

export function makeWake(messenger: Messenger | undefined, findDue: FindDue, signal: AbortSignal) {
  const waiting = new Set<Waiter>()
  const unsent = new Set<string>()
  const listeners = new Set<(count: readonly string[]) => void>()
  const lastNotified = new Map<string, number>()
  let sending = false
  let listening = false
  let words = 0

  /** Wakes a few more waiters, because these queues may hold more than was claimed. */
  const wakeSome = (queues: readonly string[]): void => {
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
    // Forgotten queues are found by the next poll.
    if (lastNotified.size > maxRememberedQueues) lastNotified.clear()
    for (const queue of queues) lastNotified.set(queue, words)
    for (const listener of listeners) listener(queues)
    wakeSome(queues)
  }
  // NOTIFY takes a lock that all committers share, so the first one is sent at once and later ones are combined.
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
    /** Reports new work in these queues. */
    notify(queues: readonly string[]): void {
      notifyHere(queues)
      if (messenger === undefined) return
      for (const queue of queues) unsent.add(queue)
      if (!sending) void sendUnsent(messenger)
    },
    wakeSome,
    /** Announces that a task comes due in this many seconds. */
    expectDueIn: (seconds: number): void => poll.within(seconds * 1000),
    /** Number of notifications so far. Read it before looking for work: `wait` then misses no notification in between. */
    notificationCount: (): number => words,
    waiterCount: (): number => waiting.size,
    /** Calls `listener` on every notification, from this process or another. */
    subscribe(listener: (words: readonly string[]) => void): void {
      listeners.add(listener)
      listen()
    },
    /**
     * Resolves on a notification for one of the queues `since` that count, after `seconds`, or when the signal aborts.
     */
    wait(queues: readonly string[], since: number, seconds: number, stop?: AbortSignal): Promise<void> {
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

/** One poll for all waiters: again when the next task comes due, and regularly in case a notification was lost. */
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
    // Claims report an unavailable store.
    const found = await findDue([...queues]).catch(() => [])
    for (const { queue, seconds } of found) if (seconds <= 0) wakeSome([queue])
    const next = found.map(({ seconds }) => seconds * 1000).filter(ms => ms > 0)
    within(Math.max(1, Math.min(pollMs, ...next)))
  }
  return { within }
}

export type WakeSignal = ReturnType<typeof makeWakeSignal>

/** Wakes waiting loops when there is work to do, or something may have changed. */
export function makeWakeSignal() {
  let resolveNext: () => void
  let next: Promise<void>
  const prepareNext = () => {
    next = new Promise(resolve => {
      resolveNext = resolve
    })
  }
  prepareNext()
  return {
    notify(): void {
      resolveNext()
      prepareNext()
    },
    /** Resolves at the next `notify`. Call it before checking for work, so that no notification is missed. */
    next: (): Promise<void> => next,
  }
}
