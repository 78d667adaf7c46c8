import assert from 'node:assert/strict'
import { test } from 'node:test'
import { needsServer } from '../../../test/harness/databases.ts'
import { fresh } from '../../../test/harness/fresh.ts'
import { defineTask } from '../../worker/define-task.ts'

const handler = async () => {}

test('once a defined type is in the store, a transaction that enqueues it costs no more', needsServer(), async t => {
  const { engine } = await fresh(t)
  const greet = defineTask({ type: 'greet', retry: { attempts: 7 }, handler })
  const { statements } = engine.context.metrics
  const count = () => statements.counts.reduce((sum, n) => sum + n, 0)
  const costs: number[] = []
  for (const task of [greet, greet, greet, 'greet']) {
    await engine.transaction(async tx => {
      const before = count()
      await engine.enqueue(task as typeof greet, undefined, { tx })
      costs.push(count() - before)
    })
  }
  assert.equal(costs[2], costs[3], costs.join())
})

test('a type that was registered in a transaction which is rolled back is registered again', async t => {
  const { engine } = await fresh(t)
  const greet = defineTask({ type: 'greet', retry: { attempts: 7 }, handler })
  const undone = engine.transaction(async tx => {
    for (let time = 0; time < 3; time++) await engine.enqueue(greet, undefined, { tx })
    throw new Error('changed my mind')
  })
  await assert.rejects(undone, /changed my mind/)
  await engine.transaction(tx => engine.enqueue(greet, undefined, { tx }))
  assert.deepEqual((await engine.taskType('greet')).retry, { attempts: 7 })
})

test('transactions that enqueue the same new types, each in its own order, do not deadlock', needsServer(), async t => {
  const types = Array.from({ length: 40 }, (_, n) => `t${n}`)
  const tasks = Object.fromEntries(types.map(type => [type, defineTask({ type, handler })]))
  const { engine } = await fresh(t, { tasks })
  const enqueue = (some: string[]) =>
    engine.transaction(tx =>
      engine.enqueueMany(
        some.map(type => ({ type, payload: 1 })),
        { tx },
      ),
    )
  await Promise.all([enqueue(types), enqueue(types.toReversed())])
})
