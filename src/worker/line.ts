/** The worker's connection to the engine. It names the worker in every request, and repeats requests until they are answered. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isTransient, Problem } from '../kernel/problem.ts'
import type { SyncAnswer, SyncPort, SyncRequest } from '../protocol/tasks/sync.ts'
import { correlationsOf, type InHand } from './held-task.ts'
import type { WorkerSettings } from './options.ts'

export interface Line {
  say(part: Omit<SyncRequest, 'worker' | 'session' | 'queues'>, signal?: AbortSignal): Promise<SyncAnswer>
  /**
   * Asks again and again, ever more slowly. Undefined: the line was hung up, or the engine failed in a way that will
   * not pass. `about`: the tasks in question, for the log.
   */
  untilAnswered<T>(ask: () => Promise<T>, about?: readonly InHand[]): Promise<T | undefined>
  /** Asks once. Undefined: the line was hung up meanwhile. */
  once<T>(ask: () => Promise<T>): Promise<T | undefined>
  /** Waits after a number of failures in a row: longer after each, and not at all once the line is hung up. */
  pauseAfter(failures: number): Promise<void>
  /** No more patience: what is not answered now is abandoned. */
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
  const line: Line = {
    say: (part, signal) => engine.sync({ ...part, worker, session, queues }, signal),
    hangUp: () => over.abort(),
    isHungUp: () => over.signal.aborted,
    once: ask => Promise.race([ask(), hungUp]),
    async pauseAfter(failures) {
      await sleep(backoffMs(failures), undefined, { signal: over.signal }).catch(() => {})
    },
    async untilAnswered(ask, about = []) {
      for (let tries = 1; !over.signal.aborted; tries++) {
        try {
          return await line.once(ask)
        } catch (error) {
          log('sync.failed', { worker, tries, ...correlationsOf(about), error: String(error) })
          if (!mayPass(error) && tries === triesForBugs) return undefined
          await line.pauseAfter(tries)
        }
      }
      return undefined
    },
  }
  return line
}

/** Whether a repeated request may succeed. A refused key may be one that is being replaced. */
export function mayPass(error: unknown): boolean {
  const isOfKeys = error instanceof Problem && (error.code === 'KEY_MISSING' || error.code === 'KEY_REFUSED')
  return isOfKeys || isTransient(error)
}

const backoffMs = (failures: number) => Math.min(50 * 2 ** failures, 5000) * (0.5 + Math.random() / 2)
