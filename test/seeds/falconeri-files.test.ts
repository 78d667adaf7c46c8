/**
 * Seed 002, Falconeri: every row of its three tables of status transitions and its three error scenarios, for a job
 * over files whose workers are pods. In Pawl, a datum is a task and an output file is an artifact.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import type { CommandPayload } from '../../src/kernel/datum.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import type { TaskView } from '../../src/protocol/tasks/tasks.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { artifactOf, doFileChores, folder, putOut } from '../harness/files.ts'
import { fresh } from '../harness/fresh.ts'
import { runnerOn, workerNameOf } from '../kubernetes/runner-on.ts'
import type { KubeObject } from '../kubernetes/shapes.ts'
import { startSmallApiServer } from '../kubernetes/small-api-server.ts'

type Datum = ClaimedTask & { readonly payload: CommandPayload }

const failure = { message: 'exit code 1', stack: 'at main.rs:7' }

/** A pipeline over three files with two pods, as `falconeri job run` submits it. */
async function pipeline(t: TestContext, { tries = 1 } = {}) {
  const f = await fresh(t)
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write({ a: 'A', b: 'B', c: 'C' })
  const api = await startSmallApiServer(t, ['pawl'])
  const chore = runInKubernetes(await runnerOn(t, api.url))
  const retry = { attempts: tries, losses: tries, delaySeconds: 0 }
  const settings = { failFast: false, heartbeatSeconds: null, leaseSeconds: 3600, retry, deadLetter: 'never' } as const
  const main = {
    name: 'main',
    run: { command: ['word-count'] },
    inputs: { texts: { uri: inbox.uri } },
    outputs: outbox.uri,
  }
  const runner = { kubernetes: { image: 'debian:12' } }
  const job = await f.engine.submit({ name: 'word-count', stages: [{ ...main, ...settings, runner, parallelism: 2 }] })
  const [stage] = job.stages
  const babysit = async () => {
    await chore.run(f.engine.context)
    await doFileChores(f)
  }
  await babysit()
  const pods = () => api.cluster.list('pods', 'pawl')
  return {
    ...f,
    id: job.id,
    outbox,
    babysit,
    pods,
    cluster: api.cluster,
    k8sJob: () => api.cluster.find('jobs', 'pawl', jobNameOf({ stageId: stage!.id, round: 1 }))!,
    /** A pod reserves its next datum and starts it. */
    async reserve(pod = 0): Promise<Datum> {
      const worker = podName(pods()[pod]!)
      const { claimed } = await f.engine.sync({ worker, queues: [stage!.queue], claim: 1 })
      await f.engine.start(claimed[0]!.id, claimed[0]!.epoch)
      return claimed[0] as Datum
    },
    /** The requests of `falconeri-worker` after a successful command. */
    async finish(datum: Datum) {
      await putOut(f, datum, { [datum.payload.inputs[0]!.path]: 'counted' })
      await f.engine.succeed(datum.id, datum.epoch, { output: '1 file' })
    },
    put: (datum: Datum, files: Record<string, string>) => putOut(f, datum, files),
    fail: (datum: Datum) => f.engine.fail(datum.id, datum.epoch, { error: failure }),
    job: () => f.engine.job(job.id),
    async datums() {
      const { items } = await f.engine.tasks({ jobId: job.id })
      return items.map(({ state }) => state).sort()
    },
    files: async (id: string) => (await f.engine.taskArtifacts(id)).items.map(({ name, state }) => `${name} ${state}`),
  }
}

function podName({ metadata, spec }: KubeObject): string {
  return workerNameOf({ name: metadata.name, node: (spec as { nodeName: string }).nodeName })
}

const why = ({ error }: TaskView) => error?.message

test('falconeri 002, Job Status: (created) → Running: job inserted into database', async t => {
  const { job, k8sJob } = await pipeline(t)
  const { state, progress } = await job()
  assert.deepEqual([state, progress.total], ['pending', 3])
  assert.equal((k8sJob().spec as { parallelism: number }).parallelism, 2)
})

test('falconeri 002, Job Status: Running → Done: all datums succeed', async t => {
  const { job, reserve, finish, babysit, outbox, cluster } = await pipeline(t)
  for (const _ of [1, 2, 3]) {
    assert.notEqual((await job()).state, 'succeeded')
    await finish(await reserve())
  }
  await babysit()
  assert.equal((await job()).state, 'succeeded')
  assert.deepEqual(await outbox.read(), { a: 'counted', b: 'counted', c: 'counted' })
  await babysit()
  assert.deepEqual(cluster.list('jobs', 'pawl'), [], 'its pods are not needed any more')
})

