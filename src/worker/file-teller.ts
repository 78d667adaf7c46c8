import { Problem } from '../kernel/problem.ts'
import type { ArtifactPort, SaidArtifact } from '../protocol/artifacts.ts'
import type { SyncPort } from '../protocol/sync.ts'
import { type InHand, nameOf } from './held-task.ts'
import type { Line } from './line.ts'

const filesPerSync = 1000

/** Says what becomes of files, sent again until it is answered; what the engine refuses is thrown. */
export function fileTeller(line: Line) {
  return async (held: InHand, files: readonly SaidArtifact[]): Promise<void> => {
    const lease = nameOf(held)
    for (let from = 0; from < files.length; from += filesPerSync) {
      const artifacts = files.slice(from, from + filesPerSync).map(file => ({ ...file, ...lease }))
      const answer = await line.untilAnswered(() => line.say({ artifacts }))
      if (answer === undefined) throw new Problem('LEASE_LOST', { ...lease })
      const refusal = answer.refused.find(({ id, epoch }) => id === lease.id && epoch === lease.epoch)
      if (refusal !== undefined) throw new Problem(refusal.code, { ...lease, why: refusal.message })
    }
  }
}

/** Reads what a stage has put in its place. */
export function fileReader(engine: SyncPort): ArtifactPort['ofStage'] {
  return async function* (stageId, prefix) {
    if (engine.stageFiles === undefined) throw new Error('The engine of this worker keeps no account of files.')
    for (let cursor: string | undefined; ; ) {
      const ask = { ...(prefix !== '' && { prefix }), limit: filesPerSync, ...(cursor !== undefined && { cursor }) }
      const { items, next } = await engine.stageFiles(stageId, ask)
      yield items
      if (next === null) return
      cursor = next
    }
  }
}
