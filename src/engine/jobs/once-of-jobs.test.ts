/** Requests on jobs and stages that are repeated after the job or stage has changed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Fresh, fresh } from '../../../test/harness/fresh.ts'
import { workOff } from '../../../test/harness/jobs.ts'
import { startWaiting } from '../../../test/harness/waiting.ts'
import type { JobSpec } from '../../spec/job-spec.ts'
import type { Pawl } from '../engine.ts'

const key = { idempotencyKey: 'k' }
const plain: JobSpec = { name: 'j', open: true, stages: [{ name: 'a', task: 'a', open: true }] }
const gated: JobSpec = { name: 'j', stages: [{ name: 'a', gate: true, task: 'a' }] }
const once: JobSpec = { name: 'j', stages: [{ name: 'a', task: 'a', retry: { attempts: 1 } }] }

interface Case {
  readonly spec: JobSpec
  before?(run: Fresh, ids: Ids): Promise<unknown>
  ask(engine: Pawl, ids: Ids): Promise<unknown>
}
interface Ids {
  readonly job: string
  readonly stage: string
}

const cases: Record<string, Case> = {
  approve: { spec: gated, ask: (engine, { stage }) => engine.approve(stage, key) },
  reject: { spec: gated, ask: (engine, { stage }) => engine.reject(stage, key) },
  hold: { spec: plain, ask: (engine, { stage }) => engine.hold(stage, key) },
  'cancel a stage': { spec: plain, ask: (engine, { stage }) => engine.cancelStage(stage, key) },
  'retry a stage': {
    spec: once,
    before: run => workOff(run, 'a', 'failed'),
    ask: (engine, { stage }) => engine.retryStage(stage, key),
  },
  'seal a stage': { spec: plain, ask: (engine, { stage }) => engine.sealStage(stage, key) },
  'add tasks': { spec: plain, ask: (engine, { stage }) => engine.addTasks(stage, [{ payload: 1 }], key) },
  'patch a stage': { spec: plain, ask: (engine, { stage }) => engine.patchStage(stage, { metadata: { a: 1 } }, key) },
  'add stages': { spec: plain, ask: (engine, { job }) => engine.addStages(job, [{ name: 'b', task: 'b' }], key) },
  'patch a job': { spec: plain, ask: (engine, { job }) => engine.patchJob(job, { priority: 5 }, key) },
  pause: { spec: plain, ask: (engine, { job }) => engine.pauseJob(job, key) },
  'retry a job': {
    spec: once,
    before: run => workOff(run, 'a', 'failed'),
    ask: (engine, { job }) => engine.retryJob(job, key),
  },
  'clone a job': {
    spec: once,
    before: run => workOff(run, 'a', 'failed'),
    ask: (engine, { job }) => engine.retryJob(job, { ...key, clone: true }),
  },
}

for (const [what, { spec, before = async () => {}, ask }] of Object.entries(cases)) {
  test(`${what}: asked again under its Idempotency-Key, it has its first answer after the job is gone`, async t => {
    const run = await fresh(t)
    const { engine } = run
    const { id, stages } = await engine.submit(spec)
    const ids = { job: id, stage: stages[0]!.id }
    await before(run, ids)
    const first = await ask(engine, ids)
    // The original of a clone has already ended.
    await engine.cancelJob(id, { mode: 'hard' }).catch(() => {})
    await engine.deleteJob(id)
    assert.deepEqual(await ask(engine, ids), first)
    const other = engine.cancelStage(ids.stage, { ...key, mode: 'hard' })
    await assert.rejects(other, { code: 'IDEMPOTENCY_MISMATCH' })
  })
}

test('a clone is made once per Idempotency-Key, though its original runs again', async t => {
  const run = await fresh(t)
  const { engine } = run
  const { id } = await engine.submit(once)
  await workOff(run, 'a', 'failed')
  const clone = () => engine.retryJob(id, { ...key, clone: true })
  const first = await clone()
  await engine.retryJob(id)
  assert.deepEqual(await clone(), first)
  assert.equal((await engine.jobs()).items.length, 2)
})

test('whoever waits for work hears of a clone that was asked for under a key', async t => {
  const run = await fresh(t)
  const { id } = await run.engine.submit(once)
  await workOff(run, 'a', 'failed')
  const { answer } = await startWaiting(t, run, { queues: ['a'] })
  const clone = await run.engine.retryJob(id, { ...key, clone: true })
  const [task] = (await answer).claimed
  assert.equal((await run.engine.task(task!.id)).jobId, clone.id)
})

test('a clone that is refused leaves its Idempotency-Key free', async t => {
  const run = await fresh(t)
  const { id } = await run.engine.submit(once)
  const clone = () => run.engine.retryJob(id, { ...key, clone: true })
  await assert.rejects(clone(), { code: 'MOVE_REFUSED' })
  await workOff(run, 'a', 'failed')
  assert.equal((await clone()).clonedFrom, id)
})