test('falconeri 002, Job Status: Running → Error: any datum fails permanently (exhausted retries)', async t => {
  const { job, reserve, finish, fail, babysit, datums } = await pipeline(t, { tries: 2 })
  const poor = await reserve()
  await fail(poor)
  for (const _ of [1, 2]) await finish(await reserve(1))
  const again = await reserve()
  assert.deepEqual([again.id, again.epoch], [poor.id, poor.epoch + 1])
  assert.equal((await job()).state, 'running')
  await fail(again)
  await babysit()
  assert.equal((await job()).state, 'failed')
  assert.deepEqual(await datums(), ['failed', 'succeeded', 'succeeded'])
})

test('falconeri 002, Job Status: Running → Error: babysitter detects K8s job vanished (after 15min)', async t => {
  const { job, cluster, k8sJob, babysit, advance, reserve } = await pipeline(t)
  await reserve()
  cluster.removeJob(k8sJob(), { orphans: true })
  await babysit()
  await advance(15 * 60 - 1)
  await babysit()
  assert.equal((await job()).state, 'running')
  await advance(1)
  await babysit()
  const { stages } = await job()
  assert.equal(stages[0]!.error?.message, 'its Kubernetes job vanished')
})

test('falconeri 002, Datum Status: (created) → Ready: datum inserted into database', async t => {
  const { engine, id, datums } = await pipeline(t)
  assert.deepEqual(await datums(), ['queued', 'queued', 'queued'])
  const { items } = await engine.tasks({ jobId: id })
  const paths = items.map(({ payload }) =>
    (payload as CommandPayload).inputs.map(({ name, path }) => `${name}/${path}`),
  )
  assert.deepEqual(paths.toSorted(), [['texts/a'], ['texts/b'], ['texts/c']])
})

test('falconeri 002, Datum Status: Ready → Running: worker reserves datum via POST /jobs/{id}/reserve_next_datum', async t => {
  const { engine, reserve, pods } = await pipeline(t)
  const { state, owner } = await engine.task((await reserve(1)).id)
  assert.deepEqual([state, owner], ['running', podName(pods()[1]!)])
})

test('falconeri 002, Datum Status: Running → Done: worker reports success via PATCH /datums/{id}', async t => {
  const { engine, reserve, finish } = await pipeline(t)
  const datum = await reserve()
  await finish(datum)
  const { state, output } = await engine.task(datum.id)
  assert.deepEqual([state, output], ['succeeded', '1 file'])
})

test('falconeri 002, Datum Status: Running → Error: worker reports failure via PATCH /datums/{id}', async t => {
  const { engine, reserve, fail } = await pipeline(t)
  const datum = await reserve()
  await fail(datum)
  const { state, error } = await engine.task(datum.id)
  assert.deepEqual([state, error], ['failed', failure])
})

test('falconeri 002, Datum Status: Running → Error: babysitter detects worker pod vanished', async t => {
  const { engine, reserve, cluster, pods, babysit } = await pipeline(t)
  const [lost, other] = [await reserve(0), await reserve(1)]
  cluster.vanishPod(pods()[0]!)
  await babysit()
  const task = await engine.task(lost.id)
  assert.deepEqual([task.state, why(task)], ['failed', 'worker pod disappeared'])
  assert.equal((await engine.task(other.id)).state, 'running')
})

test('falconeri 002, Datum Status: Error → Ready: babysitter re-queues datum for retry (if retries remain)', async t => {
  const { reserve, finish, fail, datums } = await pipeline(t, { tries: 2 })
  const datum = await reserve()
  await fail(datum)
  assert.deepEqual(await datums(), ['queued', 'queued', 'retrying'])
  for (const _ of [1, 2]) await finish(await reserve())
  const again = await reserve()
  assert.deepEqual([again.id, again.epoch], [datum.id, datum.epoch + 1])
})

test('falconeri 002, Output File Status: (created) → Running: output file registered via POST /datums/{id}/output_files', async t => {
  const { engine, reserve, files } = await pipeline(t)
  const datum = await reserve()
  const artifacts = [artifactOf(datum, 'x', 'registered')]
  await engine.reportArtifacts(datum.id, datum.epoch, { artifacts })
  assert.deepEqual(await files(datum.id), ['x registered'])
  await assert.rejects(engine.reportArtifacts(datum.id, datum.epoch + 1, { artifacts }), { code: 'LEASE_LOST' })
})

