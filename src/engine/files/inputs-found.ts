import { setTimeout as sleep } from 'node:timers/promises'
import { isListing } from '../../store/files/listings.ts'
import { checkId } from '../check.ts'
import type { Context } from '../context.ts'

const longestPauseMs = 250

/** Waits for the babysitter, wherever it is, to find what a job is given. True: all has been found, or never will be. */
export async function inputsFound(
  { sql }: Context,
  id: string,
  waitSeconds: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const jobId = checkId(id, 'JOB_NOT_FOUND')
  const until = performance.now() + waitSeconds * 1000
  for (let pauseMs = 5; await isListing(sql, jobId); pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    if (performance.now() >= until || signal?.aborted) return false
    await sleep(pauseMs, undefined, signal && { signal }).catch(() => {})
  }
  return true
}
