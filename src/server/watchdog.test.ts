import assert from 'node:assert/strict'
import { test } from 'node:test'
import { eventually } from '../../test/harness/eventually.ts'
import { served } from '../../test/harness/served.ts'

type Facts = Record<string, unknown>

/** Blocks the event loop like an endless computation. */
function blockTheLoop(seconds: number): void {
  const until = performance.now() + seconds * 1000
  while (performance.now() < until);
}

test('a blocked event loop is logged with what blocked it, counted, and told by /readyz', async t => {
  const logged: Facts[] = []
  const { engine, request } = await served(t, {
    engine: { log: (word, facts) => word === 'loop.blocked' && logged.push(facts) },
    server: { blockedSeconds: 0.3 },
  })
  const ready = async () => {
    const answer = await request('/readyz')
    return [answer.status, ((await answer.json()) as { code?: string }).code]
  }
  const end = engine.context.activities.begin('POST /v1/jobs')
  // Once it notices a block, the watching thread has started.
  const ours = ({ stack }: Facts) =>
    (stack as string[]).some(frame => /^blockTheLoop \(src\/server\/watchdog\.test\.[jt]s:\d+\)$/.test(frame))
  const block = await eventually('the block is logged, with the function that did it', async () => {
    if (!logged.some(ours)) blockTheLoop(1)
    return logged.find(ours)
  })
  end()
  assert.ok((block.seconds as number) >= 0.3, `${block.seconds}`)
  assert.deepEqual([block.during, block.level], [['POST /v1/jobs'], 'error'])
  assert.deepEqual(await ready(), [503, 'SERVER_BLOCKED'])
  const metrics = await (await request('/metrics')).text()
  assert.match(metrics, /^pawl_event_loop_blocked_seconds_count [1-9]/m)
})

test('an event loop that turns is not reported', async t => {
  const logged: string[] = []
  const { request } = await served(t, {
    engine: { log: word => logged.push(word) },
    server: { blockedSeconds: 5 },
  })
  assert.equal((await request('/readyz')).status, 200)
  assert.match(await (await request('/metrics')).text(), /^pawl_event_loop_blocked_seconds_count 0$/m)
  assert.deepEqual(logged, [])
})
