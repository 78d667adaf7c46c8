import type { Measure } from '../contender.ts'
import { openOwnStore } from '../own-store.ts'
import { table, whole } from '../report.ts'

/** Bytes of write-ahead log per task, with and without the page images that follow a checkpoint. */
export const measure: Measure = {
  name: 'wal',
  async run({ cluster, quick }) {
    const store = await openOwnStore(cluster, 'wal')
    const count = quick ? 10_000 : 100_000
    const { client } = store
    const bytesOf = async (work: () => Promise<unknown>) => {
      const { rows: before } = await client.query(
        'select wal_bytes::float8 as bytes, wal_fpi::int as images from pg_stat_wal',
      )
      await work()
      await client.query('select pg_stat_force_next_flush()')
      await new Promise(resolve => setTimeout(resolve, 1500))
      const { rows: after } = await client.query(
        'select wal_bytes::float8 as bytes, wal_fpi::int as images from pg_stat_wal',
      )
      return (after[0].bytes - before[0].bytes) / count
    }
    await store.fill(1000)
    await store.drain(1000)
    await store.tidy()
    const enqueue = await bytesOf(() => store.fill(count))
    const warm = await bytesOf(() => store.drain(count))
    await store.fill(count)
    await store.tidy()
    const cold = await bytesOf(() => store.drain(count))
    await store.close()
    const rows = [
      ['enqueue', whole(enqueue)],
      ['drain', whole(warm)],
      ['drain right after a checkpoint', whole(cold)],
    ]
    const note = 'Payload of about 100 bytes; a drained task has four events, which are part of its row.'
    return { title: 'Write-ahead log', markdown: `${table(['', 'bytes per task'], rows)}\n\n${note}\n` }
  },
}
