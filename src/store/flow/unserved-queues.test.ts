/** Unserved queues: tasks have been due for a minute, no worker syncs, and there was no recent claim or lease. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { watchQueues } from '../../babysitter/chores.ts'
import { rescue } from '../../babysitter/rescue.ts'
import { findUnservedQueues } from './queue-depths.ts'

const stale = async ({ sql }: Fresh) => (await findUnservedQueues(sql, 60)).queues.map(({ queue }) => queue)
const claims = async ({ engine }: Fresh, queue: string, options: object = {}) =>
  (await engine.claims({ worker: 'script', queues: [queue], ...options }))[0]!

/** Queues with two tasks each that have been due for longer than a minute. */
async function withWork(run: Fresh, queues: readonly string[]): Promise<void> {
  await run.engine.enqueueMany(queues.flatMap(queue => [{ type: queue }, { type: queue }]))
  await run.advance(61)
}

test('a queue is served while a worker without a session holds one of its tasks', async t => {
  const run = await fresh(t)
  await run.engine.enqueueMany([{ type: 'a' }, { type: 'a' }, { type: 'b' }])
  await claims(run, 'a', { leaseSeconds: 600, heartbeatSeconds: null })
  await run.advance(61)
  assert.deepEqual(await stale(run), ['b'])
  await run.advance(300)
  assert.deepEqual(await stale(run), ['b'])
  await run.advance(300)
  assert.deepEqual(await stale(run), ['a', 'b'], 'its lease is over')
})

test('a queue is served if one of its tasks was claimed within a minute, however fast it was done', async t => {
  const run = await fresh(t)
  await withWork(run, ['a', 'b'])
  const { id, epoch } = await claims(run, 'a', { leaseSeconds: 600, heartbeatSeconds: null })
  await run.engine.succeed(id, epoch)
  assert.deepEqual(await stale(run), ['b'])
  await run.advance(59)
  assert.deepEqual(await stale(run), ['b'])
  await run.advance(2)
  assert.deepEqual(await stale(run), ['a', 'b'])
})

test('a worker that vanished does not count, nor one that serves other queues', async t => {
  const run = await fresh(t)
  await withWork(run, ['a', 'b'])
  await claims(run, 'a')
  await run.advance(61)
  await rescue({ beginsBlind: false, now: () => 0 }).run(run.engine.context)
  await claims(run, 'b')
  assert.deepEqual(await stale(run), ['a'])
})

test('of very many queues whose work nobody does, the log and the doctor name the first, and count the others', async t => {
  const logged: (readonly [string, Record<string, unknown>])[] = []
  const run = await fresh(t, { log: (word, facts) => void logged.push([word, facts]) })
  await run.engine.enqueueMany(Array.from({ length: 50 }, (_, n) => ({ type: 't', queue: `q${n}` })))
  await run.advance(61)
  assert.equal((await watchQueues.run(run.engine.context)).stale, 50)
  const alarms = logged.filter(([word]) => /^queues?\.stale$/.test(word))
  assert.deepEqual([alarms.length, alarms.at(-1)![0], alarms.at(-1)![1].others], [21, 'queues.stale', 30])
  const { findings } = await run.engine.doctor()
  const unserved = findings.filter(({ what }) => /no worker/.test(what)).map(({ what }) => what)
  assert.deepEqual([unserved.length, unserved.at(-1)], [21, '30 other queues have due tasks and no worker.'])
})
