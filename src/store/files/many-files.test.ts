import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import type { Sql } from '../driver/sql.ts'
import { recordUploads } from './artifacts.ts'

const files = Array.from({ length: 300 }, (_, n) => ({ name: `f${n}`, uri: `s3://bucket/f${n}` }))

/** Number of rows of the ledger that this transaction has read so far. */
async function rowsRead({ schema }: Fresh, tx: Sql): Promise<number> {
  const [row] = await tx<{ rows: number }>`
    select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::float8 as rows
      from pg_stat_xact_all_tables where schemaname = ${schema} and relname = 'artifact'`
  return row!.rows
}

test('recording one upload reads one file, not all files of the attempt', async t => {
  const run = await fresh(t)
  const { id, epoch } = await taskIn(run, 'running')
  // Statistics of an empty table are the worst case for the planner.
  await run.sql.script("update pg_class set reltuples = 0, relpages = 1 where oid = 'pawl.artifact'::regclass")
  await run.sync({ artifacts: files.map(file => ({ ...file, id, epoch, state: 'registered' as const })) })
  const uploads = files.slice(0, 100).map(({ uri }) => ({ uri, size: 1, sha256: 'x' }))
  await run.sql.begin(async tx => {
    const before = await rowsRead(run, tx)
    assert.deepEqual(await recordUploads(tx, { id, epoch }, uploads), { missed: [] })
    const rows = (await rowsRead(run, tx)) - before
    assert.ok(rows <= 10 * uploads.length, `${rows} rows`)
  })
})
