/** Results over HTTP: the server answers when the task or job has ended. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TaskFailed } from '../../src/client/index.ts'
import type { TaskView } from '../../src/protocol/tasks/tasks.ts'
import { defineTask, GiveUp, startWorker } from '../../src/worker/index.ts'
import { served } from '../harness/served.ts'

const limits = { timeout: 600_000 }
const hurried = { drainSeconds: 2, waitSeconds: 0.5 }
const half = defineTask({
  type: 'half',
  handler: async (n: number) => {
    if (n % 2 === 1) throw new GiveUp(`${n} is odd`)
    return n / 2
  },
})

test('a client gets the output of a task, and its failure as an error', limits, async t => {
  const { client } = await served(t)
  await using _worker = startWorker(client, [half], hurried)
  assert.equal(await (await client.enqueue(half, 8)).result(), 4)
  assert.equal(await (await client.enqueue(half, 6)).result({ timeoutSeconds: 12.3456 }), 3)
  await assert.rejects((await client.enqueue(half, 7)).result(), (error: TaskFailed) => {
    assert.ok(error instanceof TaskFailed)
    assert.equal((error.cause as Error).message, '7 is odd')
    return true
  })
  const job = await client.submit({ name: 'halves', stages: [{ name: 'all', task: 'half', payloads: [2, 4] }] })
  assert.equal((await job.result()).state, 'succeeded')
})

test('a read with waitSeconds is answered when the task has ended', limits, async t => {
  const { client, engine, request, sync } = await served(t)
  const { id } = await engine.enqueue('half', 8)
  const answer = request(`/v1/tasks/${id}?waitSeconds=60`)
  const { claimed } = await sync({ queues: ['half'], claim: 1 })
  await client.succeed(id, claimed[0]!.epoch, { output: 4 })
  const task = (await (await answer).json()) as TaskView
  assert.deepEqual([task.state, task.output], ['succeeded', 4])
})

test('a read with waitSeconds is answered with the state when its time is over', limits, async t => {
  const { engine, request } = await served(t)
  const { id } = await engine.enqueue('half', 8)
  const task = (await (await request(`/v1/tasks/${id}?waitSeconds=0.05`)).json()) as TaskView
  assert.equal(task.state, 'queued')
  const refused = await request(`/v1/tasks/${id}?waitSeconds=61`)
  assert.equal(refused.status, 400)
})

test('a server that closes answers the reads that wait', limits, async t => {
  const { engine, request, server } = await served(t)
  const { id } = await engine.enqueue('half', 8)
  const answer = request(`/v1/tasks/${id}?waitSeconds=60`)
  // The wait has begun when another request that came after it is answered.
  await request('/healthz')
  await server.close()
  const response = await answer
  assert.ok(response.status === 200 || response.status === 503, String(response.status))
})
