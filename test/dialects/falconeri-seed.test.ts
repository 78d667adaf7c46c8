/**
 * Seed 002 in its own words: every row of its three tables of status transitions, and its three error scenarios, through
 * its own routes. The babysitter watches the pods of a cluster.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import { ownQueueOf } from '../../src/kernel/datum.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { type Datum, falconeriRig, type Pod } from '../harness/falconeri.ts'
import { runnerOn } from '../kubernetes/runner-on.ts'
import type { KubeObject } from '../kubernetes/shapes.ts'
import { startSmallApiServer } from '../kubernetes/small-api-server.ts'

/** A pipeline over three files, with two pods in a cluster. */
async function pipeline(t: TestContext, { tries = 1 } = {}) {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A', b: 'B', c: 'C' })
  const api = await startSmallApiServer(t, ['pawl'])
  const chore = runInKubernetes(await runnerOn(t, api.url))
  const babysit = async () => void (await chore.run(f.engine.context))
  const { id } = await f.run({ datum_tries: tries })
  await babysit()
  const [stage] = (await f.engine.job(id)).stages
  assert.equal(stage!.queue, ownQueueOf(stage!.id))
  const inCluster = () => api.cluster.list('pods', 'pawl')
  const speakerIn = ({ metadata, spec }: KubeObject) => f.pod(metadata.name, (spec as { nodeName: string }).nodeName)
  return {
    ...f,
    id,
    babysit,
    cluster: api.cluster,
    inCluster,
    pods: inCluster().map(speakerIn) as [Pod, Pod],
    k8sJob: () => api.cluster.find('jobs', 'pawl', jobNameOf({ stageId: stage!.id, round: 1 }))!,
    status: async () => (await f.job(id)).status,
    datum: async (datumId: string) => (await f.get<{ datum: Datum }>(`/datums/${datumId}/describe`)).datum,
    async counts() {
      const { datum_status_counts } = await f.describe(id)
      return Object.fromEntries(datum_status_counts.map(({ status, count }) => [status, count]))
    },
    /** A pod's requests for a datum that succeeds. */
    async finish(pod: Pod) {
      const { datum, input_files } = await pod.take(id)
      const name = input_files[0]!.local_path.split('/').at(-1)!
      const files = await pod.files(datum.id, [`${f.outbox.uri}${name}`])
      await f.outbox.write({ [name]: 'counted' })
      assert.equal(
        (
          await pod.uploaded(
            datum.id,
            files.map(({ id }) => ({ id, status: 'done' })),
          )
        ).status,
        204,
      )
      assert.equal((await pod.done(datum.id, '1 word')).status, 200)
      return datum
    },
  }
}

test('falconeri 002, Job Status: (created) → Running: job inserted into database', async t => {
  const { status, counts, k8sJob } = await pipeline(t)
  assert.deepEqual([await status(), await counts()], ['running', { ready: 3 }])
  assert.equal((k8sJob().spec as { parallelism: number }).parallelism, 2)
})

test('falconeri 002, Job Status: Running → Done: all datums succeed', async t => {
  const { status, counts, pods, finish, outbox } = await pipeline(t)
  for (const pod of [pods[0], pods[1], pods[0]]) {
    assert.equal(await status(), 'running')
    await finish(pod)
  }
  assert.deepEqual([await status(), await counts()], ['done', { done: 3 }])
  assert.deepEqual(await outbox.read(), { a: 'counted', b: 'counted', c: 'counted' })
})

test('falconeri 002, Job Status: Running → Error: any datum fails permanently (exhausted retries)', async t => {
  const { id, status, counts, pods, finish } = await pipeline(t, { tries: 2 })
  const { datum } = await pods[0].take(id)
  await pods[0].error(datum.id)
  for (const _ of [1, 2]) await finish(pods[1])
  const again = await pods[0].take(id)
  assert.deepEqual([again.datum.id, again.datum.attempted_run_count], [datum.id, 2])
  assert.equal(await status(), 'running', 'it waits for every datum')
  await pods[0].error(datum.id)
  assert.deepEqual([await status(), await counts()], ['error', { done: 2, error: 1 }])
})

test('falconeri 002, Job Status: Running → Error: babysitter detects K8s job vanished (after 15min)', async t => {
  const { status, cluster, k8sJob, babysit, advance } = await pipeline(t)
  cluster.removeJob(k8sJob(), { orphans: true })
  await babysit()
  await advance(15 * 60 - 1)
  await babysit()
  assert.equal(await status(), 'running')
  await advance(1)
  await babysit()
  assert.equal(await status(), 'error')
})

