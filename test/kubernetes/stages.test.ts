/** Stages that run in Kubernetes: what the babysitter starts there, and how it reacts to what it finds. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import type { KubernetesPlan } from '../../src/kernel/datum.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { fresh } from '../harness/fresh.ts'
import { runnerOn, workerNameOf } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

const run = { command: ['true'] }

/** A job of one stage that runs in Kubernetes, and its babysitter. */
async function inKubernetes(t: TestContext, more: Partial<KubernetesPlan> = {}, namespaces = ['pawl']) {
  const f = await fresh(t)
  const server = await startSmallApiServer(t, namespaces)
  const runner = await runnerOn(t, server.url)
  const chore = runInKubernetes(runner)
  const { kind: _, ...kubernetes } = { image: 'debian:12', ...more } as KubernetesPlan
  const spec = { name: 'texts', stages: [{ name: 's', run, parallelism: 2, runner: { kubernetes } }] }
  const { id, stages } = await f.engine.submit(spec)
  const stage = { stageId: stages[0]!.id, round: 1 }
  const runChore = () => chore.run(f.engine.context)
  const state = async () => (await f.engine.job(id)).state
  const jobs = (namespace = 'pawl') => server.cluster.list('jobs', namespace).map(({ metadata }) => metadata.name)
  const [pod] = await runChore().then(() => runner.inspect([undefined]).then(({ pods }) => pods))
  const claim = async () => {
    const worker = workerNameOf(pod as never)
    const { claimed } = await f.engine.sync({ worker, queues: [stages[0]!.queue], claim: 1 })
    await f.engine.start(claimed[0]!.id, claimed[0]!.epoch)
    return claimed[0]!
  }
  return { ...f, id, stage, server, runChore, state, jobs, claim, pod: () => server.cluster.list('pods', 'pawl')[0]! }
}

test('a stage gets one Kubernetes Job, however often and by however many it is looked after, and loses it when it ends', async t => {
  const { stage, runChore, jobs, claim, engine, state } = await inKubernetes(t)
  await Promise.all([runChore(), runChore()])
  assert.deepEqual(jobs(), [jobNameOf(stage)])
  const task = await claim()
  await engine.succeed(task.id, task.epoch)
  assert.equal(await state(), 'succeeded')
  await runChore()
  assert.deepEqual(jobs(), [])
})

test('its tasks are in a queue of their own, so that no worker with another image gets them', async t => {
  const { engine, id } = await inKubernetes(t)
  const { claimed } = await engine.sync({ worker: 'other', queues: ['command'], claim: 1 })
  assert.deepEqual(claimed, [])
  assert.match((await engine.job(id)).stages[0]!.queue, /^k8s-/)
})

test('the tasks of a pod that vanished are lost at once, and their last error says why', async t => {
  const { engine, server, runChore, claim, pod, state } = await inKubernetes(t)
  const task = await claim()
  await runChore()
  assert.equal((await engine.task(task.id)).state, 'running')
  server.cluster.vanishPod(pod())
  await runChore()
  const { state: of, losses, error } = await engine.task(task.id)
  assert.deepEqual([of, losses, error?.message], ['retrying', 1, 'worker pod disappeared'])
  assert.equal(await state(), 'running')
})

test('a stage whose Kubernetes job has vanished for 15 minutes fails, and not before', async t => {
  const { engine, id, server, stage, runChore, claim, state, advance } = await inKubernetes(t)
  await claim()
  server.cluster.removeJob(server.cluster.find('jobs', 'pawl', jobNameOf(stage))!)
  await runChore()
  await advance(14 * 60)
  await runChore()
  assert.equal(await state(), 'running')
  await advance(60)
  await runChore()
  const { state: of, stages } = await engine.job(id)
  assert.deepEqual([of, stages[0]!.error?.message], ['failed', 'its Kubernetes job vanished'])
})

test('a cluster that cannot be asked changes nothing', async t => {
  const { engine, server, runChore, claim, state, advance } = await inKubernetes(t)
  const task = await claim()
  server.meddle = () => ({ status: 500 })
  for (let minutes = 0; minutes < 40; minutes += 10) {
    await advance(600)
    await runChore()
  }
  assert.equal((await engine.task(task.id)).state, 'running')
  assert.equal(await state(), 'running')
})

test('a stage that is retried gets a Job of its own in the next round', async t => {
  const { engine, id, server, stage, runChore, jobs, claim } = await inKubernetes(t)
  await claim()
  server.cluster.failJob(server.cluster.find('jobs', 'pawl', jobNameOf(stage))!, 'DeadlineExceeded', 'too long')
  await runChore()
  await engine.cancelJob(id, { mode: 'hard' }).catch(() => {})
  assert.equal((await engine.job(id)).state, 'failed')
  await engine.retryJob(id)
  await runChore()
  assert.ok(jobs().includes(jobNameOf({ ...stage, round: 2 })))
})
