/** Lets handlers report files, and read those of a stage and the job of their task. */
import { Problem } from '../kernel/problem.ts'
import type { ArtifactPort, ReportedArtifact } from '../protocol/files/artifacts.ts'
import type { StageJob } from '../protocol/jobs/jobs.ts'
import type { SyncPort } from '../protocol/tasks/sync.ts'
import { type Attempt, type EngineCalls, nameOf } from './attempt.ts'
import type { Connection } from './connection.ts'

const mostJobs = 20

/** How long a job is remembered. Its round and its metadata may change. */
const jobFreshMs = 2000

/**
 * Reads jobs, and remembers the last ones for a moment, because many tasks of a worker belong to the same stage. Each
 * caller gets a copy of its own.
 */
export function jobReader(engine: SyncPort, now = () => performance.now()): EngineCalls['jobOfStage'] {
  const jobs = new Map<string, { readonly reading: Promise<StageJob>; readonly readAt: number }>()
  const read = (stageId: string) => {
    const known = jobs.get(stageId)
    if (known !== undefined && now() - known.readAt < jobFreshMs) return known.reading
    if (engine.stageJob === undefined) throw new Error('The engine of this worker cannot read jobs.')
    const reading = engine.stageJob(stageId)
    const entry = { reading, readAt: now() }
    jobs.delete(stageId)
    if (jobs.size >= mostJobs) jobs.delete(jobs.keys().next().value!)
    jobs.set(stageId, entry)
    reading.catch(() => {
      if (jobs.get(stageId) === entry) jobs.delete(stageId)
    })
    return reading
  }
  return async stageId => structuredClone(await read(stageId))
}

const filesPerSync = 1000

/** Reports the state of files, repeated until it is answered. Throws what the engine refuses. */
export function fileReporter(connection: Connection) {
  return async (held: Attempt, files: readonly ReportedArtifact[]): Promise<void> => {
    const lease = nameOf(held)
    for (let from = 0; from < files.length; from += filesPerSync) {
      const artifacts = files.slice(from, from + filesPerSync).map(file => ({ ...file, ...lease }))
      const answer = await connection.retryUntilAnswered(() => connection.sync({ artifacts }))
      if (answer === undefined) throw new Problem('LEASE_LOST', { ...lease })
      const refusal = answer.refused.find(({ id, epoch }) => id === lease.id && epoch === lease.epoch)
      if (refusal !== undefined) throw new Problem(refusal.code, { ...lease, why: refusal.message })
    }
  }
}

/** Reads the stored outputs of a stage. */
export function fileReader(engine: SyncPort): ArtifactPort['ofStage'] {
  return async function* (stageId, prefix) {
    if (engine.stageFiles === undefined) throw new Error('The engine of this worker does not track files.')
    for (let cursor: string | undefined; ; ) {
      const ask = { ...(prefix !== '' && { prefix }), limit: filesPerSync, ...(cursor !== undefined && { cursor }) }
      const { items, next } = await engine.stageFiles(stageId, ask)
      yield items
      if (next === null) return
      cursor = next
    }
  }
}