test('falconeri 002, Datum Status: (created) → Ready: datum inserted into database', async t => {
  const { id, engine, get } = await pipeline(t)
  const { items } = await engine.jobTasks(id)
  for (const task of items) {
    const { datum, input_files } = await get<{ datum: Datum; input_files: unknown[] }>(`/datums/${task.id}/describe`)
    assert.deepEqual([datum.status, datum.job_id, datum.pod_name, input_files.length], ['ready', id, null, 1])
    assert.deepEqual([datum.attempted_run_count, datum.maximum_allowed_run_count], [0, 1])
  }
})

test('falconeri 002, Datum Status: Ready → Running: worker reserves datum via POST /jobs/{id}/reserve_next_datum', async t => {
  const { id, describe, inCluster, pods } = await pipeline(t)
  const { datum } = await pods[1].take(id)
  const { metadata, spec } = inCluster()[1]!
  const { nodeName } = spec as { nodeName: string }
  assert.deepEqual([datum.status, datum.pod_name, datum.node_name], ['running', metadata.name, nodeName])
  assert.equal(datum.attempted_run_count, 1)
  const { running_datums } = await describe(id)
  assert.deepEqual(running_datums, [datum])
})

test('falconeri 002, Datum Status: Running → Done: worker reports success via PATCH /datums/{id}', async t => {
  const { id, pods, datum } = await pipeline(t)
  const { datum: held } = await pods[0].take(id)
  const answer = await pods[0].done(held.id, '7 words')
  const { datum: answered } = JSON.parse(answer.text)
  assert.deepEqual([answered.status, answered.output, answered.error_message], ['done', '7 words', null])
  assert.deepEqual(await datum(held.id), answered)
})

test('falconeri 002, Datum Status: Running → Error: worker reports failure via PATCH /datums/{id}', async t => {
  const { id, pods, describe } = await pipeline(t)
  const { datum: held } = await pods[0].take(id)
  const { datum: answered } = JSON.parse((await pods[0].error(held.id, 'no such word')).text)
  const { status, error_message, backtrace, output, pod_name } = answered
  assert.deepEqual([status, error_message, backtrace], ['error', 'no such word', 'at main.rs:7'])
  assert.deepEqual([output, pod_name], ['reading…\n', pods[0].name])
  assert.deepEqual((await describe(id)).error_datums, [answered])
})

test('falconeri 002, Datum Status: Running → Error: babysitter detects worker pod vanished', async t => {
  const { id, pods, cluster, inCluster, babysit, datum, status } = await pipeline(t)
  const [lost, other] = [await pods[0].take(id), await pods[1].take(id)]
  cluster.vanishPod(inCluster()[0]!)
  await babysit()
  const found = await datum(lost.datum.id)
  assert.deepEqual([found.status, found.error_message], ['error', 'worker pod disappeared'])
  assert.equal(found.pod_name, pods[0].name)
  assert.equal((await datum(other.datum.id)).status, 'running')
  assert.equal(await status(), 'running')
})

test('falconeri 002, Datum Status: Error → Ready: babysitter re-queues datum for retry (if retries remain)', async t => {
  const { id, pods, datum, describe, finish } = await pipeline(t, { tries: 2 })
  const { datum: held } = await pods[0].take(id)
  await pods[0].error(held.id, 'not yet')
  const again = await datum(held.id)
  assert.deepEqual([again.status, again.attempted_run_count, again.error_message], ['ready', 1, 'not yet'])
  assert.deepEqual((await describe(id)).datum_status_counts, [{ status: 'ready', count: 3, rerunable_count: 0 }])
  for (const _ of [1, 2]) await finish(pods[1])
  assert.equal((await pods[1].take(id)).datum.id, held.id)
})

test('falconeri 002, Output File Status: (created) → Running: output file registered via POST /datums/{id}/output_files', async t => {
  const { id, pods, outbox } = await pipeline(t)
  const { datum } = await pods[0].take(id)
  const [file, ...more] = await pods[0].files(datum.id, [`${outbox.uri}x`])
  assert.deepEqual([file!.status, file!.uri, more], ['running', `${outbox.uri}x`, []])
})

