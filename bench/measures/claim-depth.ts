import type { Measure } from '../contender.ts'
import { openOwnStore } from '../own-store.ts'
import { milliseconds, table, whole } from '../report.ts'
import { median } from '../statistics.ts'

const claims = 40

/** What one claim of 100 tasks costs, whatever lies behind them. */
export const measure: Measure = {
  name: 'claim-depth',
  async run({ cluster, quick }) {
    const store = await openOwnStore(cluster, 'claim-depth')
    const rows: string[][] = []
    let queued = 0
    let first = 0
    for (const depth of quick ? [1_000, 20_000] : [1_000, 100_000, 1_000_000]) {
      await store.fill(depth + claims * 100 - queued)
      queued = depth
      await store.tidy()
      const took: number[] = []
      for (let claim = 0; claim < claims; claim++) {
        const began = performance.now()
        const { claimed } = await store.engine.sync({ worker: 'bench', queues: ['noop'], claim: 100 })
        took.push(performance.now() - began)
        if (claimed.length !== 100) throw new Error(`a claim of 100 won ${claimed.length}`)
      }
      first ||= median(took)
      rows.push([whole(depth), milliseconds(median(took)), `${(median(took) / first).toFixed(2)}x`])
    }
    await store.close()
    const markdown = table(['queued', 'a claim of 100, median', 'vs 1,000 queued'], rows)
    return { title: 'Claim cost by depth of the queue', markdown }
  },
}
