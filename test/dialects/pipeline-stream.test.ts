/** The stream of the async pipeline: its events, and clients that connect late, read slowly or disconnect. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as openSocket } from 'node:net'
import { test } from 'node:test'
import { run as operations } from '../../src/engine/operations.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { dice } from '../harness/dice.ts'
import { eventually } from '../harness/eventually.ts'
import type { StreamEvent } from './pipeline-client.ts'
import { type Rig, type Run, rig, stageNames } from './pipeline-rig.ts'

const bounded = { timeout: 600_000 }
const all = { enable_evaluation: true, enable_auto_optimize: true }

const inShort = ({ event, data }: StreamEvent) => `${event} ${data.stage ?? data.status ?? data.error}`
const wholeStory = [
  ...stageNames.flatMap(name => [`stage_start ${name}`, `stage_progress ${name}`]),
  'job_complete completed',
]

async function eventsOf({ api }: Rig, run: Run, last?: string): Promise<StreamEvent[]> {
  const received: StreamEvent[] = []
  for await (const one of api.follow(run.started.stream_url, last)) received.push(one)
  return received
}

/** Counts the open streams. */
function countFollowing(t: Parameters<typeof rig>[0], { engine }: Rig) {
  const { follow } = engine
  let open = 0
  t.mock.method(engine, 'follow', async function* (...args: Parameters<typeof follow>) {
    open += 1
    try {
      yield* follow(...args)
    } finally {
      open -= 1
    }
  })
  return () => open
}

