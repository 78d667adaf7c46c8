import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../../test/harness/fresh.ts'

const spec = {
  name: 'invoices',
  stages: [
    { name: 'extract', task: 'extract', payloads: [1, 2, 3], failFast: false, retry: { attempts: 2, delaySeconds: 0 } },
    { name: 'publish', task: 'publish' },
  ],
}

test('a timeline shows each attempt of a task with its worker, and the stages with what they waited for', async t => {
  const { engine, advance } = await fresh(t)
  const { id } = await engine.submit(spec)
  const [first] = await engine.claims({ worker: 'ada', queues: ['extract'], start: true })
  await advance(10)
  await engine.fail(first!.id, first!.epoch, { error: { message: 'the pen ran dry' } })
  const again = await engine.claims({ worker: 'bob', queues: ['extract'], claim: 3 })
  for (const { id, epoch } of again) await engine.succeed(id, epoch)
  const { stages, tasks, more } = await engine.timeline(id)
  assert.deepEqual(
    stages.map(({ name, spans }) => [name, ...spans.map(({ state }) => state)]),
    [
      ['extract', 'created', 'pending', 'running', 'succeeded'],
      ['publish', 'created', 'pending'],
    ],
  )
  const attempts = tasks.find(task => task.id === first!.id)!.attempts
  assert.deepEqual(
    attempts.map(({ epoch, worker, outcome }) => [epoch, worker, outcome]),
    [
      [1, 'ada', 'retrying'],
      [2, 'bob', 'succeeded'],
    ],
  )
  const { startedAt, endedAt } = attempts[0]!
  assert.ok(Date.parse(endedAt!) - Date.parse(startedAt!) >= 10_000)
  assert.equal(tasks.length, 4)
  assert.equal(more, false)
})

test('a timeline of a large job shows some tasks of every stage, and says that there are more', async t => {
  const { engine } = await fresh(t)
  const payloads = Array.from({ length: 50 }, (_, index) => index)
  const { id } = await engine.submit({
    name: 'large',
    stages: [
      { name: 'a', task: 'a', payloads },
      { name: 'b', task: 'b' },
    ],
  })
  const { tasks, stages, more } = await engine.timeline(id, { limit: 10 })
  assert.deepEqual(new Set(tasks.map(({ stageId }) => stageId)), new Set(stages.map(({ id }) => id)))
  assert.equal(more, true)
  assert.ok(tasks.length <= 10)
})

test('tasks that ended badly are told by what is alike: messages that differ in numbers and ids are one', async t => {
  const { engine } = await fresh(t)
  await engine.enqueueMany([1, 2, 3].map(payload => ({ type: 'mail', payload, retry: { attempts: 1 } })))
  const claimed = await engine.claims({ worker: 'w', queues: ['mail'], claim: 3 })
  for (const [index, { id, epoch }] of claimed.entries()) {
    const message = index === 2 ? 'no such host' : `order ${index} of ${id} is lost`
    await engine.fail(id, epoch, { error: { message } })
  }
  const troubles = await engine.troubles({ state: 'dead_lettered' })
  assert.deepEqual(
    troubles.map(({ message, count, reasonCode, type }) => [message, count, reasonCode, type]),
    [
      ['order # of # is lost', 2, 'exhausted_retries', 'mail'],
      ['no such host', 1, 'exhausted_retries', 'mail'],
    ],
  )
  assert.deepEqual(await engine.troubles({ queue: 'other' }), [])
})

test('dead letters are listed and redriven by what they say, and what says something else stays', async t => {
  const { engine } = await fresh(t)
  const messages = ['row 17 is odd', 'row 4 is odd', 'no such host', '']
  await engine.enqueueMany(messages.map(payload => ({ type: 'mail', payload, retry: { attempts: 1 } })))
  for (const { id, epoch, payload } of await engine.claims({ worker: 'w', queues: ['mail'], claim: 4 })) {
    const message = payload as string
    if (message === '') await engine.deadLetter(id, { reasonCode: 'exhausted_retries' })
    else await engine.fail(id, epoch, { error: { message } })
  }
  const payloadsWith = async (message: string) =>
    (await engine.deadLetters({ message })).items.map(({ payload }) => payload)
  assert.deepEqual((await payloadsWith('row 1 is odd')).sort(), ['row 17 is odd', 'row 4 is odd'])
  for (const { message, count } of await engine.troubles({ state: 'dead_lettered' })) {
    assert.equal((await payloadsWith(message)).length, count, message)
    assert.equal((await engine.redrive({ message, dryRun: true })).total, count, message)
  }
  assert.equal((await engine.redrive({ message: 'row # is odd' })).redriven.length, 2)
  assert.deepEqual([(await payloadsWith('row 1 is odd')).length, (await engine.deadLetters()).items.length], [0, 2])
})
