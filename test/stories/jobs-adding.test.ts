/** Jobs submitted by independent callers, to be added to one that may already exist. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobSpec, StageSpec } from '../../src/spec/job-spec.ts'
import { defineTask } from '../../src/worker/define-task.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { eventually } from '../harness/eventually.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { movesIn } from '../harness/job-in.ts'
import { statesOf, workOff } from '../harness/jobs.ts'

const id = '0198c0de-0000-4000-8000-00000000000a'
const stage = (name: string, ...needs: string[]): StageSpec => ({ name, task: name, needs })
const adding = (...stages: StageSpec[]): JobSpec => ({ id, ifThere: 'add', name: 'dag', open: 'untilDone', stages })

test('of many who submit the first stages of a job at once one makes it, and all are in it', async t => {
  const f = await fresh(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const views = await Promise.all(names.map(name => f.engine.submit(adding(stage(name)))))
  assert.deepEqual(new Set(views.map(view => view.id)), new Set([id]))
  assert.equal((await f.engine.jobs()).items.length, 1)
  const { stages } = await f.engine.job(id)
  assert.deepEqual(stages.map(({ name }) => name).sort(), names)
  for (const name of names) assert.equal(await workOff(f, name), 1)
  assert.equal((await f.engine.job(id)).state, 'succeeded')
})

test('a stage that is added may need those that are there, and one added after the end goes on', async t => {
  const f = await fresh(t)
  await f.engine.submit(adding(stage('a')))
  await f.engine.submit(adding(stage('b', 'a')))
  assert.deepEqual([await workOff(f, 'b'), await workOff(f, 'a'), await workOff(f, 'b')], [0, 1, 1])
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded')
  const { state, round } = await f.engine.submit(adding(stage('c', 'a', 'b')))
  assert.deepEqual([state, round], ['pending', 2])
  assert.equal(await workOff(f, 'c'), 1)
  assert.equal(await statesOf(f, id), 'succeeded: a succeeded, b succeeded, c succeeded')
  const moves = ['* → created', 'created → pending', 'pending → running', 'running → succeeded', 'succeeded → pending']
  assert.deepEqual(movesIn(await f.engine.jobEvents(id)).slice(0, 5), moves)
})

test('what is added under a key is added once, however often it is sent, and workers hear of it', async t => {
  const f = await fresh(t)
  const worker = startWorker(f.engine, [defineTask({ type: 'a', handler: async () => {} })], { waitSeconds: 60 })
  t.after(() => worker.stop())
  await eventually('the worker waits', async () => (await f.engine.workers()).items.length === 1)
  const call = { idempotencyKey: 'k' }
  for (const _ of [1, 2]) await f.engine.submit(adding(stage('a')), call)
  await eventually('it is done', async () => (await f.engine.job(id)).state === 'succeeded')
  const [view, again] = [await f.engine.submit(adding(stage('a')), call), await f.engine.job(id)]
  assert.deepEqual([view.stages.length, again.stages.length, again.round], [1, 1, 1])
  await assert.rejects(f.engine.submit(adding(stage('b')), call), { code: 'IDEMPOTENCY_MISMATCH' })
})

async function refuses(f: Fresh, spec: JobSpec, code: string): Promise<void> {
  const before = await f.engine.job(id)
  await assert.rejects(f.engine.submit(spec), { code })
  assert.deepEqual(await f.engine.job(id), before)
}

test('nothing is added to a job that is sealed, or that has ended badly', async t => {
  const f = await fresh(t)
  await f.engine.submit({ id, name: 'sealed', stages: [stage('a')] })
  await refuses(f, adding(stage('b')), 'SEALED')
  await workOff(f, 'a')
  await refuses(f, adding(stage('b')), 'MOVE_REFUSED')
  for (const ends of ['failed', 'cancelled']) {
    const other = await fresh(t)
    await other.engine.submit(adding(stage('a')))
    if (ends === 'failed') await workOff(other, 'a', 'permanent')
    else await other.engine.cancelJob(id)
    assert.equal((await other.engine.job(id)).state, ends)
    await refuses(other, adding(stage('b')), 'MOVE_REFUSED')
  }
})

test('what is wrong with it is told whether the job is there or not, and nothing is written', async t => {
  const f = await fresh(t)
  const odd: JobSpec[] = [
    adding(stage('b', 'nobody')),
    { ...adding(stage('b')), priority: 0.5 },
    { ...adding(), stages: 5 as never },
    { ...adding(stage('b'), stage('b')) },
  ]
  for (const spec of odd) await assert.rejects(f.engine.submit(spec), { code: 'SPEC_INVALID' })
  assert.deepEqual((await f.engine.jobs()).items, [])
  await assert.rejects(f.engine.submit({ ifThere: 'add', name: 'j', stages: [] }), { code: 'SPEC_INVALID' })
  await f.engine.submit(adding(stage('a')))
  for (const spec of [...odd, adding(stage('a'))]) await refuses(f, spec, 'SPEC_INVALID')
})

test('a job without stages to add leaves the one that is there as it was', async t => {
  const f = await fresh(t)
  await f.engine.submit(adding(stage('a')))
  await workOff(f, 'a')
  const before = await f.engine.job(id)
  assert.deepEqual(await f.engine.submit(adding()), before)
})

test('a job that was deleted is not made again under its id', async t => {
  const f = await fresh(t)
  await f.engine.submit(adding(stage('a')))
  await workOff(f, 'a')
  await f.engine.deleteJob(id)
  await assert.rejects(f.engine.submit(adding(stage('b'))), { code: 'ID_TAKEN' })
  assert.deepEqual((await f.engine.tasks()).items, [])
})
