/**
 * The calls that are being answered. Each has a signal that aborts when its client hangs up or the server ends, so that
 * nobody is kept waiting; and the server ends when the last of them has.
 */
import type { FastifyReply } from 'fastify'
import type { Activities } from '../engine/activities.ts'

export interface Calls {
  isEnding(): boolean
  /** Runs `work` as one of them. */
  answer<T>(reply: FastifyReply, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Tells all of them to come to an end; resolves when they have. */
  end(): Promise<void>
}

export function openCalls(activities: Activities): Calls {
  const open = new Set<AbortController>()
  let whenQuiet: (() => void) | undefined
  let isEnding = false
  return {
    isEnding: () => isEnding,
    async answer(reply, work) {
      const call = new AbortController()
      const hangUp = () => call.abort()
      reply.raw.once('close', hangUp)
      open.add(call)
      const end = activities.begin(`${reply.request.method} ${reply.request.routeOptions.url ?? ''}`)
      if (isEnding) call.abort()
      try {
        return await work(call.signal)
      } finally {
        reply.raw.off('close', hangUp)
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
