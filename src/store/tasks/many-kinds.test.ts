import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { newId } from '../../kernel/id.ts'
import type { Sql } from '../driver/sql.ts'
import { createLanes } from '../flow/task-lanes.ts'
import { insertTasks, maxKinds, type NewTask } from './enqueue.ts'

/** Counts for each insert how many kinds it compares with its tasks. */
function counting(sql: Sql, kinds: number[]): Sql {
  return new Proxy(sql, {
    apply(run, self, args: [TemplateStringsArray, ...unknown[]]) {
      if (args[0].join('').includes('kind as materialized')) kinds.push((args[1] as unknown[]).length)
      return Reflect.apply(run, self, args)
    },
    get(run, name) {
      if (name === 'begin') return (work: (tx: Sql) => Promise<unknown>) => run.begin(tx => work(counting(tx, kinds)))
      return Reflect.get(run, name)
    },
  })
}

async function enqueued(t: TestContext, tasks: readonly NewTask[]) {
  const { sql, engine } = await fresh(t)
  await createLanes(sql, tasks)
  const kinds: number[] = []
  const made = await insertTasks(counting(sql, kinds), tasks, 'me')
  const { total } = await engine.tasks({ limit: 1, total: true })
  const [due] = await sql<{ tasks: number; lanes: number }>`
    select sum(cardinality(ids))::int as tasks, count(distinct lane_id)::int as lanes from pawl.due`
  return { kinds, made, total, due }
}

const count = 2 * maxKinds + 1
const inQueues = (more: object = {}) =>
  Array.from({ length: 2 * count }, (_, n): NewTask => {
    return { id: newId(), queue: `q${n % count}`, type: 't', priority: 0, payload: 'null', ...more }
  })

test('tasks for very many queues are enqueued with work that grows with their number, not with its square', async t => {
  const tasks = inQueues()
  const { kinds, made, total, due } = await enqueued(t, tasks)
  assert.deepEqual(kinds, [maxKinds, maxKinds, 1])
  assert.deepEqual([made.map(({ id }) => id), total], [tasks.map(({ id }) => id), 2 * count])
  assert.deepEqual(due, { tasks: 2 * count, lanes: count })
})

test('of tasks for very many queues that share a dedupe key, each queue gets one', async t => {
  const { kinds, made, total } = await enqueued(t, inQueues({ dedupeKey: 'once' }))
  assert.deepEqual(kinds.slice(0, 3), [maxKinds, maxKinds, 1])
  const taken = made.filter(({ deduplicated }) => deduplicated).length
  assert.deepEqual([total, taken], [count, count])
})
