import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fresh } from '../../test/harness/fresh.ts'
import type { Context } from './context.ts'
import { transact } from './unit-of-work.ts'

/** Records the queues whose waiting workers are woken from now on. */
function recordWoken({ wake }: Context): Set<string> {
  const woken = new Set<string>()
  wake.subscribe(queues => {
    for (const queue of queues) woken.add(queue)
  })
  return woken
}

test('calls in a transaction of the engine wake workers once it commits', async t => {
  const { engine } = await fresh(t)
  const woken = recordWoken(engine.context)
  await engine.transaction(async tx => {
    await engine.enqueue('mail', null, { tx })
    await engine.submit({ name: 'j', stages: [{ name: 's', task: 'print' }] }, { tx })
    assert.ok(!woken.has('mail') && !woken.has('print'), 'nothing has been committed')
  })
  assert.ok(woken.has('mail') && woken.has('print'), [...woken].join())
})

test('calls in a transaction that is rolled back wake nobody', async t => {
  const { engine } = await fresh(t)
  const woken = recordWoken(engine.context)
  const rolledBack = engine.transaction(async tx => {
    await engine.enqueue('mail', null, { tx })
    throw new Error('no')
  })
  await assert.rejects(rolledBack, /^Error: no$/)
  assert.ok(!woken.has('mail'))
  assert.equal((await engine.tasks()).items.length, 0)
})

test('a transaction that is repeated after a deadlock does only what follows from the last try', async t => {
  const { engine } = await fresh(t)
  const woken = recordWoken(engine.context)
  let tries = 0
  const result = await transact(engine.context, {}, 'request', async (_, after) => {
    tries += 1
    after.addQueues([`try-${tries}`])
    if (tries === 1) throw Object.assign(new Error('deadlock detected'), { code: '40P01' })
    return tries
  })
  assert.deepEqual([result, woken.has('try-1'), woken.has('try-2')], [2, false, true])
})

test('a request that repeats its key gets the first answer, and nothing follows a second time', async t => {
  const { engine } = await fresh(t)
  const woken = recordWoken(engine.context)
  const ask = (answer: string) =>
    transact(engine.context, { idempotencyKey: 'k' }, 'request', async (_, after) => {
      after.addQueues([answer])
      return answer
    })
  assert.deepEqual([await ask('first'), await ask('second')], ['first', 'first'])
  assert.deepEqual([woken.has('first'), woken.has('second')], [true, false])
})
