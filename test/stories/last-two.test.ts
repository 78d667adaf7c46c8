import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import type { Sql } from '../../src/store/driver/sql.ts'
import { needsServer } from '../harness/databases.ts'
import { fresh } from '../harness/fresh.ts'

const jobs = 500
/** Both succeed, which takes the fast path; or one of them fails, which takes the other. */
const ways = [
  { name: 'two that succeed', second: { outcome: 'succeeded' }, end: 'succeeded' },
  {
    name: 'one that succeeds and one that fails',
    second: { outcome: 'failed', error: { message: 'no', permanent: true } },
    end: 'partial',
  },
] as const

for (const { name, second, end } of ways) {
  test(
    `whoever settles the last two tasks of a stage at once, it ends once and its successor opens once: ${name}`,
    needsServer(),
    async t => {
      const { engine, url, schema } = await fresh(t)
      const [left, right] = await Promise.all([openOne(url!, schema), openOne(url!, schema)])
      try {
        let seenByBoth = 0
        for (let job = 0; job < jobs; job++) {
          const { jobId, first, other } = await submitAndClaim(engine)
          const readStates = async () => (await engine.job(jobId)).stages.map(({ state }) => state)
          const [seenByLeft, seenByRight] = await Promise.all([
            settleAndRead(left, first, { outcome: 'succeeded' }, readStates),
            settleAndRead(right, other, second, readStates),
          ])
          const isLeftLater = seenByLeft.at > seenByRight.at
          const later = isLeftLater ? seenByLeft : seenByRight
          assert.deepEqual(later.states, [end, 'pending'], `job ${job}: what the later answer saw`)
          if (seenByLeft.states[0] === end && seenByRight.states[0] === end) seenByBoth += 1
        }
        assert.deepEqual(await eventsOf(engine.context.sql), {
          [`stage.${end} a`]: jobs,
          'stage.pending a': jobs,
          'stage.pending b': jobs,
        })
        t.diagnostic(`${jobs} stages; in ${seenByBoth} both answers came after the end`)
      } finally {
        await Promise.all([left.close(), right.close()])
      }
    },
  )
}

const openOne = (database: string, schema: string) => openEngine({ database, schema, connections: 1, migrate: false })

async function submitAndClaim(engine: Engine): Promise<{ jobId: string; first: ClaimedTask; other: ClaimedTask }> {
  const { id } = await engine.submit({
    name: 'two',
    stages: [
      { name: 'a', task: 'a', payloads: [1, 2], tolerate: { count: 1 } },
      { name: 'b', task: 'b' },
    ],
  })
  const { claimed } = await engine.sync({ worker: 'w', queues: ['a'], claim: 2 })
  assert.equal(claimed.length, 2)
  return { jobId: id, first: claimed[0]!, other: claimed[1]! }
}

/** Settles a task, and reads at once on another connection: the answer must not come before its effects are visible. */
async function settleAndRead(
  engine: Engine,
  { id, epoch }: ClaimedTask,
  report: (typeof ways)[number]['second'],
  readStates: () => Promise<string[]>,
): Promise<{ at: number; states: string[] }> {
  const { refused } = await engine.sync({ worker: 'w', settled: [{ id, epoch, ...report }] })
  assert.deepEqual(refused, [])
  const at = performance.now()
  return { at, states: await readStates() }
}

/** The number of events of each kind: ends and openings. */
async function eventsOf(sql: Sql): Promise<Record<string, number>> {
  const rows = await sql<{ kind: string; events: number }>`
    select format('stage.%s %s', h.state, s.name) as kind, count(*)::int as events
      from pawl.stage s cross join unnest(s.history) as h
     where h.state not in ('created', 'running') group by 1`
  return Object.fromEntries(rows.map(({ kind, events }) => [kind, events]))
}
