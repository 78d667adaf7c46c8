import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { defineTask } from '../../src/worker/define-task.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

const greet = defineTask({
  type: 'greet',
  payload: z.object({ name: z.string() }),
  handler: ({ name }) => `hello ${name}`,
})

test('a job submitted over HTTP is worked by a worker over HTTP, and read over HTTP', async t => {
  const { client } = await served(t)
  await using _worker = startWorker(client, [greet])
  const job = await client.submit({
    name: 'greetings',
    stages: [{ name: 'greet', task: 'greet', payloads: [{ name: 'Ada' }, { name: 'Bea' }] }],
  })
  await eventually('the job has ended', async () => (await client.job(job.id)).state === 'succeeded')
  const { items } = await client.tasks({ jobId: job.id, state: ['succeeded'] })
  assert.deepEqual(items.map(({ output }) => output).sort(), ['hello Ada', 'hello Bea'])
})

test('how many jobs there are is counted over HTTP too, for whoever asks', async t => {
  const { client, request } = await served(t)
  for (const name of ['x', 'y']) await client.submit({ name, stages: [{ name: 'a', task: 'a' }] })
  assert.equal((await client.jobs({ limit: 1, total: true })).total, 2)
  assert.equal('total' in (await client.jobs({ limit: 1, total: false })), false)
  assert.equal((await request('/v1/jobs?total=perhaps')).status, 400)
})
