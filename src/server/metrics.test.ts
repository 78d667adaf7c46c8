import assert from 'node:assert/strict'
import { test } from 'node:test'
import { database, needsServer } from '../../test/harness/databases.ts'
import { eventually } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { taskIn } from '../../test/harness/task-in.ts'
import { countEvents } from '../babysitter/chores.ts'
import { rescue } from '../babysitter/rescue.ts'
import { Problem } from '../kernel/problem.ts'
import { type Metrics, makeMetrics } from './metrics.ts'

/** The value of a metric, by its name and labels as written. */
async function figureOf(metrics: Metrics, figure: string): Promise<number | undefined> {
  const line = (await metrics.text()).split('\n').find(text => text.startsWith(`${figure} `))
  return line === undefined ? undefined : Number(line.slice(figure.length + 1))
}

test('what the state machine document names is told, and every server on the database tells the same', async t => {
  const run = await fresh(t)
  const { engine } = run
  await taskIn(run, 'dead_lettered', { queue: 'q' })
  const retried = await taskIn(run, 'running', { queue: 'q', retry: { delaySeconds: 0 } })
  const lost = await taskIn(run, 'running', { queue: 'q' })
  await taskIn(run, 'queued', { queue: 'q' })
  await run.sync({ beats: [lost, retried].map(({ id, epoch }) => ({ id, epoch })) })
  await run.sync({ settled: [{ id: retried.id, epoch: 1, outcome: 'failed', error: { message: 'no' } }] })
  await run.advance(1000)
  await rescue({ beginsBlind: false }).run(engine.context)
  await taskIn(run, 'succeeded', { queue: 'other' })
  const [here, there] = [makeMetrics(engine), makeMetrics(engine)]
  const text = await eventually('all is counted', async () => {
    await countEvents.run(engine.context)
    const text = await here.text()
    return text.includes('pawl_ended_total{type="work",state="succeeded"} 1') && text
  })
  const expected = {
    'pawl_queued_total{type="work"}': 5,
    'pawl_claims_total{type="work"}': 4,
    'pawl_starts_total{type="work"}': 4,
    'pawl_retries_total{type="work"}': 2,
    'pawl_failures_total{type="work"}': 2,
    'pawl_lease_expiries_total{type="work"}': 1,
    'pawl_ended_total{type="work",state="dead_lettered"}': 1,
    pawl_dlq_count: 1,
    pawl_lease_renewals_total: 2,
    pawl_claim_conflicts_total: 0,
    'pawl_queue_due{queue="q"}': 3,
    'pawl_queue_held{queue="q"}': 0,
    'pawl_task_seconds_count{type="work",phase="queue"}': 4,
    'pawl_task_seconds_count{type="work",phase="run"}': 4,
    'pawl_task_seconds_bucket{type="work",phase="run",le="+Inf"}': 4,
    'pawl_task_seconds_bucket{type="work",phase="run",le="0.001"}': 2,
    pawl_store_up: 1,
  }
  const figures = await Promise.all(Object.keys(expected).map(async figure => [figure, await figureOf(there, figure)]))
  assert.deepEqual(Object.fromEntries(figures), expected)
  assert.ok((await figureOf(here, 'pawl_queue_oldest_due_seconds{queue="q"}'))! >= 1000)
  const buckets = [...text.matchAll(/phase="run",le="[^"]+"\} (\d+)/g)].map(([, n]) => Number(n))
  assert.deepEqual(
    buckets,
    [...buckets].sort((one, other) => one - other),
  )
})

test('a counter never goes back, however often it is read', async t => {
  const run = await fresh(t)
  const metrics = makeMetrics(run.engine)
  await taskIn(run, 'succeeded')
  await eventually('it is counted', async () => {
    await countEvents.run(run.engine.context)
    return (await figureOf(metrics, 'pawl_claims_total{type="work"}')) === 1
  })
  assert.equal(await figureOf(metrics, 'pawl_claims_total{type="work"}'), 1)
})

test('requests are told by their route, method and status', async t => {
  const { engine } = await fresh(t)
  const metrics = makeMetrics(engine)
  metrics.onRequest('/v1/tasks/:id', 'GET', 200, 0.002)
  metrics.onRequest('/v1/tasks/:id', 'GET', 200, 3)
  metrics.onRequest('/v1/tasks/:id', 'GET', 404, 0.002)
  const labels = 'route="/v1/tasks/:id",method="GET"'
  assert.equal(await figureOf(metrics, `pawl_http_request_seconds_count{${labels},status="200"}`), 2)
  assert.equal(await figureOf(metrics, `pawl_http_request_seconds_count{${labels},status="404"}`), 1)
  const other = makeMetrics(engine)
  assert.equal(await figureOf(other, `pawl_http_request_seconds_count{${labels},status="200"}`), undefined)
})

test('the store’s figures: its connections, and how long statements take', needsServer(), async t => {
  const { engine } = await fresh(t, { connections: 3 })
  const metrics = makeMetrics(engine)
  await engine.transaction(async () => {
    assert.ok((await figureOf(metrics, 'pawl_store_connections{state="inUse"}'))! >= 1)
  })
  assert.equal(await figureOf(metrics, 'pawl_store_connections_max'), 3)
  const before = (await figureOf(metrics, 'pawl_statement_seconds_count'))!
  await engine.queues()
  assert.ok((await figureOf(metrics, 'pawl_statement_seconds_count'))! > before)
  assert.ok((await figureOf(metrics, 'pawl_statement_seconds_sum'))! > 0)
})

test('while the store is away, what this process knows is told, and nothing old', async t => {
  const { engine } = await fresh(t)
  await engine.enqueue('work', null)
  let isAway = false
  const totals = async () => {
    if (isAway) throw new Problem('STORE_UNAVAILABLE')
    return engine.internals.totals()
  }
  const metrics = makeMetrics({ internals: { totals }, context: engine.context })
  assert.equal(await figureOf(metrics, 'pawl_queue_due{queue="work"}'), 1)
  isAway = true
  assert.equal(await figureOf(metrics, 'pawl_store_up'), 0)
  assert.equal(await figureOf(metrics, 'pawl_queue_due{queue="work"}'), undefined)
  assert.equal(await figureOf(metrics, 'pawl_dlq_count'), undefined)
  assert.equal(await figureOf(metrics, 'pawl_store_connections_max'), database() === 'embedded' ? 1 : 4)
  isAway = false
  assert.equal(await figureOf(metrics, 'pawl_store_up'), 1)
})

test('many who read at once cost the store one question', async t => {
  const { engine } = await fresh(t)
  let asked = 0
  const totals = () => {
    asked += 1
    return engine.internals.totals()
  }
  const metrics = makeMetrics({ internals: { totals }, context: engine.context })
  await Promise.all(Array.from({ length: 20 }, () => metrics.text()))
  assert.equal(asked, 1)
  await metrics.text()
  assert.equal(asked, 2)
})
