import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'
import { served } from '../../../test/harness/served.ts'
import { taskIn } from '../../../test/harness/task-in.ts'

test('heartbeats are read among the events of their task, behind what they followed, and only if asked for', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id, queue } = await taskIn(run, 'assigned', { correlationId: 'c-1' })
  await run.sync({ beats: [{ id, epoch: 1 }] })
  await engine.start(id, 1)
  for (const progress of [0.5, 0.75]) {
    await run.advance(1)
    await engine.heartbeat(id, 1, { progress })
  }
  await engine.release(id, 1)
  await run.sync({ worker: 'heir', queues: [queue], claim: 1 })
  await engine.heartbeat(id, 2)
  const { items, next } = await engine.taskEvents(id, { pulses: true })
  assert.deepEqual(
    items.map(({ seq, type, to, actor }) => `${seq} ${type} ${to} ${actor}`),
    [
      '1 task.queued queued producer',
      '2 task.claimed assigned worker:w',
      '2 task.heartbeat assigned worker:w',
      '3 task.started running worker:w',
      '3 task.progress running worker:w',
      '3 task.progress running worker:w',
      '4 task.retrying retrying worker:w',
      '5 task.claimed assigned worker:heir',
      '6 task.started running worker:heir',
      '6 task.heartbeat running worker:heir',
    ],
  )
  assert.deepEqual([items[4]!.payload, items[4]!.from, items[4]!.correlationId], [{ progress: 0.5 }, 'running', 'c-1'])
  assert.equal(new Set(items.map(event => event.id)).size, items.length)
  assert.equal(next, null)
  const plain = await engine.taskEvents(id)
  assert.deepEqual(
    plain.items,
    items.filter(({ cause }) => cause !== 'heartbeat'),
  )
})

test('events with heartbeats come page by page, none twice and none left out', async t => {
  const { engine, client, ...run } = await served(t)
  const { id } = await taskIn({ engine, ...run }, 'running')
  for (const _ of [1, 2, 3, 4]) {
    await run.advance(1)
    await engine.heartbeat(id, 1)
  }
  const whole = await engine.taskEvents(id, { pulses: true })
  const ids: string[] = []
  for (let cursor: string | undefined; ; ) {
    const page = await client.taskEvents(id, { pulses: true, limit: 2, ...(cursor !== undefined && { cursor }) })
    ids.push(...page.items.map(event => event.id))
    if (page.next === null) break
    cursor = page.next
  }
  assert.deepEqual(
    ids,
    whole.items.map(event => event.id),
  )
  assert.equal(ids.length, 7)
  await assert.rejects(engine.taskEvents(id, { pulses: true, cursor: 'x' }), { code: 'CURSOR_INVALID' })
  const { status } = await run.request(`/v1/tasks/${id}/events?pulses=maybe`)
  assert.equal(status, 400)
})
