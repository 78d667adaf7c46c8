import { setTimeout as sleep } from 'node:timers/promises'
import { defineTask, startBabysitter, startWorker } from '../../dist/index.js'
import type { Figure, Measure } from '../contender.ts'
import { table } from '../markdown.ts'
import { type OwnStore, openOwnStore } from '../own-store.ts'
import { end, firstLine, startProgram } from '../processes.ts'
import { percentile } from '../statistics.ts'

const tasks = 20

/** From the SIGKILL of a worker process to each of its tasks being started by another. */
export const measure: Measure = {
  name: 'rescue',
  async run({ cluster, quick }) {
    const title = 'A worker process is killed: until its tasks run again'
    if (quick) return { title, markdown: 'Left out in a quick run.' }
    const store = await openOwnStore(cluster, 'rescue')
    const babysitter = startBabysitter(store.engine)
    try {
      // A babysitter that has just begun is blind for two heartbeats; what is measured is one that has been running.
      await sleep(21_000)
      const rows: string[][] = []
      const figures: Figure[] = []
      for (const { key, name, promise, options } of plans) {
        const took = await killAndWait(store, options)
        figures.push({ name: `rescue.${key}`, value: Math.max(...took), unit: 's', better: 'lower' })
        rows.push([name, `${percentile(took, 0.5).toFixed(1)} s`, `${Math.max(...took).toFixed(1)} s`, `${promise} s`])
      }
      const head = ['', 'p50', 'longest', 'promised']
      return { title, markdown: `${table(head, rows)}\n\n${tasks} running tasks each time.\n`, figures }
    } finally {
      await babysitter.stop()
      await store.close()
    }
  },
}

const plans = [
  { key: 'default', name: 'default settings (lease 60 s, heartbeat 10 s)', promise: 25, options: {} },
  { key: 'short', name: 'lease 5 s', promise: 7, options: { leaseSeconds: 5 } },
]

async function killAndWait(store: OwnStore, options: object): Promise<number[]> {
  const { engine } = store
  await engine.enqueueMany(Array.from({ length: tasks }, () => ({ type: 'slow', payload: null, ...options })))
  const child = startProgram('worker.ts', [store.url, 'slow', '600'])
  try {
    await firstLine(child)
    const running = async () => (await engine.tasks({ type: 'slow', state: 'running' })).items.length
    for (const end = Date.now() + 30_000; (await running()) < tasks; ) {
      if (Date.now() > end) throw new Error('the tasks did not start')
      await sleep(100)
    }
  } finally {
    await end(child, 'SIGKILL')
  }
  const killed = performance.now()
  const took: number[] = []
  const slow = defineTask({ type: 'slow', handler: async () => void took.push((performance.now() - killed) / 1000) })
  await using _worker = startWorker(engine, [slow], { concurrency: tasks })
  for (const end = Date.now() + 60_000; took.length < tasks && Date.now() < end; ) await sleep(50)
  if (took.length < tasks) throw new Error(`${tasks - took.length} tasks were not rescued within 60 s`)
  return took
}
