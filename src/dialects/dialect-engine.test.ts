import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../test/harness/fresh.ts'
import { mergedReports } from '../engine/tasks/merge-reports.ts'
import { engineFor } from './dialect-engine.ts'

test('a dialect cannot report on a task by naming its epoch alone', async t => {
  const { engine } = await fresh(t)
  const identity = { name: null, holder: 'key', roles: ['worker'], queues: null } as never
  const offered = engineFor({ engine, reports: mergedReports(engine.context) }, identity)
  for (const name of ['sync', 'start', 'heartbeat', 'skip', 'cancelled']) assert.ok(!(name in offered), name)
  assert.ok('report' in offered && 'succeed' in offered)
})
