/**
 * Watches the event loop of this thread from a separate thread. While the loop is blocked, no request is answered. A block
 * beyond the limit is logged with the running functions and the requests in progress, counted, and reported by `/readyz`
 * for a while.
 */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { observe } from '../engine/admin/process-metrics.ts'
import type { Context } from '../engine/context.ts'
import { Problem } from '../kernel/problem.ts'
import { threadFlags } from '../kernel/thread-flags.ts'

/** Number of beats that the loop sends within the limit. */
const beatsPerBound = 10
/** For this long after a block, the server reports that it is not ready. */
const unreadySeconds = 10
const mostNamed = 10

/** The thread's message when a block is over. */
export interface Block {
  readonly seconds: number
  /** The functions that ran when the block was noticed, innermost first. */
  readonly stack: readonly string[]
}

export interface Watchdog {
  /** Throws the problem if the loop was blocked a moment ago. */
  check(): void
  stop(): Promise<void>
}

export const noWatchdog: Watchdog = { check() {}, async stop() {} }

export function startWatchdog({ metrics, activities, log }: Context, boundSeconds: number): Watchdog {
  const beats = new Int32Array(new SharedArrayBuffer(4))
  const beatMs = (boundSeconds * 1000) / beatsPerBound
  let latestBeat = performance.now()
  let suspects: string[] = []
  const beat = setInterval(() => {
    Atomics.add(beats, 0, 1)
    const now = performance.now()
    const during = activities.take()
    // The thread reports a block only after the next beat. By then, the cause of the block has ended.
    if (now - latestBeat >= boundSeconds * 500) suspects = during
    latestBeat = now
  }, beatMs)
  beat.unref()
  const thread = new Worker(new URL(`./watchdog-thread${extname(import.meta.url)}`, import.meta.url), {
    workerData: { beats, beatMs, boundSeconds },
    execArgv: threadFlags,
  })
  thread.unref()
  let latest: { readonly seconds: number; readonly until: number } | undefined
  thread.on('message', ({ seconds, stack }: Block) => {
    observe(metrics.blocked, seconds)
    latest = { seconds, until: performance.now() + unreadySeconds * 1000 }
    log('loop.blocked', { level: 'error', seconds, during: suspects.slice(0, mostNamed), stack })
  })
  // The server works without the watchdog too.
  thread.on('error', error => log('watchdog.failed', { error: String(error) }))
  return {
    check() {
      if (latest === undefined || performance.now() >= latest.until) return
      throw new Problem('SERVER_BLOCKED', { seconds: latest.seconds })
    },
    async stop() {
      clearInterval(beat)
      await thread.terminate()
    },
  }
}
