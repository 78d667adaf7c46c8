/** Follows a job until it has ended, and shows how far it is. A server that is away for a while is waited for. */
import { setTimeout as sleep } from 'node:timers/promises'
import { willPass } from '../kernel/problem.ts'
import type { PawlApi } from '../protocol/api.ts'
import type { JobView } from '../protocol/jobs.ts'
import { styled } from './line.ts'
import { changes, makeEstimate, progressLines } from './progress.ts'
import type { Screen } from './screen.ts'
import { hasEnded } from './states.ts'

export interface Watching {
  readonly api: PawlApi
  readonly screen: Screen
  readonly signal: AbortSignal
  /** Show nothing on the way. */
  readonly silent?: boolean
  /** Called with every look at it. */
  seen?(job: JobView): Promise<void>
}

const lookMs = 200
const longestPauseMs = 5000

/** The job as it ended, or as it was when the signal aborted. */
export async function watchJob(id: string, { api, screen, signal, silent, seen }: Watching): Promise<JobView> {
  const estimate = makeEstimate()
  // The first look is not repeated: a job that is not there, or a server, is told at once.
  let job = await api.job(id)
  let shown: JobView | undefined
  for (;;) {
    if (!silent) show(screen, shown, job, estimate(job.progress, performance.now()))
    shown = job
    await seen?.(job)
    if (hasEnded('job', job.state) || signal.aborted) break
    await pause(lookMs, signal)
    job = await lookAgain(api, id, screen, signal, job)
  }
  screen.keep()
  return job
}

function show(screen: Screen, before: JobView | undefined, job: JobView, leftSeconds: number | undefined): void {
  if (screen.isTerminal) screen.draw(progressLines(job, screen, leftSeconds))
  else for (const line of changes(before, job)) screen.say(line)
}

async function lookAgain(
  api: PawlApi,
  id: string,
  screen: Screen,
  signal: AbortSignal,
  last: JobView,
): Promise<JobView> {
  for (let pauseMs = lookMs; !signal.aborted; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    try {
      return await api.job(id)
    } catch (error) {
      if (!willPass(error)) throw error
      if (pauseMs === lookMs) screen.note(styled('yellow', 'The server does not answer; still trying …'))
      await pause(pauseMs, signal)
    }
  }
  return last
}

export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal }).catch(() => {})
}