test('falconeri 002, Output File Status: Running → Done: upload succeeds, reported via PATCH /datums/{id}/output_files', async t => {
  const { id, pods, outbox, engine } = await pipeline(t)
  const { datum } = await pods[0].take(id)
  const uris = [`${outbox.uri}x`]
  const [file] = await pods[0].files(datum.id, uris)
  const answer = await pods[0].uploaded(datum.id, [{ id: file!.id, status: 'done' }])
  assert.deepEqual([answer.status, answer.text], [204, ''])
  const [again] = await pods[0].files(datum.id, uris)
  assert.deepEqual([again!.id, again!.status], [file!.id, 'done'])
  await pods[0].done(datum.id)
  const { items } = await engine.taskArtifacts(datum.id)
  assert.deepEqual(
    items.map(({ id, state }) => [id, state]),
    [[file!.id, 'stored']],
  )
})

test('falconeri 002, Output File Status: Running → Error: upload fails, reported via PATCH /datums/{id}/output_files', async t => {
  const { id, pods, outbox, engine } = await pipeline(t)
  const { datum } = await pods[0].take(id)
  const uris = [`${outbox.uri}x`, `${outbox.uri}y`]
  const [x, y] = await pods[0].files(datum.id, uris)
  const answer = await pods[0].uploaded(datum.id, [
    { id: x!.id, status: 'error' },
    { id: y!.id, status: 'done' },
  ])
  assert.equal(answer.status, 204)
  const again = await pods[0].files(datum.id, uris)
  assert.deepEqual(
    again.map(({ id, status }) => [id, status]),
    [
      [x!.id, 'error'],
      [y!.id, 'done'],
    ],
  )
  await pods[0].error(datum.id, 'could not upload outputs')
  const { items } = await engine.taskArtifacts(datum.id)
  assert.deepEqual(
    items.map(({ state }) => state),
    ['error', 'discarded'],
  )
})

test('falconeri 002, when a datum fails with a normal error', async t => {
  const { id, pods, finish, datum, status, describe, outbox, engine } = await pipeline(t, { tries: 2 })
  const { datum: poor } = await pods[0].take(id)
  const [file] = await pods[0].files(poor.id, [`${outbox.uri}half`])
  await pods[0].uploaded(poor.id, [{ id: file!.id, status: 'done' }])
  assert.equal((await pods[0].error(poor.id)).status, 200)
  const kept = await datum(poor.id)
  assert.deepEqual([kept.error_message, kept.backtrace], ['exit status: 1', 'at main.rs:7'])
  await finish(pods[1])
  const last = await pods[0].take(id)
  const again = await pods[1].take(id)
  assert.equal(again.datum.id, poor.id, 'it is tried again')
  assert.deepEqual(
    (await engine.taskArtifacts(poor.id)).items.map(({ state }) => state),
    ['discarded'],
  )
  await pods[1].error(poor.id, 'again')
  assert.deepEqual([(await datum(poor.id)).status, await status()], ['error', 'running'], 'no try remains')
  await pods[0].done(last.datum.id)
  assert.equal(await status(), 'error', 'the last datum has finished')
  const { error_datums } = await describe(id)
  assert.deepEqual(
    error_datums.map(({ id, attempted_run_count: tries }) => [id, tries]),
    [[poor.id, 2]],
  )
})

test('falconeri 002, when a Kubernetes job vanishes mysteriously', async t => {
  const { id, pods, finish, cluster, k8sJob, babysit, advance, status, counts, datum } = await pipeline(t, { tries: 5 })
  await finish(pods[0])
  const { datum: held } = await pods[1].take(id)
  cluster.removeJob(k8sJob())
  await babysit()
  assert.deepEqual([await status(), (await datum(held.id)).error_message], ['running', 'worker pod disappeared'])
  await advance(15 * 60)
  await babysit()
  assert.equal(await status(), 'error', 'it is not stuck')
  assert.deepEqual(await counts(), { done: 1, canceled: 2 })
  assert.equal(await pods[0].reserve(id), null)
})

test('falconeri 002, when a datum’s worker pod vanishes mysteriously', async t => {
  for (const tries of [1, 2]) {
    const { id, pods, finish, cluster, inCluster, babysit, datum, status } = await pipeline(t, { tries })
    const { datum: lost } = await pods[0].take(id)
    cluster.killPod(inCluster()[0]!)
    await babysit()
    const found = await datum(lost.id)
    assert.match(found.error_message!, /^worker pod disappeared/)
    assert.equal(found.status, tries === 1 ? 'error' : 'ready')
    for (const _ of tries === 1 ? [1, 2] : [1, 2, 3]) await finish(pods[1])
    assert.equal(await status(), tries === 1 ? 'error' : 'done')
    assert.equal((await datum(lost.id)).attempted_run_count, tries)
  }
})
