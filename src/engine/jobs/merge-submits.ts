/**
 * Writes small jobs that are submitted at the same time together. Jobs that arrive while a statement runs go into the
 * next one, so batches grow with load, and no job waits for others.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { isTransient } from '../../kernel/problem.ts'
import type { SmallJob } from '../../store/jobs/insert-jobs.ts'

/** Inserts the jobs, all or none. Returns the time at which they were created. */
type Write = (jobs: readonly SmallJob[]) => Promise<Date>

interface PendingJob {
  readonly job: SmallJob
  resolve(now: Date): void
  reject(error: unknown): void
}

/** A statement joins with nested loops, so its cost grows with the square of its size. */
const maxRowsPerWrite = 300

/** Returns a function that submits one job, and resolves when it is committed. */
export function mergeSubmits(write: Write): (job: SmallJob) => Promise<Date> {
  const waiting: PendingJob[] = []
  let isWriting = false

  async function keepWriting(): Promise<void> {
    isWriting = true
    while (waiting.length > 0) {
      await writeTogether(write, takeBatch(waiting))
      // Callers that just got their answers may submit their next jobs first.
      await nextTurn()
    }
    isWriting = false
  }

  return job =>
    new Promise((resolve, reject) => {
      waiting.push({ job, resolve, reject })
      if (!isWriting) void keepWriting()
    })
}

function takeBatch(waiting: PendingJob[]): PendingJob[] {
  let rows = 0
  const beyond = waiting.findIndex(({ job }, index) => {
    rows += job.stages.reduce((sum, { tasks }) => sum + 1 + tasks.length, 1)
    return index > 0 && rows > maxRowsPerWrite
  })
  return waiting.splice(0, beyond < 0 ? waiting.length : beyond)
}

/** A failure of the whole batch may be caused by one job, so each job is then written alone. */
async function writeTogether(write: Write, batch: readonly PendingJob[]): Promise<void> {
  try {
    const now = await write(batch.map(({ job }) => job))
    for (const { resolve } of batch) resolve(now)
  } catch (error) {
    if (batch.length === 1 || isTransient(error)) for (const { reject } of batch) reject(error)
    else for (const one of batch) await writeTogether(write, [one])
  }
}
