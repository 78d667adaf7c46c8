import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ended } from '../../test/harness/eventually.ts'
import { fresh } from '../../test/harness/fresh.ts'
import { served } from '../../test/harness/served.ts'
import { connect } from '../client/client.ts'
import type { SyncPort } from '../protocol/tasks/sync.ts'
import { runTask } from '../testing/run-task.ts'
import { defineTask, type TaskContext } from './define-task.ts'
import { jobReader } from './engine-reads.ts'
import { startWorker } from './worker.ts'

const report = defineTask({
  type: 'report',
  handler: async (_: unknown, ctx: TaskContext) => {
    const job = await ctx.job<{ month: string }>()
    const month: string | undefined = job?.input.month
    return { jobId: ctx.jobId, stageId: ctx.stageId, name: job?.name ?? null, stage: job?.stage ?? null, month }
  },
})

const spec = {
  name: 'monthly',
  input: { month: '2026-02' },
  stages: [{ name: 'reports', task: 'report', payloads: [1, 2, 3] }],
} as const

test('a handler reads the id, the input and the stage of its job, and the store is asked once for many tasks', async t => {
  const { engine } = await fresh(t)
  let reads = 0
  const port: SyncPort = {
    sync: engine.sync,
    putTaskType: engine.putTaskType,
    stageJob(id) {
      reads += 1
      return engine.stageJob(id)
    },
  }
  await using _worker = startWorker(port, [report])
  const job = await (await engine.submit(spec)).result()
  const [stage] = job.stages
  const { items } = await engine.tasks({ jobId: job.id })
  assert.equal(items.length, 3)
  for (const { output } of items) {
    assert.deepEqual(output, { jobId: job.id, stageId: stage!.id, name: 'monthly', stage: 'reports', month: '2026-02' })
  }
  assert.equal(reads, 1)
})

test('each handler gets a copy of its job, and a job that has changed is read again after a moment', async t => {
  const { engine } = await fresh(t)
  const { stages } = await engine.submit({ ...spec, metadata: { owner: 'ann' } })
  let [nowMs, round] = [0, 1]
  const port: SyncPort = {
    sync: engine.sync,
    putTaskType: engine.putTaskType,
    stageJob: async id => ({ ...(await engine.stageJob(id)), round }),
  }
  const read = jobReader(port, () => nowMs)
  const [one, two] = await Promise.all([read(stages[0]!.id), read(stages[0]!.id)])
  Object.assign(one.metadata, { owner: 'bob' })
  Object.assign(one.input as object, { month: '1999-01' })
  for (const job of [two, await read(stages[0]!.id)]) {
    assert.deepEqual([job.input, job.metadata, job.round], [spec.input, { owner: 'ann' }, 1])
  }
  round = 2
  nowMs += 1999
  assert.equal((await read(stages[0]!.id)).round, 1)
  nowMs += 1
  assert.equal((await read(stages[0]!.id)).round, 2)
})

test('a task that belongs to no job has none', async t => {
  const { engine } = await fresh(t)
  await using _worker = startWorker(engine, [report])
  const { id } = await engine.enqueue(report, null)
  assert.deepEqual((await ended(engine, id)).output, { jobId: null, stageId: null, name: null, stage: null })
})

test('over HTTP a key of the role worker reads the job of its stages, and of no others', async t => {
  const { engine, server } = await served(t)
  const { secret } = await engine.createKey({ name: 'w', roles: ['worker'], queues: ['report'] })
  const client = connect({ server: server.url, key: secret })
  t.after(() => client.close())
  await using _worker = startWorker(client, [report])
  const job = await (await engine.submit(spec)).result()
  const { items } = await engine.tasks({ jobId: job.id, limit: 1 })
  assert.equal((items[0]!.output as { month: string }).month, '2026-02')
  const other = await engine.submit({ name: 'other', stages: [{ name: 's', task: 'secret', payloads: [1] }] })
  await assert.rejects(client.stageJob(other.stages[0]!.id), { code: 'KEY_REFUSED' })
})

test('a test of a handler gives it a job', async () => {
  const { output } = await runTask(report, null, { job: { input: { month: '2026-03' }, stage: 's' } })
  const { month, stage, name, jobId } = output as Record<string, string>
  assert.deepEqual([month, stage, name, typeof jobId], ['2026-03', 's', 'job', 'string'])
})
