import { setTimeout as sleep } from 'node:timers/promises'
import { connect, defineTask, startWorker } from '../../dist/index.js'
import { type Figure, type Measure, payload } from '../contender.ts'
import { reasonOf } from '../entrants.ts'
import { milliseconds, table, whole } from '../markdown.ts'
import { openOwnStore } from '../own-store.ts'
import { startServerProcess } from '../processes.ts'
import { percentile } from '../statistics.ts'
import { openTemporal } from '../temporal.ts'
import { type Flow, secondsOf } from '../work.ts'

const atOnce = 50

/** One-step work that a client starts and awaits over the network: a job of Pawl, a workflow of Temporal. */
export const measure: Measure = {
  name: 'workflows',
  async run({ cluster, quick }) {
    const [count, singles] = quick ? [200, 10] : [2000, 50]
    const store = await openOwnStore(cluster, 'workflows')
    const server = await startServerProcess(store.url)
    const rows: string[][] = []
    const ours = await measureFlow(await openOwnFlow(server.url), count, singles)
    rows.push(ours.row)
    await server.stop()
    await store.close()
    const notes = [`${atOnce} at once, and single ones on an idle server.`]
    const figures: Figure[] = [
      { name: 'workflows.rate', value: ours.rate, unit: 'jobs/s', better: 'higher' },
      { name: 'workflows.single', value: ours.single, unit: 'ms', better: 'lower' },
    ]
    const peer = await openTemporal().catch((error: unknown) => reasonOf(error))
    if (typeof peer === 'string') notes.push(`Temporal is left out: ${peer}.`)
    else {
      const theirs = await measureFlow(peer, Math.min(count, 500), singles)
      rows.push(theirs.row)
      figures.push(
        { name: 'temporal.rate', value: theirs.rate, unit: 'jobs/s', better: 'higher' },
        { name: 'temporal.single', value: theirs.single, unit: 'ms', better: 'lower' },
      )
    }
    const markdown = `${table(['', 'per second', 'a single one, p50', 'p99'], rows)}\n\n${notes.join(' ')}\n`
    return { title: 'A workflow of one step', markdown, figures }
  },
}

async function measureFlow(flow: Flow, count: number, singles: number) {
  try {
    for (let index = 0; index < 10; index++) await flow.run(payload(index))
    let left = count
    const seconds = await secondsOf(async () => {
      const lane = async () => {
        while (left-- > 0) await flow.run(payload(left))
      }
      await Promise.all(Array.from({ length: atOnce }, lane))
    })
    const took: number[] = []
    for (let index = 0; index < singles; index++) {
      await sleep(5 + Math.random() * 20)
      took.push(1000 * (await secondsOf(() => flow.run(payload(index)))))
    }
    const [rate, single] = [count / seconds, percentile(took, 0.5)]
    return { rate, single, row: [flow.name, whole(rate), milliseconds(single), milliseconds(percentile(took, 0.99))] }
  } finally {
    await flow.close()
  }
}

/** One reader of the feed notifies all callers whose jobs have ended. */
async function openOwnFlow(server: string): Promise<Flow> {
  const client = connect({ server })
  const worker = startWorker(client, [defineTask({ type: 'noop', handler: async () => {} })], { concurrency: 100 })
  const awaited = new Map<string, () => void>()
  const ended = new Set<string>()
  const stopping = new AbortController()
  let { next } = await client.events({ latest: 1 })
  const reading = (async () => {
    while (!stopping.signal.aborted) {
      const page = await client.events({ cursor: next, types: ['job.succeeded'] })
      next = page.next
      for (const { entityId } of page.items) {
        const tell = awaited.get(entityId)
        if (tell === undefined) ended.add(entityId)
        else tell()
      }
      if (page.items.length === 0) await sleep(2)
    }
  })()
  return {
    name: 'Pawl: a job of one stage with one task, server and PostgreSQL',
    async run(payload) {
      const { id } = await client.submit({ name: 'flow', stages: [{ name: 'only', task: 'noop', payload }] })
      if (ended.delete(id)) return
      // Until then, the reader ends only if it fails.
      await Promise.race([new Promise<void>(resolve => awaited.set(id, resolve)), reading])
      awaited.delete(id)
    },
    async close() {
      stopping.abort()
      await reading
      await worker.stop()
      await client.close()
    },
  }
}
