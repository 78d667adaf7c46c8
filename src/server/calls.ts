/**
 * The calls that are being answered. Each has a signal that aborts when its client hangs up, its key is revoked or the
 * server ends, so that nobody is kept waiting; and the server ends when the last of them has.
 */
import type { FastifyReply } from 'fastify'
import type { Activities } from '../engine/activities.ts'
import type { WatchKey } from '../engine/admin/watch-keys.ts'
import { Problem } from '../kernel/problem.ts'

export interface Calls {
  isEnding(): boolean
  /** Runs `work` as one of them. `keyId`: that of the asker's key; '': it has none. */
  answer<T>(reply: FastifyReply, keyId: string, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Tells all of them to come to an end; resolves when they have. */
  end(): Promise<void>
}

/** A stream whose client does not read would not end by itself. */
const lastBytesMs = 1000

/** Throws if the call's key was revoked while it was being answered. */
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
        // What was begun for an answer that is over, or that nobody takes, ends too.
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
