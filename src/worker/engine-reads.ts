/** Lets handlers report files, and read those of a stage and the job of their task. */
import { Problem } from '../kernel/problem.ts'
import type { ArtifactPort, ReportedArtifact } from '../protocol/files/artifacts.ts'
import type { StageJob } from '../protocol/jobs/jobs.ts'
import type { SyncPort } from '../protocol/tasks/sync.ts'
import { type Attempt, type EngineCalls, nameOf } from './attempt.ts'
import type { Connection } from './connection.ts'

const mostJobs = 20

/** Reads jobs, and remembers the last ones: many tasks of a worker belong to the same stage, and its job keeps its input. */
export function jobReader(engine: SyncPort): EngineCalls['jobOfStage'] {
  const jobs = new Map<string, Promise<StageJob>>()
  return stageId => {
    const known = jobs.get(stageId)
    if (known !== undefined) return known
    if (engine.stageJob === undefined) throw new Error('The engine of this worker cannot read jobs.')
    const reading = engine.stageJob(stageId)
    if (jobs.size >= mostJobs) jobs.delete(jobs.keys().next().value!)
    jobs.set(stageId, reading)
    reading.catch(() => jobs.delete(stageId))
    return reading
  }
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
