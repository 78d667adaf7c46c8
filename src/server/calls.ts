/**
 * Tracks requests in progress. Each has a signal that aborts when its client disconnects, its key is revoked or the
 * server shuts down, so that nobody is kept waiting. The server stops when the last of them has ended.
 */
import type { FastifyReply } from 'fastify'
import type { Activities } from '../engine/activities.ts'
import type { WatchKey } from '../engine/admin/watch-keys.ts'
import { Problem } from '../kernel/problem.ts'

export interface Calls {
  isEnding(): boolean
  /** Runs `work` as a request in progress. `keyId`: id of the request's key; '': it has none. */
  answer<T>(reply: FastifyReply, keyId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Aborts all requests in progress; resolves when they have ended. */
  end(): Promise<void>
}

/** Time for the last bytes of a stream. If its client does not read, the stream would not end by itself. */
const lastBytesMs = 1000

/** Throws if the key of the request was revoked while it was being answered. */
export function requireUnrevoked(signal: AbortSignal): void {
  if (signal.reason instanceof Problem) throw signal.reason
}

export function openCalls(activities: Activities, watchKey: WatchKey): Calls {
  const open = new Set<AbortController>()
  let whenQuiet: (() => void) | undefined
  let isEnding = false
  return {
    isEnding: () => isEnding,
    async answer(reply, keyId, work) {
      const call = new AbortController()
      const hangUp = () => call.abort()
      let cut: NodeJS.Timeout | undefined
      const refuse = () => {
        call.abort(new Problem('KEY_MISSING'))
        cut = setTimeout(() => reply.raw.headersSent && reply.raw.destroy(), lastBytesMs)
      }
      const unwatch = keyId === '' ? undefined : watchKey(keyId, refuse)
      reply.raw.once('close', hangUp)
      open.add(call)
      const end = activities.begin(`${reply.request.method} ${reply.request.routeOptions.url ?? ''}`)
      if (isEnding) call.abort()
      try {
        return await work(call.signal)
      } finally {
        reply.raw.off('close', hangUp)
        unwatch?.()
        clearTimeout(cut)
        // Also ends work that was started for an answer that has been sent, or that nobody reads.
        call.abort()
        end()
        open.delete(call)
        if (open.size === 0) whenQuiet?.()
      }
    },
    end() {
      isEnding = true
      for (const call of open) call.abort()
      return new Promise(resolve => {
        whenQuiet = resolve
        if (open.size === 0) resolve()
      })
    },
  }
}
