import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import type { HeldTask } from '../../src/protocol/tasks/sync.ts'
import { needsServer } from '../harness/databases.ts'
import { fresh } from '../harness/fresh.ts'

const claimers = 64
const tasks = 10_000
/** So many answers without a task, one after the other, and a claimer gives up: a task that is left is a failure. */
const patience = 300

test('64 claimers on 64 connections never share a task, and leave none', needsServer(), async t => {
  const { engine, url, schema } = await fresh(t)
  const queued = await engine.enqueueMany(Array.from({ length: tasks }, (_, n) => ({ type: 'crowd', payload: n })))
  const engines = await Promise.all(
    Array.from({ length: claimers }, () => openEngine({ database: url!, schema, connections: 1, migrate: false })),
  )
  t.after(() => Promise.all(engines.map(each => each.close())))

  const crowd = { won: [] as HeldTask[], refused: 0 }
  await Promise.all(engines.map((each, n) => drain(each, `claimer-${n}`, 1 + (n % 7), crowd)))

  assert.equal(crowd.refused, 0, 'every settle was by the one holder')
  const wins = crowd.won.map(({ id, epoch }) => `${id} ${epoch}`)
  assert.deepEqual(wins.sort(), queued.map(({ id }) => `${id} 1`).sort(), 'each task was claimed once, and once only')
  assert.deepEqual((await engine.queues()).items, [
    { queue: 'crowd', due: 0, scheduled: 0, held: 0, paused: 0, oldestSeconds: null },
  ])
  const rows = await engine.context.sql`
      select state, epoch, seq, count(*) as tasks, count(distinct owner) > 1 as shared_out
        from pawl.task group by 1, 2, 3`
  assert.deepEqual(rows, [{ state: 'succeeded', epoch: 1, seq: 4, tasks, sharedOut: true }])
})

/** Claims a few at a time and settles them with the next claim, until all that the crowd was given is done. */
async function drain(engine: Engine, worker: string, claim: number, crowd: { won: HeldTask[]; refused: number }) {
  let held: readonly HeldTask[] = []
  for (let empty = 0; held.length > 0 || (crowd.won.length < tasks && empty < patience); ) {
    const settled = held.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const, output: worker }))
    const answer = await engine.sync({ worker, queues: ['crowd'], claim, settled })
    held = answer.claimed
    crowd.won.push(...answer.claimed)
    crowd.refused += answer.refused.length
    empty = held.length === 0 ? empty + 1 : 0
  }
}
