/** A cluster that does not let Pawl start workers: the stage shows why it does not start, and starts once it may. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import { fresh } from '../harness/fresh.ts'
import { runnerOn } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

/** A job of one stage, and a cluster whose Role lets Pawl list but not create. */
async function withoutRights(t: TestContext) {
  const f = await fresh(t)
  const cluster = await startSmallApiServer(t, ['pawl'])
  cluster.allows = ({ verb }) => verb !== 'create'
  const chore = runInKubernetes(await runnerOn(t, cluster.url))
  const stage = { name: 's', run: { command: ['true'] }, runner: { kubernetes: { image: 'debian:12' } } }
  const { id, stages } = await f.engine.submit({ name: 'texts', stages: [stage] })
  const runChore = () => chore.run(f.engine.context)
  const stageNow = async () => (await f.engine.job(id)).stages[0]!
  return { ...f, id, queue: stages[0]!.queue, cluster, runChore, stageNow }
}

test('a stage whose Job Kubernetes forbids shows what Kubernetes says, and begins once it is allowed', async t => {
  const { cluster, runChore, stageNow } = await withoutRights(t)
  await runChore()
  const { state, error } = await stageNow()
  assert.equal(state, 'pending')
  assert.match(error!.message, /cannot create resource .+jobs.+ in the namespace .+pawl/)
  await runChore()
  assert.deepEqual((await stageNow()).error, error)

  cluster.allows = () => true
  await runChore()
  assert.equal((await stageNow()).error, null)
  assert.equal(cluster.cluster.list('jobs', 'pawl').length, 1)
})

test('a stage whose cluster cannot be reached shows that', async t => {
  const { cluster, runChore, stageNow } = await withoutRights(t)
  cluster.meddle = () => ({ status: 503 })
  await runChore()
  assert.match((await stageNow()).error!.message, /Kubernetes API cannot be reached/)
})

test('a stage that others finish in spite of the cluster ends without an error', async t => {
  const { engine, runChore, queue, stageNow } = await withoutRights(t)
  await runChore()
  const [task] = await engine.claims({ worker: 'by hand', queues: [queue], start: true })
  await engine.succeed(task!.id, task!.epoch)
  const { state, error } = await stageNow()
  assert.deepEqual([state, error], ['succeeded', null])
})

test('a stage that is cancelled while the cluster refuses it does not show the refusal as the cause', async t => {
  const { engine, id, runChore, stageNow } = await withoutRights(t)
  await runChore()
  await engine.cancelJob(id)
  const { state, error } = await stageNow()
  assert.deepEqual([state, error], ['cancelled', null])
})
