/**
 * Runs every operation again and again, losing its first statement, then its second, until one run loses none; and the
 * same with answers. After each run the rules must hold, and its tasks must still be able to end.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { endGraces, expireTasks } from '../../src/babysitter/chores.ts'
import { rescue } from '../../src/babysitter/rescue.ts'
import { type Engine, openEngine } from '../../src/engine/engine.ts'
import { statesOf } from '../../src/kernel/lifecycle.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { taskLifecycle } from '../../src/kernel/task.ts'
import type { TaskView } from '../../src/protocol/tasks/tasks.ts'
import { database } from '../harness/databases.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { type Loss, losing } from './losing-sql.ts'
import { type Operation, operations, type Place } from './operations.ts'

const bounded = { timeout: 600_000 }
const mostStatements = 40
/** The caller may retry, or be dead. On the embedded store, caller and engine share a process and die together. */
const sequels = () => (database() === 'embedded' ? ['asked again'] : ['asked again', 'given up'])
const ends = new Set<string>(statesOf(taskLifecycle, 'final'))

for (const [name, operation] of Object.entries(operations)) {
  test(`${name}: whatever is lost, no rule breaks and every task still ends`, bounded, async t => {
    const story = await fresh(t)
    for (const of of ['statement', 'answer'] as const) {
      for (const sequel of sequels()) {
        let n = 1
        while (await isLostWhenTold(story, operation, { n, of }, sequel)) {
          n += 1
          assert.ok(n < mostStatements, 'it never gets through')
        }
        assert.ok(n > 1, 'it has no statement at all')
      }
    }
  })
}

async function isLostWhenTold(story: Fresh, operation: Operation, loss: Loss, sequel: string): Promise<boolean> {
  const place: Place = { story, queue: `q-${randomUUID()}`, session: randomUUID() }
  const { engine, sql } = story
  const label = `after losing ${loss.of} ${loss.n}, ${sequel}`
  const scene = await operation(place)
  const faulty = losing(sql, loss)
  const weak = await openEngine({
    migrate: false,
    schema: story.schema,
    store: { sql: faulty.sql, close: async () => {} },
  })

  const first = await scene.ask(weak).then(
    answer => ({ answer }),
    (error: unknown) => {
      if (!faulty.wasLost() || !(error instanceof Problem) || error.code !== 'STORE_UNAVAILABLE') throw error
      return undefined
    },
  )
  assert.equal(first === undefined, faulty.wasLost(), `${label}: what was lost is told to the one who asked`)
  assert.deepEqual(await engine.brokenRules(), [], label)
  if (first !== undefined || sequel === 'asked again') {
    if (first === undefined) await story.advance(scene.againAfterSeconds ?? 0)
    const answer = first === undefined ? await scene.ask(engine) : first.answer
    await scene.check?.(await tasksOf(place), answer)
  }
  await finishAll(place, label)
  return faulty.wasLost()
}

/** In order of creation. */
async function tasksOf({ story, queue }: Place): Promise<TaskView[]> {
  return (await story.engine.tasks({ queue })).items.reverse()
}

/** Advances the clock, runs the babysitter, and lets a worker do what is due. */
async function finishAll(place: Place, label: string): Promise<void> {
  const { engine, advance, sync } = place.story
  for (let rounds = 0; rounds < 5; rounds++) {
    const open = (await tasksOf(place)).filter(({ state }) => !ends.has(state))
    if (open.length === 0) return
    await advance(100)
    await babysit(engine)
    const { claimed } = await sync({ queues: [place.queue], claim: 100 })
    const settled = claimed.map(({ id, epoch }) => ({ id, epoch, outcome: 'succeeded' as const }))
    assert.deepEqual((await sync({ settled })).refused, [], label)
  }
  assert.fail(`${label}: a task does not end`)
}

async function babysit({ context }: Engine): Promise<void> {
  for (const chore of [rescue({ beginsBlind: false }), expireTasks, endGraces]) {
    while ((await chore.run(context)).more === true);
  }
}
