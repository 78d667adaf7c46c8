import type { Measure } from '../contender.ts'
import { openConnection } from '../entrants.ts'
import { table, whole } from '../markdown.ts'
import { openOwnStore } from '../own-store.ts'
import { median } from '../statistics.ts'

/** The drain while another session holds a snapshot, so that no dead row may be removed. */
export const measure: Measure = {
  name: 'pinned-snapshot',
  async run({ cluster, quick }) {
    const store = await openOwnStore(cluster, 'pinned-snapshot')
    const count = quick ? 10_000 : 100_000
    const seconds = quick ? 3 : 180
    const drainOnce = async () => {
      await store.fill(count)
      return store.drain(count)
    }
    await drainOnce()
    const free = [await drainOnce(), await drainOnce(), await drainOnce()]
    const pin = await openConnection(store.url)
    const pinned: number[] = []
    try {
      await pin.query('begin isolation level repeatable read')
      await pin.query('select count(*) from pawl.task')
      for (const end = Date.now() + seconds * 1000; Date.now() < end; ) pinned.push(await drainOnce())
      await pin.query('commit')
    } finally {
      await pin.end()
    }
    await store.close()
    const late = median(pinned.slice(-3))
    const rows = [
      ['free', whole(median(free)), ''],
      [
        `pinned, all rounds of ${seconds} s`,
        whole(median(pinned)),
        `${Math.round((100 * median(pinned)) / median(free))} %`,
      ],
      ['pinned, the last three rounds', whole(late), `${Math.round((100 * late) / median(free))} %`],
    ]
    const text = `${whole(pinned.length * count)} tasks were queued and drained under the pinned snapshot.\n`
    return {
      title: 'Drain with a pinned snapshot',
      markdown: `${table(['', 'tasks/s', ''], rows)}\n\n${text}`,
      figures: [
        { name: 'pinned-snapshot.share', value: (100 * median(pinned)) / median(free), unit: '%', better: 'higher' },
      ],
    }
  },
}
