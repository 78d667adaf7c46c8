/** The worker's connection to the engine. It names the worker in every request, and repeats requests until they are answered. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isTransient, Problem } from '../kernel/problem.ts'
import type { SyncAnswer, SyncPort, SyncRequest } from '../protocol/tasks/sync.ts'
import { type Attempt, correlationsOf } from './attempt.ts'
import type { WorkerSettings } from './options.ts'

export interface Connection {
  sync(part: Omit<SyncRequest, 'worker' | 'session' | 'queues'>, signal?: AbortSignal): Promise<SyncAnswer>
  /**
   * Asks again and again, ever more slowly. Undefined: the line was hung up, or the engine failed in a way that will
   * not pass. `about`: the tasks in question, for the log.
   */
  retryUntilAnswered<T>(ask: () => Promise<T>, about?: readonly Attempt[]): Promise<T | undefined>
  /** Asks once. Undefined: the line was hung up meanwhile. */
  tryOnce<T>(ask: () => Promise<T>): Promise<T | undefined>
  /** Waits after a number of failures in a row: longer after each, and not at all once the line is hung up. */
  pauseAfter(failures: number): Promise<void>
  /** No more patience: what is not answered now is abandoned. */
  close(): void
  isClosed(): boolean
}

const maxTriesForBugs = 5

export function openConnection(engine: SyncPort, settings: WorkerSettings): Connection {
  const { name: worker, queues, log } = settings
  const session = randomUUID()
  const closing = new AbortController()
  const closed = new Promise<undefined>(resolve => {
    closing.signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const connection: Connection = {
    sync: (part, signal) => engine.sync({ ...part, worker, session, queues }, signal),
    close: () => closing.abort(),
    isClosed: () => closing.signal.aborted,
    tryOnce: ask => Promise.race([ask(), closed]),
    async pauseAfter(failures) {
      await sleep(backoffMs(failures), undefined, { signal: closing.signal }).catch(() => {})
    },
    async retryUntilAnswered(ask, about = []) {
      for (let tries = 1; !closing.signal.aborted; tries++) {
        try {
          return await connection.tryOnce(ask)
        } catch (error) {
          log('sync.failed', { worker, tries, ...correlationsOf(about), error: String(error) })
          if (!isRetryable(error) && tries === maxTriesForBugs) return undefined
          await connection.pauseAfter(tries)
        }
      }
      return undefined
    },
  }
  return connection
}

/** Whether a repeated request may succeed. A refused key may be one that is being replaced. */
export function isRetryable(error: unknown): boolean {
  const isKeyProblem = error instanceof Problem && (error.code === 'KEY_MISSING' || error.code === 'KEY_REFUSED')
  return isKeyProblem || isTransient(error)
}

const backoffMs = (failures: number) => Math.min(50 * 2 ** failures, 5000) * (0.5 + Math.random() / 2)
