/**
 * Requests that once kept a server busy for seconds or for good. Each is sent while `/healthz` is asked all the time. The
 * bound is processor time of one turn of the event loop: time on the clock says little on a busy machine, so it is only
 * printed.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { findInputs } from '../../src/babysitter/chores.ts'
import { takeListing } from '../../src/store/files/listings.ts'
import { openEvents } from '../harness/event-source.ts'
import { eventually } from '../harness/eventually.ts'
import { folder } from '../harness/files.ts'
import { healthyWhile } from '../harness/healthy-while.ts'
import { type Served, served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
const longestTurn = 1000

async function attack<Answer>(t: TestContext, { server }: Served, send: () => Promise<Answer>): Promise<Answer> {
  const { answer, longestTurnMs, checks, slowestCheckMs } = await healthyWhile(server, send)
  t.diagnostic(`longest turn ${longestTurnMs} ms; ${checks} health checks, the slowest ${slowestCheckMs} ms`)
  assert.ok(longestTurnMs < longestTurn, `a turn took ${longestTurnMs} ms`)
  return answer
}

test('a glob that backtracks for ever elsewhere blocks nobody, also when a process takes it up after another died', {
  ...limits,
}, async t => {
  const run = await served(t)
  const inbox = await folder(t)
  await inbox.write({ ['a'.repeat(200)]: '' })
  const stage = { name: 's', run: { command: ['true'] }, inputs: { doc: { uri: inbox.uri, glob: '/*a*a*a*a*a*a*b' } } }
  const job = await attack(t, run, async () => {
    const answer = await run.request('/v1/jobs', { method: 'POST', json: { name: 'globs', stages: [stage] } })
    // The first process that takes it dies.
    assert.ok((await takeListing(run.sql)) !== undefined)
    await run.advance(61)
    await findInputs.run(run.engine.context)
    return (await answer.json()) as { id: string }
  })
  const { state, progress } = await run.engine.job(job.id)
  assert.deepEqual([state, progress.total], ['succeeded', 0])
})

test(
  'a job with 60 costly conditions is accepted, and they are evaluated, while others are answered',
  limits,
  async t => {
    const run = await served(t)
    const input = Array.from({ length: 300 }, (_, index) => index)
    const when = 'input.all(x, input.all(y, x + y >= 0))'
    const stages = Array.from({ length: 60 }, (_, index) => ({ name: `s${index}`, task: 't', needs: [], when }))
    const answer = await attack(t, run, async () => {
      const answer = await run.request('/v1/jobs', { method: 'POST', json: { name: 'costly', input, stages } })
      const { id } = (await answer.clone().json()) as { id: string }
      const isOpen = await eventually('some are evaluated', async () => {
        const { stages } = await run.engine.job(id)
        return stages.filter(({ state }) => state !== 'created').length >= 3
      })
      assert.ok(isOpen)
      return answer
    })
    assert.equal(answer.status, 201)
  },
)

test('a job with 2,000 stages is accepted while others are answered', limits, async t => {
  const run = await served(t)
  const stages = Array.from({ length: 2000 }, (_, index) => ({ name: `s${index}`, task: 't', needs: [] }))
  const answer = await attack(t, run, () => run.request('/v1/jobs', { method: 'POST', json: { name: 'many', stages } }))
  assert.equal(answer.status, 201)
})

test('5,000 beats of one task are answered while others are', limits, async t => {
  const run = await served(t)
  await run.engine.enqueue('a', 1)
  const session = crypto.randomUUID()
  const { claimed } = await run.engine.sync({ worker: 'w', session, queues: ['a'], claim: 1 })
  const { id, epoch } = claimed[0]!
  const beats = Array.from({ length: 5000 }, () => ({ id, epoch }))
  const answer = await attack(t, run, () =>
    run.request('/v1/workers/w/sync', { method: 'POST', json: { session, beats } }),
  )
  assert.equal(answer.status, 200)
})

test('an option name of megabytes is refused in few words while others are answered', limits, async t => {
  const run = await served(t)
  const answer = await attack(t, run, () =>
    run.request('/v1/jobs', { method: 'POST', json: { ['x'.repeat(4_000_000)]: 1 } }),
  )
  const text = await answer.text()
  assert.deepEqual([answer.status, text.length < 10_000], [422, true])
})

test('a task with 20,000 outputs is reported, ends and is listed while others are answered', limits, async t => {
  const run = await served(t)
  await run.engine.enqueue('a', 1)
  const { claimed } = await run.engine.sync({ worker: 'w', queues: ['a'], claim: 1 })
  const { id, epoch } = claimed[0]!
  const files = Array.from({ length: 20_000 }, (_, n) => ({ name: `f${n}`, uri: `s3://bucket/out/f${n}` }))
  const uploaded = { state: 'uploaded', size: 1, sha256: 'a'.repeat(64) }
  const post = (path: string, json: object) => run.request(path, { method: 'POST', json })
  const answers = await attack(t, run, async () => {
    const all: Response[] = []
    for (const artifact of [{ state: 'registered' }, uploaded]) {
      for (let at = 0; at < files.length; at += 5000) {
        const artifacts = files.slice(at, at + 5000).map(file => ({ id, epoch, ...file, ...artifact }))
        all.push(await post('/v1/workers/w/sync', { artifacts }))
      }
    }
    // The answer lists all files that the attempt has registered.
    all.push(await post(`/v1/tasks/${id}/artifacts`, { epoch, artifacts: [{ ...files[0], ...uploaded }] }))
    all.push(await post(`/v1/tasks/${id}/succeed`, { epoch }))
    all.push(await run.request(`/v1/tasks/${id}/artifacts?limit=1000`))
    return all
  })
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  const registered = (await answers.at(-3)!.json()) as { state: string }[]
  const { items } = (await answers.at(-1)!.json()) as { items: { state: string }[] }
  assert.deepEqual([registered.length, items.length], [files.length, 1000])
})

test('1,000 clients that open a stream of events and do not read hold up nobody', limits, async t => {
  const streams = 1000
  const run = await served(t, { server: { maxStreams: streams + 1 } })
  const stalled: Socket[] = []
  t.after(() => {
    for (const socket of stalled) socket.destroy()
  })
  const { port } = new URL(run.server.url)
  const stall = async () => {
    const socket = connect(Number(port), '127.0.0.1').pause()
    stalled.push(socket)
    socket.write('GET /v1/events HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n')
    // The answer has begun, and nobody reads it.
    await once(socket, 'readable')
  }
  const seen = await attack(t, run, async () => {
    for (let n = 0; n < streams; n += 100) await Promise.all(Array.from({ length: 100 }, stall))
    const source = await openEvents(run.server.url)
    // All of them are open, so another one is refused.
    const another = await run.request('/v1/events', { headers: { accept: 'text/event-stream' } })
    assert.equal(another.status, 503)
    for (let n = 0; n < 10; n++) await run.engine.enqueueMany(Array.from({ length: 10 }, () => ({ type: 't' })))
    const all = await eventually(
      'one who reads sees everything',
      () => source.events.length === 100 && source.events,
      120,
    )
    await source.cut()
    return all.length
  })
  assert.deepEqual([seen, stalled.filter(({ destroyed }) => !destroyed).length], [100, streams])
})

test('figures and lists of 50,000 queues are short, and are answered while others are', limits, async t => {
  const run = await served(t)
  for (let n = 0; n < 50_000; n += 10_000) {
    await run.engine.enqueueMany(Array.from({ length: 10_000 }, (_, at) => ({ type: 't', queue: `queue-${n + at}` })))
  }
  const paths = [
    '/v1/queues',
    '/v1/queues?limit=1000',
    '/v1/stats?limit=1000',
    '/metrics',
    '/dialects/jobnik/service-metrics',
    '/dialects/marie/api/capacity',
    '/dialects/marie/api/debug',
  ]
  const sizes = await attack(t, run, async () => {
    const found: Record<string, number> = {}
    for (const path of paths) {
      const answer = await run.request(path)
      assert.equal(answer.status, 200, path)
      found[path] = (await answer.text()).length
    }
    return found
  })
  for (const [path, size] of Object.entries(sizes)) assert.ok(size < 300_000, `${path} has ${size} characters`)
})
