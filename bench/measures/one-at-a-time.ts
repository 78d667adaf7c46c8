import type { Figure, Measure } from '../contender.ts'
import { table, whole } from '../markdown.ts'
import { type Cost, ownRoutes, workOneAtATime } from '../one-at-a-time.ts'
import { openOwnStore } from '../own-store.ts'
import { startServerProcess } from '../processes.ts'
import { median } from '../statistics.ts'

/** A claim that starts its task, then its report, over HTTP: the rate, and the processor time of each process. */
export const measure: Measure = {
  name: 'one-at-a-time',
  async run({ cluster, quick }) {
    const [count, rounds] = quick ? [300, 1] : [4000, 5]
    const store = await openOwnStore(cluster, 'one-at-a-time')
    await using server = await startServerProcess(store.url)
    const served = { ...server, postgres: cluster.pid() }
    const rows: string[][] = []
    const figures: Figure[] = []
    for (const claimers of [8, 64]) {
      const costs: Cost[] = []
      // The first round warms up.
      for (let round = 0; round <= rounds; round++) {
        await store.fill(count)
        await store.tidy()
        const cost = await workOneAtATime(served, { claimers, count, doOne: ownRoutes('noop') })
        if (round > 0) costs.push(cost)
      }
      const rate = median(costs.map(cost => cost.rate))
      const serverMs = median(costs.map(cost => cost.serverMs))
      const postgresMs = median(costs.map(cost => cost.postgresMs))
      const name = `one-at-a-time.${claimers}`
      figures.push(
        { name: `${name}.rate`, value: rate, unit: 'tasks/s', better: 'higher' },
        { name: `${name}.server`, value: serverMs, unit: 'ms', better: 'lower' },
        { name: `${name}.postgres`, value: postgresMs, unit: 'ms', better: 'lower' },
      )
      rows.push([whole(claimers), whole(rate), `${serverMs.toFixed(2)} ms`, `${postgresMs.toFixed(2)} ms`])
    }
    await server.stop()
    await store.close()
    const markdown = `${table(['claimers', 'tasks/s', 'CPU per task, server', 'PostgreSQL'], rows)}

Standalone tasks; a claim with \`start: true\`, then \`succeed\`. ${whole(count)} tasks, medians of ${rounds} rounds. The client
uses plain sockets. Processor time is read from /proc for the server process and for all processes of PostgreSQL.
`
    return { title: 'One task at a time over HTTP', markdown, figures }
  },
}
