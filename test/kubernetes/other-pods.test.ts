/** Pods that Pawl did not start, such as those of a Deployment of `falconeri-worker`, are watched all the same. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import { type Datum, falconeriRig } from '../harness/falconeri.ts'
import { runnerOn } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

/** A pipeline over one file, whose datum is held by a worker of this name. The worker may or may not be a pod. */
async function holding(t: TestContext, { node = 'node-1', tries = 2 } = {}) {
  const f = await falconeriRig(t)
  const server = await startSmallApiServer(t, ['pawl'])
  const chore = runInKubernetes(await runnerOn(t, server.url))
  const runChore = () => chore.run(f.engine.context)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run({ datum_tries: tries })
  const { datum } = await f.pod('words-x7k2p', node).take(id)
  const now = async () => (await f.get<{ datum: Datum }>(`/datums/${datum.id}/describe`)).datum
  return { ...f, id, datum, server, cluster: server.cluster, runChore, now }
}

test('the datum of a pod that somebody else started comes back at once when the pod vanishes', async t => {
  const { cluster, runChore, now, pod, id, datum } = await holding(t)
  const own = cluster.addPod('words-x7k2p', 'pawl', 'node-1')
  await runChore()
  assert.equal((await now()).status, 'running')
  cluster.vanishPod(own)
  await runChore()
  const { status, error_message } = await now()
  assert.deepEqual([status, error_message], ['ready', 'worker pod disappeared'])
  assert.equal((await pod('words-next').take(id)).datum.id, datum.id)
})

test('a vanished pod uses up a try: after the last one the datum and its job are in error', async t => {
  const { cluster, runChore, now, job, id } = await holding(t, { tries: 1 })
  const own = cluster.addPod('words-x7k2p', 'pawl', 'node-1')
  await runChore()
  cluster.vanishPod(own)
  await runChore()
  assert.deepEqual([(await now()).status, (await job(id)).status], ['error', 'error'])
})

test('a pod that is found dead has lost its datum, though nobody saw it alive', async t => {
  for (const node of ['node-1', '']) {
    const { cluster, runChore, now } = await holding(t, { node })
    cluster.killPod(cluster.addPod('words-x7k2p', 'pawl', 'node-1'))
    await runChore()
    const { status, error_message } = await now()
    assert.deepEqual([status, error_message], ['ready', 'worker pod disappeared: OOMKilled'])
  }
})

test('a worker that runs elsewhere keeps its datum: of a pod that was never seen nothing is known', async t => {
  const { cluster, runChore, now } = await holding(t)
  cluster.addPod('another', 'pawl', 'node-1')
  cluster.killPod(cluster.addPod('words-x7k2p', 'pawl', 'node-2'))
  await runChore()
  await runChore()
  assert.equal((await now()).status, 'running')
})

test('a pod keeps its datum while the cluster cannot be asked', async t => {
  const { server, cluster, runChore, now } = await holding(t)
  const own = cluster.addPod('words-x7k2p', 'pawl', 'node-1')
  await runChore()
  server.meddle = ({ resource }) => (resource === 'pods' ? { status: 500 } : undefined)
  cluster.vanishPod(own)
  await runChore()
  assert.equal((await now()).status, 'running')
  server.meddle = () => undefined
  await runChore()
  assert.equal((await now()).status, 'ready')
})
