/** Whatever waits for something on a server goes on while that restarts: it asks again, and says so once. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isTransient } from '../kernel/problem.ts'
import { styled } from './line.ts'
import type { Screen } from './screen.ts'

export interface Waiting {
  readonly screen: Pick<Screen, 'note'>
  readonly signal: AbortSignal
}

const firstPauseMs = 200
const longestPauseMs = 5000

/** What a look finds, once the server answers; undefined: it was told to end before. Only for looks, which may be repeated. */
export async function patiently<Found>(
  look: () => Promise<Found>,
  { screen, signal }: Waiting,
): Promise<Found | undefined> {
  for (let pauseMs = firstPauseMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await look()
    } catch (error) {
      if (!isTransient(error)) throw error
      if (pauseMs === firstPauseMs) screen.note(styled('yellow', 'The server does not answer. Retrying …'))
      await pause(pauseMs, signal)
    }
  }
  return undefined
}

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}
