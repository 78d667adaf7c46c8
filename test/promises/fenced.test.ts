/** "Fenced." */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rescue } from '../../src/babysitter/rescue.ts'
import { fresh } from '../harness/fresh.ts'

test('every write of a worker that lost its lease changes nothing and is answered LEASE_LOST', async t => {
  const { engine, sync, advance } = await fresh(t)
  await engine.enqueue('work', 1)
  const [held] = (await sync({ queues: ['work'], claim: 1 })).claimed
  const { id, epoch } = held!
  await sync({ started: [{ id, epoch, agoMs: 0 }] })
  await advance(60)
  await rescue({ beginsBlind: false }).run(engine.context)
  await sync({ worker: 'heir', queues: ['work'], claim: 1 })
  const whole = async () => ({ ...(await engine.task(id)), events: (await engine.taskEvents(id)).items })
  const before = await whole()
  const { refused } = await sync({
    started: [{ id, epoch, agoMs: 0 }],
    beats: [{ id, epoch, progress: 1, checkpoint: 2 }],
    artifacts: [{ id, epoch, name: 'a', uri: 'file:///tmp/a', state: 'registered' }],
    settled: [{ id, epoch, outcome: 'succeeded', output: 'late' }],
  })
  assert.deepEqual(new Set(refused.map(({ code }) => code)), new Set(['LEASE_LOST']))
  assert.deepEqual(await whole(), before)
})