test('stream', bounded, async t => {
  const r = await rig(t, { server: { heartbeatSeconds: 0.2 } })
  const following = countFollowing(t, r)
  r.work()

  await t.test(
    'tells each stage when it starts and what it came to, then the end of the job, and is over',
    async () => {
      const run = await r.run(all, { ingest: 'hold' })
      const listening = eventsOf(r, run)
      await run.held('ingest')
      run.letGo('ingest')
      const received = await listening
      assert.deepEqual(received.map(inShort), wholeStory)
      const [started, progressed] = received as [StreamEvent, StreamEvent]
      const job = await run.ended()
      const { trace_id } = run.started
      assert.deepEqual(Object.keys(started.data).sort(), ['finished_at', 'stage', 'started_at', 'trace_id'])
      assert.deepEqual(progressed.data.progress, { ingest: job.stage_progress.ingest })
      assert.ok(received.every(({ data }) => data.trace_id === trace_id))
      const { status, stage_progress, errors, started_at, finished_at } = job
      assert.deepEqual(received.at(-1)?.data, { status, stage_progress, errors, started_at, finished_at, trace_id })
    },
  )

  await t.test('a client that comes late is told all that has happened, in the same order', async () => {
    const run = await r.run(all)
    await run.ended()
    assert.deepEqual((await eventsOf(r, run)).map(inShort), wholeStory)
  })

  await t.test(
    'a stage that was skipped has no start, and one that failed says why in what is told of it',
    async () => {
      const run = await r.run({}, { brief: 'throw' })
      const received = await eventsOf(r, run)
      assert.deepEqual(received.slice(-4).map(inShort), [
        'stage_progress brief',
        'stage_progress evaluation',
        'stage_progress optimization',
        'job_complete partial',
      ])
      assert.deepEqual(received.at(-1)?.data.errors, [{ stage: 'brief', message: 'brief broke' }])
    },
  )

  await t.test('cut anywhere and resumed by the last id, it misses no event and repeats none', async () => {
    const throwing = dice(11)
    for (let round = 0; round < 5; round++) {
      const run = await r.run(all, { classify: 'hold', brief: 'hold' })
      const seen: StreamEvent[] = []
      while (seen.at(-1)?.event !== 'job_complete') {
        const over = new AbortController()
        const most = 1 + Math.floor(throwing.throw() * 3)
        const mine: StreamEvent[] = []
        const next = r.api.follow(run.started.stream_url, seen.at(-1)?.id, over.signal)
        // The holding handlers continue while no client listens.
        if (seen.length > 1) run.letGo('classify')
        if (seen.length > 4) run.letGo('brief')
        for await (const one of next) if (mine.push(one) === most) break
        over.abort()
        seen.push(...mine)
      }
      assert.deepEqual(seen.map(inShort), wholeStory)
    }
  })

  await t.test(
    'a client that has seen the end is told to stay away, and one with an id of nobody’s hears all',
    async () => {
      const run = await r.run()
      await run.ended()
      const received = await eventsOf(r, run)
      const again = await r.request(run.started.stream_url, { headers: { 'last-event-id': received.at(-1)!.id } })
      assert.deepEqual([again.status, await again.text()], [204, ''])
      for (const id of ['x', '1:99999x99999', '-1:2', `0:${'2.'.repeat(3)}`]) {
        assert.deepEqual(await eventsOf(r, run, id), received, id)
      }
    },
  )

  await t.test(
    'a job that is done again after its end is told again from there, to whoever has seen that end',
    async () => {
      const run = await r.run({}, { brief: 'throw' })
      const received = await eventsOf(r, run)
      await r.engine.retryJob(run.id)
      const again = await eventsOf(r, run, received.at(-1)!.id)
      assert.deepEqual(again.map(inShort), [
        'stage_start brief',
        'stage_progress brief',
        'stage_progress evaluation',
        'stage_progress optimization',
        'job_complete partial',
      ])
    },
  )

  await t.test('a job that nobody knows is told as an error event; so is one that is deleted meanwhile', async () => {
    const stranger = '00000000-0000-7000-8000-000000000000'
    const received: StreamEvent[] = []
    for await (const one of r.api.follow(`/dialects/pipeline/v1/pipeline/jobs/${stranger}/stream`)) received.push(one)
    assert.deepEqual(received.map(inShort), ['error Job not found'])
    const { body } = await r.api.start({ pipeline: 'default', doing: { ingest: 'hold' }, token: 'deleted' })
    const events = r.api.follow(body.stream_url)
    assert.equal(inShort((await events.next()).value as StreamEvent), 'stage_start ingest')
    const gone = t.mock.method(operations, 'job', async () => {
      throw new Problem('JOB_NOT_FOUND')
    })
    assert.equal(inShort((await events.next()).value as StreamEvent), 'error Job not found')
    assert.equal((await events.next()).done, true)
    gone.mock.restore()
    await r.api.cancel(body.job_id)
  })

  await t.test('where nothing happens it says that it is still there', async () => {
    const run = await r.run({}, { ingest: 'hold' })
    const over = new AbortController()
    const response = await r.request(run.started.stream_url, { signal: over.signal })
    assert.equal(response.headers.get('content-type'), 'text/event-stream')
    let text = ''
    for await (const part of response.body!) {
      text += Buffer.from(part as Uint8Array)
      if (text.split(': still here').length > 3) break
    }
    over.abort()
    run.letGo('ingest')
    await run.ended()
  })

  await t.test(
    'a client that goes away leaves nothing behind, nor does one that asks only for the headers',
    async () => {
      await eventually('all streams before are over', () => following() === 0)
      const run = await r.run({}, { ingest: 'hold' })
      const clients = Array.from({ length: 5 }, () => new AbortController())
      for (const { signal } of clients) void r.request(run.started.stream_url, { signal }).catch(() => {})
      await eventually('they listen', () => following() === 5)
      for (const client of clients) client.abort()
      await eventually('nobody is followed for them', () => following() === 0)
      assert.equal((await r.request(run.started.stream_url, { method: 'HEAD' })).status, 200)
      await eventually('nobody is followed for the headers', () => following() === 0)
      run.letGo('ingest')
      await run.ended()
    },
  )

  await t.test(
    'a client that reads nothing for a while gets all in the end, and others are served meanwhile',
    async () => {
      const run = await r.run(all, { ingest: 'hold' })
      const { port, hostname } = new URL(r.server.url)
      const socket = openSocket(Number(port), hostname)
      await once(socket, 'connect')
      socket.pause()
      socket.write(`GET ${run.started.stream_url} HTTP/1.1\r\nhost: ${hostname}:${port}\r\nconnection: close\r\n\r\n`)
      run.letGo('ingest')
      assert.equal((await run.ended()).status, 'completed')
      let text = ''
      socket.on('data', part => (text += part))
      socket.resume()
      await once(socket, 'close')
      assert.deepEqual([...text.matchAll(/^event: (\w+)/gm)].length, wholeStory.length)
    },
  )

  await t.test('a store that cannot be read cuts the stream, and the client goes on where it was', async () => {
    const run = await r.run(all, { classify: 'hold' })
    const events = r.api.follow(run.started.stream_url)
    const seen: StreamEvent[] = []
    while (seen.at(-1)?.data.stage !== 'classify') seen.push((await events.next()).value as StreamEvent)
    const away = t.mock.method(operations, 'job', async () => {
      throw new Problem('STORE_UNAVAILABLE')
    })
    await assert.rejects(events.next())
    assert.equal((await r.request(run.started.stream_url)).status, 503)
    away.mock.restore()
    run.letGo('classify')
    seen.push(...(await eventsOf(r, run, seen.at(-1)!.id)))
    assert.deepEqual(seen.map(inShort), wholeStory)
  })
})

test('a server that closes ends its streams in order, and does not wait for the jobs', bounded, async t => {
  const r = await rig(t)
  r.work()
  const run = await r.run({}, { ingest: 'hold' })
  const events = r.api.follow(run.started.stream_url)
  assert.equal(inShort((await events.next()).value as StreamEvent), 'stage_start ingest')
  await r.server.close()
  assert.equal((await events.next()).done, true)
  run.letGo('ingest')
})
