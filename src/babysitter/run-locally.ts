import { availableParallelism } from 'node:os'
import type { LocalPool } from '../runners/local.ts'
import { openCommandStages } from '../store/jobs/runs.ts'
import type { Chore } from './chore.ts'

/** Keeps as many local workers as the open stages with commands have work for, within their parallelism. */
export function runLocally(pool: LocalPool, idleSeconds = 5): Chore {
  const lastWanted = new Map<string, { workers: number; at: number }>()
  return {
    name: 'local-workers',
    everySeconds: 1,
    wakeSignal: ({ fileSignal }) => fileSignal,
    async run({ sql }) {
      const wanted = new Map<string, number>()
      for (const { queue, files, parallelism, left } of await openCommandStages(sql)) {
        if (files.runner?.kind === 'kubernetes') continue
        const workers = Math.min(parallelism ?? availableParallelism(), left)
        wanted.set(queue, (wanted.get(queue) ?? 0) + workers)
      }
      const before = pool.workers().length
      pool.resize(lingering(wanted))
      return { hired: Math.max(0, pool.workers().length - before) }
    },
  }

  /** Idle workers stay for a moment, because the next stage may follow at once. */
  function lingering(wanted: ReadonlyMap<string, number>): Map<string, number> {
    const now = performance.now()
    for (const [queue, workers] of wanted) {
      const last = lastWanted.get(queue)
      const isLess = last !== undefined && workers < last.workers && now - last.at < idleSeconds * 1000
      if (!isLess) lastWanted.set(queue, { workers, at: now })
    }
    for (const [queue, { at }] of lastWanted) {
      if (now - at >= idleSeconds * 1000 && !wanted.has(queue)) lastWanted.delete(queue)
    }
    return new Map([...lastWanted].map(([queue, { workers }]) => [queue, workers]))
  }
}
