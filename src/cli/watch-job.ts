import type { PawlApi } from '../protocol/api.ts'
import type { JobView } from '../protocol/jobs/jobs.ts'
import { changes, makeEstimate, progressLines } from './progress.ts'
import { pause, retryUntilAvailable } from './retry-until-available.ts'
import { hasEnded } from './states.ts'
import type { TerminalOutput } from './terminal-output.ts'

export interface WatchOptions {
  readonly api: PawlApi
  readonly output: TerminalOutput
  readonly signal: AbortSignal
  /** Show no progress. */
  readonly silent?: boolean
  /** The job, if this command has just submitted it: then even the first read is retried while the server is unavailable. */
  readonly submitted?: JobView
  /** Called with every state of the job that was read. */
  onRead?(job: JobView): Promise<void>
}

const pollMs = 200

/**
 * Shows the progress of a job until it has ended or the signal aborts, and returns the job as last read. A server that
 * is unavailable for a while is waited for.
 */
export async function watchJob(id: string, options: WatchOptions): Promise<JobView> {
  const { api, output, signal, silent, submitted, onRead } = options
  const estimate = makeEstimate()
  const readAgain = async (last: JobView) => (await retryUntilAvailable(() => api.job(id), options)) ?? last
  // Without `submitted`, the job or the server may not exist, and the first read reports that at once.
  let job = submitted === undefined ? await api.job(id) : await readAgain(submitted)
  let shown: JobView | undefined
  for (;;) {
    if (!silent) show(output, shown, job, estimate(job.progress, performance.now()))
    shown = job
    await onRead?.(job)
    if (hasEnded('job', job.state) || signal.aborted) break
    await pause(pollMs, signal)
    job = await readAgain(job)
  }
  output.keepDrawing()
  return job
}

function show(
  output: TerminalOutput,
  before: JobView | undefined,
  job: JobView,
  leftSeconds: number | undefined,
): void {
  if (output.isTerminal) output.draw(progressLines(job, output, leftSeconds))
  else for (const line of changes(before, job)) output.print(line)
}
