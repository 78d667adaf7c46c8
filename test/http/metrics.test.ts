import assert from 'node:assert/strict'
import { test } from 'node:test'
import { countEvents } from '../../src/babysitter/chores.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

test('Prometheus finds what happened to tasks, and how requests were answered', async t => {
  const run = await served(t)
  const { id } = await run.client.enqueue('a', 1)
  await run.request(`/v1/tasks/${id}`)
  await run.request('/v1/tasks/nobody')
  const figures = async () => {
    await countEvents.run(run.engine.context)
    const response = await run.request('/metrics')
    assert.equal(response.status, 200)
    assert.match(response.headers.get('content-type')!, /^text\/plain/)
    return response.text()
  }
  // Counters follow the feed, which waits for open transactions of other tests.
  const text = await eventually('the task is counted', async () => {
    const scraped = await figures()
    return /pawl_queued_total\{type="a"\} 1/.test(scraped) && scraped
  })
  assert.match(text, /pawl_http_request_seconds_count\{route="\/v1\/tasks\/:id",method="GET",status="200"\} 1/)
  assert.match(text, /pawl_http_request_seconds_count\{route="\/v1\/tasks\/:id",method="GET",status="404"\} 1/)
})

test('on a server with keys, figures are for those who may read', async t => {
  const run = await served(t)
  const [viewer, worker] = await Promise.all([
    run.engine.createKey({ name: 'v', role: 'viewer' }),
    run.engine.createKey({ name: 'w', role: 'worker' }),
  ])
  const statusFor = async (secret: string) =>
    (await run.request('/metrics', { headers: { authorization: `Bearer ${secret}` } })).status
  assert.deepEqual([await statusFor(viewer.secret), await statusFor(worker.secret)], [200, 403])
})
