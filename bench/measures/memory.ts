import type { Measure } from '../contender.ts'
import { table, whole } from '../markdown.ts'
import { openOwnStore } from '../own-store.ts'
import { end, firstLine, startProgram } from '../processes.ts'
import { residentMiB } from '../processor-time.ts'

/** The memory of a worker process of its own, idle and while it drains. Only on Linux. */
export const measure: Measure = {
  name: 'memory',
  async run({ cluster, quick }) {
    const store = await openOwnStore(cluster, 'memory')
    const child = startProgram('worker.ts', [store.url, 'noop'])
    try {
      await firstLine(child)
      const idle = residentMiB(child.pid!)
      const count = quick ? 10_000 : 300_000
      await store.fill(count)
      let peak = 0
      for (let left = count; left > 0; ) {
        peak = Math.max(peak, residentMiB(child.pid!))
        await new Promise(resolve => setTimeout(resolve, 200))
        const { rows } = await store.client.query('select count(*)::int as left from pawl.task where ended_at is null')
        left = rows[0].left
      }
      const after = residentMiB(child.pid!)
      const rows = [
        ['idle', whole(idle)],
        [`peak while draining ${whole(count)}`, whole(peak)],
        ['after', whole(after)],
      ]
      return {
        title: 'Memory of a worker process',
        markdown: table(['', 'resident, MiB'], rows),
        figures: [{ name: 'memory.peak', value: peak, unit: 'MiB', better: 'lower' }],
      }
    } finally {
      await end(child, 'SIGKILL')
      await store.close()
    }
  },
}
