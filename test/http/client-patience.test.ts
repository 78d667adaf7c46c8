/** How long the client waits for an answer before it gives up or tries again. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import { served } from '../harness/served.ts'

test('a claim waits for work as long as it asks to, whether or not it names a number of tasks', async t => {
  const { server, engine } = await served(t)
  const client = connect({ server: server.url, answerSeconds: 7 })
  const deadlines = t.mock.method(AbortSignal, 'timeout')
  for (const count of [{}, { claim: 1 }]) {
    await engine.enqueue('a', null)
    deadlines.mock.resetCalls()
    const claimed = await client.claims({ worker: 'sh', queues: ['a'], waitSeconds: 40, ...count })
    assert.equal(claimed.length, 1)
    assert.ok(deadlines.mock.calls.some(call => call.arguments[0] === 47_000))
  }
})

test('a heartbeat is sent again after 5 seconds without an answer', async t => {
  const { server } = await served(t)
  const client = connect({ server: server.url, answerSeconds: 7 })
  const deadlines = t.mock.method(AbortSignal, 'timeout')
  await client.sync({ worker: 'w', beats: [] })
  assert.ok(deadlines.mock.calls.some(call => call.arguments[0] === 5000))
})
