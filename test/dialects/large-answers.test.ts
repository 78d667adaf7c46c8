/** Answers of dialects about jobs that are much larger than those of their own clients. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { run as operations } from '../../src/engine/operations.ts'
import { eventually } from '../harness/eventually.ts'
import { healthyWhile } from '../harness/healthy-while.ts'
import { type Served, served } from '../harness/served.ts'
import { type Job, pipelineClient, type StreamEvent } from './pipeline-client.ts'

const limits = { timeout: 600_000 }
const longestTurn = 1000

/** A job whose stages were all skipped. */
async function skippedStages({ engine }: Served, count: number, more: object = {}): Promise<string> {
  const stages = Array.from({ length: count }, (_, n) => ({
    name: `s${n}`,
    task: 't',
    needs: [],
    when: 'false',
    ...more,
  }))
  const { id } = await engine.submit({ name: 'wide', stages })
  const hasEnded = async () => (await engine.job(id)).endedAt !== null
  assert.ok(await eventually('all stages are skipped', hasEnded, 300))
  return id
}

/** A job of one task per stage, each with these metrics. The stages end in their order, or in reverse. */
async function measuredStages(
  { engine, sync }: Served,
  metrics: readonly object[],
  isReversed = false,
): Promise<string> {
  const stages = metrics.map((_, n) => ({ name: `s${n}`, task: 'measured', needs: [], payloads: [n] }))
  const { id } = await engine.submit({ name: 'measured', stages })
  const { claimed } = await sync({ worker: 'w', queues: ['measured'], claim: metrics.length })
  const settled = claimed.map(({ id, epoch, payload }) => {
    return { id, epoch, outcome: 'succeeded' as const, output: { metrics: metrics[payload as number] } }
  })
  if (isReversed) settled.reverse()
  for (const one of settled) await sync({ worker: 'w', settled: [one] })
  return id
}

test('a stream names each of many stages once, and in each event those that ended last', limits, async t => {
  const run = await served(t)
  const id = await skippedStages(run, 150)
  const events: StreamEvent[] = []
  for await (const one of pipelineClient(run.server.url).follow(`/dialects/pipeline/v1/pipeline/jobs/${id}/stream`)) {
    events.push(one)
  }
  const progressed = events.filter(({ event }) => event === 'stage_progress')
  const sizes = progressed.map(({ data }) => Object.keys(data.progress as object).length)
  assert.deepEqual(new Set(progressed.map(({ data }) => data.stage)).size, 150)
  assert.deepEqual([sizes[0], sizes[49], Math.max(...sizes)], [1, 50, 100])
  for (const { data } of progressed) assert.ok(Object.hasOwn(data.progress as object, data.stage as string))
  const end = events.at(-1)!
  assert.deepEqual([end.event, Object.keys(end.data.stage_progress as object).length], ['job_complete', 150])
})

test('a client that reconnects to a stream is told of the same stages as one that did not', limits, async t => {
  const run = await served(t)
  const id = await measuredStages(run, new Array(102).fill({}), true)
  const eventsAfter = async (last?: string) => {
    const events: StreamEvent[] = []
    const url = `/dialects/pipeline/v1/pipeline/jobs/${id}/stream`
    for await (const one of pipelineClient(run.server.url).follow(url, last)) events.push(one)
    return events.filter(({ event }) => event === 'stage_progress')
  }
  const events = await eventsAfter()
  const after = events.length - 1
  const again = await eventsAfter(events[after - 1]!.id)
  assert.deepEqual(again, events.slice(after))
})

test('a stream of a job with more than 1,000 stages is refused, and others are answered meanwhile', limits, async t => {
  const run = await served(t)
  const id = await skippedStages(run, 1001)
  const { answer, longestTurnMs } = await healthyWhile(run.server, async () => {
    const response = await run.request(`/dialects/pipeline/v1/pipeline/jobs/${id}/stream`)
    return { status: response.status, text: await response.text() }
  })
  assert.equal(answer.status, 400)
  assert.match(answer.text, /at most 1000 stages/)
  assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
})

test(
  'the progress of a job shows the metrics of its latest tasks up to a limit, and counts for others',
  limits,
  async t => {
    const run = await served(t)
    const metrics = Array.from({ length: 7 }, () => ({ rows: 1, long: randomBytes(600_000).toString('base64') }))
    const id = await measuredStages(run, metrics)
    const response = await run.request(`/dialects/pipeline/v1/pipeline/jobs/${id}`)
    const text = await response.text()
    const { stage_progress } = JSON.parse(text) as Job
    const measured = Object.values(stage_progress).filter(({ metrics }) => metrics.rows === 1)
    assert.deepEqual([Object.keys(stage_progress).length, measured.length], [7, 5])
    assert.deepEqual(stage_progress.s0?.metrics, { total: 1, good: 1, bad: 0, partial: 0, skipped: 0 })
    assert.ok(text.length < 5_000_000, `${text.length} characters`)
  },
)

test('a list of jobs with very long results is refused instead of being collected in memory', limits, async t => {
  const run = await served(t)
  const metrics = Array.from({ length: 4 }, () => ({ long: randomBytes(720_000).toString('base64') }))
  for (let n = 0; n < 18; n++) await measuredStages(run, metrics)
  const list = async (limit: number) => {
    const response = await run.request(`/dialects/pipeline/v1/pipeline/jobs?limit=${limit}`)
    return { status: response.status, text: await response.text() }
  }
  assert.equal((await list(10)).status, 200)
  const { status, text } = await list(18)
  assert.equal(status, 400)
  assert.match(text, /the answer would have over 64 MiB/)
})

/** A job with one long task in each of its stages. */
async function longTasks({ engine }: Served, stages: number): Promise<string> {
  const payload = randomBytes(720_000).toString('base64')
  const { id } = await engine.submit({
    name: 'long',
    stages: Array.from({ length: stages }, (_, n) => ({
      name: `s${n}`,
      task: 't',
      needs: [],
      payloads: [{ payload }],
    })),
  })
  return id
}

test('a list of Jobnik stages with their tasks is limited as a whole, not stage by stage', limits, async t => {
  const run = await served(t)
  const few = await longTasks(run, 8)
  const shown = async (query: string) => {
    const response = await run.request(`/dialects/jobnik/v1/stages?should_return_tasks=true${query}`)
    return { status: response.status, text: await response.text() }
  }
  const { status, text } = await shown(`&job_id=${few}`)
  const stages = JSON.parse(text) as { tasks: unknown[] }[]
  assert.deepEqual([status, stages.map(({ tasks }) => tasks.length)], [200, new Array(8).fill(1)])
  for (let n = 0; n < 8; n++) await longTasks(run, 8)
  const refused = await shown('')
  assert.equal(refused.status, 400)
  assert.match(refused.text, /the answer would have over 64 MiB/)
})

test('stages without tasks cost Jobnik’s lists no query of their own', limits, async t => {
  const run = await served(t)
  const id = await skippedStages(run, 100, { payloads: [] })
  const reading = t.mock.method(operations, 'tasks')
  const response = await run.request(`/dialects/jobnik/v1/jobs/${id}/stages?should_return_tasks=true`)
  const stages = (await response.json()) as { tasks: unknown[] }[]
  assert.deepEqual([stages.length, stages.flatMap(({ tasks }) => tasks).length], [100, 0])
  assert.equal(reading.mock.callCount(), 0)
})
