import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Measure } from '../contender.ts'
import { openOwnStore } from '../own-store.ts'
import { table, whole } from '../report.ts'

const ticksPerSecond = 100

/** The cost of idle workers for the server: processor time and memory, as reported by Linux. */
export const measure: Measure = {
  name: 'idle-workers',
  async run({ cluster, quick }) {
    const count = quick ? 100 : 1000
    const seconds = quick ? 5 : 30
    const store = await openOwnStore(cluster, 'idle-workers')
    const program = join(import.meta.dirname, '../programs/server.ts')
    const child = spawn(process.execPath, [program, store.url], { stdio: ['ignore', 'pipe', 'inherit'] })
    const over = new AbortController()
    try {
      const [said] = await once(child.stdout, 'data')
      const url = String(said).trim()
      await sleep(1000)
      const alone = await costOf(child.pid!, seconds)
      const waiting = Array.from({ length: count }, (_, index) => waitForWork(url, index, over.signal))
      await sleep(5000)
      const crowded = await costOf(child.pid!, seconds)
      over.abort()
      await Promise.allSettled(waiting)
      const rows = [
        ['no worker', `${alone.share.toFixed(1)} %`, whole(alone.mib)],
        [`${whole(count)} workers that wait`, `${crowded.share.toFixed(1)} %`, whole(crowded.mib)],
      ]
      const markdown = table(['', 'processor (100 %: one core)', 'resident, MiB'], rows)
      return { title: 'A server whose workers wait for work', markdown: `${markdown}\n\nOver ${seconds} s each.\n` }
    } finally {
      over.abort()
      child.kill('SIGTERM')
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
  const before = ticks(pid)
  await sleep(seconds * 1000)
  const mib = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
  return { share: ((ticks(pid) - before) / ticksPerSecond / seconds) * 100, mib }
}

/** User and system time; the name, which may hold spaces, comes before them in brackets. */
function ticks(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
  return Number(fields[11]) + Number(fields[12])
}
