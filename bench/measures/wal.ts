import type { Measure } from '../contender.ts'
import { table, whole } from '../markdown.ts'
import { openOwnStore } from '../own-store.ts'

/** Bytes of write-ahead log per task, with and without the page images that follow a checkpoint. */
export const measure: Measure = {
  name: 'wal',
  async run({ cluster, quick }) {
    const store = await openOwnStore(cluster, 'wal')
    const count = quick ? 10_000 : 100_000
    const { client } = store
    const bytesOf = async (work: () => Promise<unknown>) => {
      const { rows: before } = await client.query('select pg_current_wal_insert_lsn() as lsn')
      await work()
      const { rows: after } = await client.query('select (pg_current_wal_insert_lsn() - $1::pg_lsn)::float8 as bytes', [
        before[0].lsn,
      ])
      return after[0].bytes / count
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
    return {
      title: 'Write-ahead log',
      markdown: `${table(['', 'bytes per task'], rows)}\n\n${note}\n`,
      figures: [
        { name: 'wal.enqueue', value: enqueue, unit: 'bytes', better: 'lower' },
        { name: 'wal.drain', value: warm, unit: 'bytes', better: 'lower' },
      ],
    }
  },
}
