/** The metric claim_conflicts of Job State Machine v1: claims that lost the race for a job. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { needsServer } from '../harness/databases.ts'
import { whileLocked } from '../harness/open-transaction.ts'
import { served } from '../harness/served.ts'
import { jsmClient } from './jsm-client.ts'

async function rigFor(t: TestContext) {
  const run = await served(t)
  const jsm = jsmClient(() => run.server.url)
  return { ...run, jsm, conflicts: async () => (await jsm.metrics()).claim_conflicts }
}

test('a claim whose first choice another claimer has at that moment counts as a conflict', needsServer(), async t => {
  const { jsm, sql, conflicts } = await rigFor(t)
  const first = await jsm.enqueue({ type: 'mail' })
  const second = await jsm.enqueue({ type: 'mail' })
  const claimed = await whileLocked(
    sql,
    tx => tx`select from pawl.due where id = ${first.id}::uuid for update`,
    () => jsm.claim({ worker: 'w', types: ['mail'] }),
  )
  assert.equal(claimed?.id, second.id)
  assert.equal(await conflicts(), 1)
})

test('a claim that finds nobody else at its job, or no job at all, is no conflict', async t => {
  const { jsm, conflicts } = await rigFor(t)
  await jsm.enqueue({ type: 'mail' })
  await jsm.enqueue({ type: 'mail' })
  const body = { worker: 'w', types: ['mail'], idempotency_key: 'once' }
  assert.equal((await jsm.claim(body))?.id, (await jsm.claim(body))?.id)
  assert.notEqual(await jsm.claim({ worker: 'w', types: ['mail'] }), null)
  assert.equal(await jsm.claim({ worker: 'w', types: ['mail'] }), null)
  assert.equal(await conflicts(), 0)
})
