import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Measure } from '../contender.ts'
import { table, whole } from '../markdown.ts'
import { openOwnStore } from '../own-store.ts'
import { startServerProcess } from '../processes.ts'
import { processorMs, residentMiB } from '../processor-time.ts'

/** The cost of idle workers for the server: processor time and memory, as reported by Linux. */
export const measure: Measure = {
  name: 'idle-workers',
  async run({ cluster, quick }) {
    const count = quick ? 100 : 1000
    const seconds = quick ? 5 : 30
    const store = await openOwnStore(cluster, 'idle-workers')
    await using server = await startServerProcess(store.url)
    const over = new AbortController()
    try {
      const { url, pid } = server
      await sleep(1000)
      const alone = await costOf(pid, seconds)
      const waiting = Array.from({ length: count }, (_, index) => waitForWork(url, index, over.signal))
      await sleep(5000)
      const crowded = await costOf(pid, seconds)
      over.abort()
      await Promise.allSettled(waiting)
      const rows = [
        ['no worker', `${alone.share.toFixed(1)} %`, whole(alone.mib)],
        [`${whole(count)} workers that wait`, `${crowded.share.toFixed(1)} %`, whole(crowded.mib)],
      ]
      const markdown = table(['', 'processor (100 %: one core)', 'resident, MiB'], rows)
      return {
        title: 'A server whose workers wait for work',
        markdown: `${markdown}\n\nOver ${seconds} s each.\n`,
        figures: [
          { name: 'idle-workers.processor', value: crowded.share, unit: '%', better: 'lower' },
          { name: 'idle-workers.resident', value: crowded.mib, unit: 'MiB', better: 'lower' },
        ],
      }
    } finally {
      over.abort()
      await server.stop()
      await store.close()
    }
  },
}

async function waitForWork(url: string, index: number, signal: AbortSignal): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const session = randomUUID()
  for (let turn = 1; !signal.aborted; turn++) {
    const body = JSON.stringify({
      session,
      syncId: `${turn}`,
      queues: [`queue-${index % 10}`],
      claim: 1,
      waitSeconds: 20,
    })
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }
    const asked = request(`${url}/v1/workers/w${index}/sync`, { method: 'POST', agent, headers, signal })
    asked.end(body)
    const [answer] = await once(asked, 'response')
    answer.resume()
    await once(answer, 'end')
  }
}

async function costOf(pid: number, seconds: number): Promise<{ share: number; mib: number }> {
  const before = processorMs(pid)
  await sleep(seconds * 1000)
  return { share: (processorMs(pid) - before) / (10 * seconds), mib: residentMiB(pid) }
}
