/**
 * The worker's connection to the engine. It names the worker in every request, and repeats requests until they are
 * answered.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { describeError } from '../kernel/error-cause.ts'
import { isTransient, Problem } from '../kernel/problem.ts'
import type { SyncAnswer, SyncPort, SyncRequest } from '../protocol/tasks/sync.ts'
import { type Attempt, correlationsOf } from './attempt.ts'
import type { WorkerSettings } from './options.ts'

const maxTriesForBugs = 5

export type Connection = ReturnType<typeof openConnection>

export function openConnection(engine: SyncPort, { name: worker, queues, log }: WorkerSettings) {
  const session = randomUUID()
  const closing = new AbortController()
  const closed = new Promise<undefined>(resolve => {
    closing.signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })
  const connection = {
    async sync(part: Omit<SyncRequest, 'worker' | 'session' | 'queues'>, signal?: AbortSignal): Promise<SyncAnswer> {
      try {
        return await engine.sync({ ...part, worker, session, queues }, signal)
      } catch (error) {
        throw readable(error)
      }
    },
    /**
     * Repeats a request with increasing pauses. Returns undefined if the connection was closed, or if the engine failed
     * in a way that retries do not fix. `about`: the attempts concerned, for the log.
     */
    async retryUntilAnswered<T>(ask: () => Promise<T>, about: readonly Attempt[] = []): Promise<T | undefined> {
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
    /** Sends a request once. Returns undefined if the connection was closed meanwhile. */
    tryOnce: <T>(ask: () => Promise<T>): Promise<T | undefined> => Promise.race([ask(), closed]),
    /** Waits after consecutive failures, longer after each one. Returns at once when the connection is closed. */
    async pauseAfter(failures: number): Promise<void> {
      await sleep(backoffMs(failures), undefined, { signal: closing.signal }).catch(() => {})
    },
    /** Stops waiting: unanswered requests are abandoned. */
    close: (): void => closing.abort(),
    isClosed: (): boolean => closing.signal.aborted,
  }
  return connection
}

/** Whether repeating the request may help. A rejected API key may be about to be replaced. */
export function isRetryable(error: unknown): boolean {
  const isKeyProblem = error instanceof Problem && (error.code === 'KEY_MISSING' || error.code === 'KEY_REFUSED')
  return isKeyProblem || isTransient(error)
}

/** The error itself, if it can be read. An output, a checkpoint or a payload may throw anything when it is serialized. */
function readable(error: unknown): Error {
  try {
    if (error instanceof Error && String(error) !== '') return error
  } catch {
    // Described below.
  }
  return new Error(describeError(error).message)
}

const backoffMs = (failures: number) => Math.min(50 * 2 ** failures, 5000) * (0.5 + Math.random() / 2)
