import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { taskIn } from '../../../test/harness/task-in.ts'
import { deleteOldChanges, startOfChangeScan } from './delete-old-changes.ts'

test('events that are gone leave the feed, however many dead letters before them are kept', async t => {
  const run = await fresh(t)
  const { engine, sql } = run
  const changes = async () => (await sql<{ n: number }>`select count(*)::int as n from pawl.change`)[0]!.n
  for (let n = 0; n < 5; n++) await taskIn(run, 'dead_lettered')
  const kept = await changes()
  for (let n = 0; n < 3; n++) await engine.deleteTask((await taskIn(run, 'cancelled')).id)
  await taskIn(run, 'queued')
  await run.advance(2 * 86_400)
  let scan = startOfChangeScan
  const scanned: boolean[] = []
  do {
    ;({ scan } = await deleteOldChanges(sql, scan, 3))
    scanned.push(scan.hasDeleted)
  } while (scan !== startOfChangeScan)
  assert.equal(await changes(), kept + 1, 'what is left are the dead letters, and the task that is queued')
  assert.ok(scanned.indexOf(true) >= kept / 3 - 1, 'it has passed over several stretches before')
})

test('a walk begins anew behind what it has forgotten, and where changes are young', async t => {
  const run = await fresh(t)
  await run.engine.deleteTask((await taskIn(run, 'cancelled')).id)
  for (let n = 0; n < 3; n++) await taskIn(run, 'queued')
  assert.deepEqual(await deleteOldChanges(run.sql, startOfChangeScan), { deleted: 0, scan: startOfChangeScan })
  await run.advance(2 * 86_400)
  const [gone] = await run.sql<{ n: number }>`select count(*)::int - 3 as n from pawl.change`
  const first = await deleteOldChanges(run.sql, startOfChangeScan, gone!.n)
  assert.deepEqual([first.deleted, first.scan.hasDeleted], [gone!.n, true])
  assert.deepEqual(await deleteOldChanges(run.sql, first.scan, 1), { deleted: 0, scan: startOfChangeScan })
})
