/** Waiting for a server, for a moment, or for the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isTransient } from '../kernel/problem.ts'
import { styled } from './styled-line.ts'
import type { TerminalOutput } from './terminal-output.ts'

export interface RetryOptions {
  readonly output: Pick<TerminalOutput, 'printNotice'>
  readonly signal: AbortSignal
}

/** Options of a command that prints items as they appear. */
export interface FollowOptions<Item> extends RetryOptions {
  print(item: Item): void
}

const firstPauseMs = 200
const longestPauseMs = 5000

/**
 * Repeats a read while the server is unavailable, for example during a restart, and tells the user once. Returns undefined
 * if the signal aborts first.
 */
export async function retryUntilAvailable<Found>(
  read: () => Promise<Found>,
  { output, signal }: RetryOptions,
): Promise<Found | undefined> {
  for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await read()
    } catch (error) {
      if (!isTransient(error)) throw error
      if (signal.aborted) break
      if (pauseMs === firstPauseMs) output.printNotice(styled('yellow', 'The server does not answer. Retrying …'))
      await pause(pauseMs, signal)
    }
  }
  return undefined
}

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}

/** The promise does not keep the process alive. */
export async function untilAborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
}