test('falconeri 002, Output File Status: Running → Done: upload succeeds, reported via PATCH /datums/{id}/output_files', async t => {
  const { engine, reserve, put, babysit, files } = await pipeline(t)
  const datum = await reserve()
  await put(datum, { x: 'X' })
  assert.deepEqual(await files(datum.id), ['x uploaded'])
  await engine.succeed(datum.id, datum.epoch)
  await babysit()
  assert.deepEqual(await files(datum.id), ['x stored'])
})

test('falconeri 002, Output File Status: Running → Error: upload fails, reported via PATCH /datums/{id}/output_files', async t => {
  const { engine, reserve, files, id } = await pipeline(t)
  const datum = await reserve()
  const report = (state: 'registered' | 'error') =>
    engine.reportArtifacts(datum.id, datum.epoch, {
      artifacts: [{ ...artifactOf(datum, 'x', state), error: 'no such bucket' }],
    })
  await report('registered')
  await report('error')
  assert.deepEqual(await files(datum.id), ['x error'])
  assert.equal((await engine.jobArtifacts(id, { state: 'error' })).items[0]!.error, 'no such bucket')
})

test('falconeri 002, when a datum fails with a normal error', async t => {
  const { engine, reserve, put, finish, fail, babysit, files, job, outbox, datums } = await pipeline(t, { tries: 2 })
  const first = await reserve()
  await put(first, { [first.payload.inputs[0]!.path]: 'half' })
  await fail(first)
  assert.deepEqual((await engine.task(first.id)).error, failure, 'the message and the backtrace are kept')
  assert.deepEqual(await files(first.id), [`${first.payload.inputs[0]!.path} discarded`], 'its files do not count')
  await finish(await reserve())
  const last = await reserve()
  const second = await reserve(1)
  assert.equal(second.id, first.id)
  await fail(second)
  assert.equal((await engine.task(first.id)).state, 'failed', 'no try remains')
  assert.equal((await job()).state, 'running')
  await finish(last)
  await babysit()
  assert.equal((await job()).state, 'failed', 'the last datum has finished')
  assert.deepEqual(await datums(), ['failed', 'succeeded', 'succeeded'])
  assert.equal(Object.keys(await outbox.read()).filter(path => !path.startsWith('.pawl')).length, 2)
})

test('falconeri 002, when a Kubernetes job vanishes mysteriously', async t => {
  const { engine, reserve, finish, cluster, k8sJob, babysit, advance, job, datums } = await pipeline(t, { tries: 5 })
  await finish(await reserve(0))
  const held = await reserve(1)
  cluster.removeJob(k8sJob())
  await babysit()
  assert.equal((await job()).state, 'running', 'it may be back soon')
  assert.equal(why(await engine.task(held.id)), 'worker pod disappeared')
  await advance(15 * 60)
  await babysit()
  const { state, stages } = await job()
  assert.deepEqual([state, stages[0]!.error?.message], ['failed', 'its Kubernetes job vanished'])
  assert.deepEqual(await datums(), ['cancelled', 'cancelled', 'succeeded'], 'nothing is left open')
})

test('falconeri 002, when a datum’s worker pod vanishes mysteriously', async t => {
  for (const fate of ['vanishPod', 'killPod', 'evictPod'] as const) {
    const { engine, reserve, put, finish, cluster, pods, babysit, job, outbox, files } = await pipeline(t, { tries: 2 })
    const zombie = await reserve(0)
    await put(zombie, { [zombie.payload.inputs[0]!.path]: 'of the zombie' })
    cluster[fate](pods()[0]!)
    await babysit()
    const lost = await engine.task(zombie.id)
    assert.deepEqual([lost.state, lost.losses], ['retrying', 1])
    assert.match(why(lost)!, /^worker pod disappeared/)
    for (const _ of [1, 2, 3]) await finish(await reserve(1))
    await assert.rejects(engine.succeed(zombie.id, zombie.epoch), { code: 'LEASE_LOST' })
    await babysit()
    assert.equal((await job()).state, 'succeeded')
    const { a, b, c } = await outbox.read()
    assert.deepEqual({ a, b, c }, { a: 'counted', b: 'counted', c: 'counted' })
    const name = zombie.payload.inputs[0]!.path
    assert.deepEqual(await files(zombie.id), [`${name} discarded`, `${name} stored`])
  }
})
