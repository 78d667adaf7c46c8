/** A worker over HTTP neither loses nor duplicates a result, whatever the network and the server do. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import { Problem } from '../../src/kernel/problem.ts'
import { type Server, startServer } from '../../src/server/server.ts'
import { defineTask } from '../../src/worker/define-task.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { badNetwork } from '../harness/bad-network.ts'
import { dice } from '../harness/dice.ts'
import { eventually } from '../harness/eventually.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
const count = 150

/** A handler that counts its calls. */
function countingTask() {
  const calls = new Map<number, number>()
  const task = defineTask({
    type: 'double',
    leaseSeconds: 600,
    handler: async (payload: unknown) => {
      const number = payload as number
      calls.set(number, (calls.get(number) ?? 0) + 1)
      return number * 2
    },
  })
  return { task, calls }
}

/** Every task ran once, under its first lease, and has its own result. */
async function assertDoneOnce({ engine }: Pick<Fresh, 'engine'>, calls: ReadonlyMap<number, number>): Promise<void> {
  const { items } = await engine.tasks({ limit: 1000 })
  assert.equal(items.length, count)
  for (const { payload, output, state, epoch } of items) {
    assert.deepEqual([state, output, epoch], ['succeeded', (payload as number) * 2, 1])
    assert.equal(calls.get(payload as number), 1)
  }
}

async function allDone({ engine }: Pick<Fresh, 'engine'>): Promise<boolean> {
  return (await engine.tasks({ state: 'succeeded', limit: 1000 })).items.length === count
}

const numbers = Array.from({ length: count }, (_, index) => ({ type: 'double', payload: index }))

for (const [name, weather, seed] of [
  ['a network that loses every fifth message', { loses: 0.2, delayMs: 0 }, 11],
  ['a slow network that loses some messages', { loses: 0.05, delayMs: 40 }, 12],
] as const) {
  test(`a worker behind ${name} does every task once`, limits, async t => {
    const run = await served(t)
    const { task, calls } = countingTask()
    const network = await badNetwork(t, () => run.server.url, dice(seed), weather)
    const client = connect({ server: network.url, answerSeconds: 5 })
    const worker = startWorker(client, [task], { concurrency: 3, buffer: 3, waitSeconds: 1 })
    t.after(() => worker.stop())
    for (let from = 0; from < count; from += 50) await client.enqueueMany(numbers.slice(from, from + 50))
    await eventually('all is done', () => allDone(run))
    await eventually('both kinds were lost', () => network.lost.requests > 0 && network.lost.answers > 0)
    network.mend()
    await worker.stop()
    await assertDoneOnce(run, calls)
  })
}

test('a script that claims one task after the other behind a bad network does each once', limits, async t => {
  const run = await served(t)
  const calls = new Map<number, number>()
  const network = await badNetwork(t, () => run.server.url, dice(13), { loses: 0.05, delayMs: 0 })
  const client = connect({ server: network.url, answerSeconds: 5 })
  await run.engine.enqueueMany(numbers)
  for (;;) {
    const [task] = await client.claims({ worker: 'sh', queues: ['double'] })
    if (task === undefined) break
    const number = task.payload as number
    calls.set(number, (calls.get(number) ?? 0) + 1)
    await client.succeed(task.id, task.epoch, { output: number * 2 })
  }
  assert.ok(network.lost.requests > 0 && network.lost.answers > 0, 'both kinds were lost')
  await assertDoneOnce(run, calls)
})

test('a worker whose server is restarted again and again does every task once', limits, async t => {
  const run = await fresh(t)
  let server: Server = await startServer(run.engine, { port: 0 })
  const port = Number(new URL(server.url).port)
  t.after(() => server.close())
  const { task, calls } = countingTask()
  const worker = startWorker(connect({ server: server.url }), [task], { concurrency: 2, buffer: 2, waitSeconds: 20 })
  t.after(() => worker.stop())
  for (let from = 0; from < count; from += 50) {
    await run.engine.enqueueMany(numbers.slice(from, from + 50))
    await eventually('some are done', () => calls.size > from + 10)
    await server.close()
    server = await startServer(run.engine, { port })
  }
  await eventually('all is done', () => allDone(run))
  await worker.stop()
  await assertDoneOnce(run, calls)
})

test('a request whose answer was lost is sent again and done once', limits, async t => {
  const run = await served(t)
  const network = await badNetwork(t, () => run.server.url, dice(5), { loses: 0.3, delayMs: 0 })
  const client = connect({ server: network.url })
  for (let index = 0; index < 30; index++) await client.enqueue('a', index)
  const { items } = await client.tasks({ limit: 1000 })
  assert.deepEqual(
    items.map(({ payload }) => payload).sort((a, b) => Number(a) - Number(b)),
    numbers.slice(0, 30).map(({ payload }) => payload),
  )
  const job = await client.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  await client.cancelJob(job.id)
  await client.deleteJob(job.id)
  assert.ok(network.lost.answers > 0)
})

test('a client gives up on a server that stays away, and says which', limits, async () => {
  const client = connect({ server: 'http://127.0.0.1:1', patienceSeconds: 0.3 })
  await assert.rejects(client.jobs(), (error: unknown) => {
    assert.ok(error instanceof Problem && error.code === 'SERVER_UNREACHABLE')
    assert.equal(error.details.server, 'http://127.0.0.1:1')
    return true
  })
})

test('a server may stand behind a path of another', limits, async t => {
  const run = await served(t)
  const paths: string[] = []
  const { fetch } = globalThis
  t.mock.method(globalThis, 'fetch', (to: URL, init: RequestInit) => {
    paths.push(to.pathname)
    return fetch(new URL(to.href.replace('/pawl/', '/')), init)
  })
  await connect({ server: `${run.server.url}/pawl/` }).jobs()
  assert.deepEqual(paths, ['/pawl/v1/jobs'])
})
