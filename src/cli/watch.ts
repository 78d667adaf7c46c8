/** Follows a job until it has ended, and shows how far it is. A server that is away for a while is waited for. */
import type { PawlApi } from '../protocol/api.ts'
import type { JobView } from '../protocol/jobs/jobs.ts'
import { patiently, pause } from './patience.ts'
import { changes, makeEstimate, progressLines } from './progress.ts'
import type { Screen } from './screen.ts'
import { hasEnded } from './states.ts'

export interface Watching {
  readonly api: PawlApi
  readonly screen: Screen
  readonly signal: AbortSignal
  /** Show nothing on the way. */
  readonly silent?: boolean
  /** The job is known to be there: a server that is away is waited for from the first look on. */
  readonly submitted?: JobView
  /** Called with every look at it. */
  seen?(job: JobView): Promise<void>
}

const lookMs = 200

/** The job as it ended, or as it was when the signal aborted. */
export async function watchJob(id: string, watching: Watching): Promise<JobView> {
  const { api, screen, signal, silent, submitted, seen } = watching
  const estimate = makeEstimate()
  const lookAgain = async (last: JobView) => (await patiently(() => api.job(id), watching)) ?? last
  // A job that nobody has seen yet, or its server, may not be there: that is told at once.
  let job = submitted === undefined ? await api.job(id) : await lookAgain(submitted)
  let shown: JobView | undefined
  for (;;) {
    if (!silent) show(screen, shown, job, estimate(job.progress, performance.now()))
    shown = job
    await seen?.(job)
    if (hasEnded('job', job.state) || signal.aborted) break
    await pause(lookMs, signal)
    job = await lookAgain(job)
  }
  screen.keep()
  return job
}

function show(screen: Screen, before: JobView | undefined, job: JobView, leftSeconds: number | undefined): void {
  if (screen.isTerminal) screen.draw(progressLines(job, screen, leftSeconds))
  else for (const line of changes(before, job)) screen.say(line)
}
