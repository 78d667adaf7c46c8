import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import type { HeldTask } from '../../src/protocol/tasks/sync.ts'
import { needsServer } from '../harness/databases.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { laneWith } from '../harness/lane-with.ts'

const claimers = 64
const tasks = 600
const parallelism = 4

/** Observations of one lane: the held tasks of each worker, and whether all work is done. */
interface Crowd {
  readonly queue: string
  readonly held: Set<string>
  readonly won: string[]
  most: number
  refused: number
}

test('64 claimers on a lane of 4 never hold more than 4 at once, and leave none', needsServer(), async t => {
  const run = await fresh(t)
  const { queue, ids } = await laneWith(run, tasks, { parallelism })
  const engines = await Promise.all(
    Array.from({ length: claimers }, () =>
      openEngine({ database: run.url!, schema: run.schema, connections: 1, migrate: false }),
    ),
  )
  t.after(() => Promise.all(engines.map(each => each.close())))

  const crowd: Crowd = { queue, held: new Set(), won: [], most: 0, refused: 0 }
  const watching = watch(run, crowd)
  await Promise.all(engines.map((each, n) => drain(each, `claimer-${n}`, 1 + (n % 7), crowd)))

  assert.equal(crowd.refused, 0, 'every settle was by the one holder')
  assert.deepEqual(crowd.won.sort(), ids.map(id => `${id} 1`).sort(), 'each task was claimed once, and once only')
  // Whether they ever hold as many as they may depends on the machine.
  assert.ok(crowd.most > 1 && crowd.most <= parallelism, `the workers held ${crowd.most} at once`)
  assert.ok((await watching) <= parallelism, `the database saw ${await watching} held at once`)
})

/** Claims and settles in turn, until all is done. A claimed task that is not settled yet is certainly held. */
async function drain(engine: Engine, worker: string, claim: number, crowd: Crowd) {
  while (crowd.won.length < tasks) {
    const { claimed } = await engine.sync({ worker, queues: [crowd.queue], claim, waitSeconds: 0.2 })
    const leases = claimed.map(({ id, epoch }) => `${id} ${epoch}`)
    for (const lease of leases) crowd.held.add(lease)
    crowd.won.push(...leases)
    crowd.most = Math.max(crowd.most, crowd.held.size)
    for (const lease of leases) crowd.held.delete(lease)
    crowd.refused += await settle(engine, worker, claimed)
  }
}

async function settle(engine: Engine, worker: string, held: readonly HeldTask[]): Promise<number> {
  const settled = held.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const }))
  return (await engine.sync({ worker, settled })).refused.length
}

/** The maximum number of held tasks in the database, sampled until all is done. */
async function watch({ sql }: Fresh, crowd: Crowd): Promise<number> {
  let most = 0
  while (crowd.won.length < tasks) {
    const [row] = await sql<{ held: number }>`select count(*) as held from pawl.task where lease_until is not null`
    most = Math.max(most, row!.held)
  }
  return most
}
