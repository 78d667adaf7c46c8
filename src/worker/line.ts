/** The worker's line to the engine: who is speaking is said once, and what must be answered is said until it is. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem, willPass } from '../kernel/problem.ts'
import type { SyncAnswer, SyncPort, SyncRequest } from '../protocol/sync.ts'
import { correlationsOf, type InHand } from './held-task.ts'
import type { WorkerSettings } from './options.ts'

export interface Line {
  say(part: Omit<SyncRequest, 'worker' | 'session' | 'queues'>, signal?: AbortSignal): Promise<SyncAnswer>
  /**
   * Asks again and again, ever more slowly; undefined: it was given up, or the engine will never take it. `about`: the
   * tasks that it is about, for the log.
   */
  untilAnswered<T>(ask: () => Promise<T>, about?: readonly InHand[]): Promise<T | undefined>
  /** No more patience: what is not answered now is given up. */
  hangUp(): void
  isHungUp(): boolean
}

const triesForBugs = 5

export function openLine(engine: SyncPort, settings: WorkerSettings): Line {
  const { name: worker, queues, log } = settings
  const session = randomUUID()
  const over = new AbortController()
  const hungUp = new Promise<undefined>(resolve => {
    over.signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  return {
    say: (part, signal) => engine.sync({ ...part, worker, session, queues }, signal),
    hangUp: () => over.abort(),
    isHungUp: () => over.signal.aborted,
    async untilAnswered(ask, about = []) {
      for (let tries = 1; !over.signal.aborted; tries++) {
        try {
          return await Promise.race([ask(), hungUp])
        } catch (error) {
          log('sync.failed', { worker, tries, ...correlationsOf(about), error: String(error) })
          if (!mayPass(error) && tries === triesForBugs) return undefined
          await sleep(backoffMs(tries), undefined, { signal: over.signal }).catch(() => {})
        }
      }
      return undefined
    },
  }
}

/** A key that is refused may be one that is being replaced; no result is thrown away for that. */
function mayPass(error: unknown): boolean {
  const ofKeys = error instanceof Problem && (error.code === 'KEY_MISSING' || error.code === 'KEY_REFUSED')
  return ofKeys || willPass(error)
}

const backoffMs = (tries: number) => Math.min(50 * 2 ** tries, 5000) * (0.5 + Math.random() / 2)
