import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Measure } from '../contender.ts'
import { openOwnStore } from '../own-store.ts'
import { table, whole } from '../report.ts'

/** The memory of a worker process of its own, idle and while it drains. Linux tells; elsewhere it is left out. */
export const measure: Measure = {
  name: 'memory',
  async run({ cluster, quick }) {
    const store = await openOwnStore(cluster, 'memory')
    const program = join(import.meta.dirname, '../programs/worker.ts')
    const child = spawn(process.execPath, [program, store.url, 'noop'], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      await once(child.stdout, 'data')
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
      return { title: 'Memory of a worker process', markdown: table(['', 'resident, MiB'], rows) }
    } finally {
      child.kill('SIGKILL')
      await store.close()
    }
  },
}

function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024
}
