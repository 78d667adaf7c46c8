/** Waits until a task or a job has ended. */
import { isFinal, type Lifecycle } from '../kernel/lifecycle.ts'
import { type EndQuery, endFields } from '../protocol/call-options.ts'
import { checkOptions } from './check.ts'
import type { Context } from './context.ts'

/** Returns those of these tasks and jobs that have ended. */
export type FindEnded = (ids: readonly string[]) => Promise<readonly string[]>

export type EndWatch = ReturnType<typeof makeEndWatch>

/** The first poll comes soon, because most waits begin right after an enqueue. */
const firstPollMs = 10
const longestPollMs = 250
const idsPerPoll = 1000

/**
 * Waiters are woken at once by reports in this process. One shared poll finds everything else, so that a thousand waiters
 * cost one statement.
 */
export function makeEndWatch(findEnded: FindEnded, closing: AbortSignal) {
  const waiting = new Map<string, Set<() => void>>()
  let pauseMs = firstPollMs
  let next: { readonly timer: NodeJS.Timeout; readonly at: number } | undefined
  let isPolling = false

  const wake = (id: string) => {
    for (const wakeOne of waiting.get(id) ?? []) wakeOne()
  }
  /** A poll that is due sooner is never put off, however many waits begin. */
  const schedule = () => {
    const at = performance.now() + pauseMs
    if (waiting.size === 0 || isPolling || (next !== undefined && next.at <= at)) return
    clearTimeout(next?.timer)
    next = { timer: setTimeout(poll, pauseMs), at }
  }
  async function poll(): Promise<void> {
    next = undefined
    isPolling = true
    const ids = [...waiting.keys()]
    for (let from = 0; from < ids.length; from += idsPerPoll) {
      // A waiter whose time is over gets the error of the store when it reads.
      const ended = await findEnded(ids.slice(from, from + idsPerPoll)).catch(() => [])
      for (const id of ended) wake(id)
    }
    isPolling = false
    pauseMs = Math.min(pauseMs * 2, longestPollMs)
    schedule()
  }
  closing.addEventListener('abort', () => {
    for (const id of [...waiting.keys()]) wake(id)
  })
  return {
    isClosing: () => closing.aborted,
    /** These tasks and jobs may have ended. */
    notify(ids: Iterable<string>): void {
      if (waiting.size > 0) for (const id of ids) wake(id)
    },
    /** Resolves when the task or job may have ended, after `ms`, or when the signal aborts. */
    wait(id: string, ms: number, stop?: AbortSignal): Promise<void> {
      return new Promise(resolve => {
        const wakeOne = () => {
          const others = waiting.get(id)
          others?.delete(wakeOne)
          if (others?.size === 0) waiting.delete(id)
          clearTimeout(end)
          stop?.removeEventListener('abort', wakeOne)
          resolve()
        }
        const end = setTimeout(wakeOne, ms)
        waiting.set(id, (waiting.get(id) ?? new Set()).add(wakeOne))
        stop?.addEventListener('abort', wakeOne)
        pauseMs = firstPollMs
        schedule()
        if (stop?.aborted || closing.aborted) wakeOne()
      })
    },
  }
}

/**
 * Reads a task or job; with `waitSeconds`, when it has ended or the time is over. It begins to wait before it reads, so an
 * end in between is not missed.
 */
export async function readWhenEnded<State extends string, View extends { readonly state: State }>(
  { ends }: Context,
  lifecycle: Lifecycle<State>,
  { id, query = {}, signal }: { id: string; query?: EndQuery | undefined; signal?: AbortSignal | undefined },
  read: () => Promise<View>,
): Promise<View> {
  checkOptions(query, endFields, 'query')
  const until = performance.now() + (query.waitSeconds ?? 0) * 1000
  for (;;) {
    const leftMs = until - performance.now()
    if (leftMs <= 0 || signal?.aborted || ends.isClosing()) return read()
    const waiter = new AbortController()
    const stop = signal === undefined ? waiter.signal : AbortSignal.any([signal, waiter.signal])
    const mayHaveEnded = ends.wait(id.toLowerCase(), leftMs, stop)
    try {
      const view = await read()
      if (isFinal(lifecycle, view.state)) return view
      await mayHaveEnded
    } finally {
      waiter.abort()
    }
  }
}
