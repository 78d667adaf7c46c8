/** The two stories of seed 002 about things that vanish, from the cluster to the consequences. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { compare, type Findings, type HeldWorker, type RunningStage } from '../../src/runners/compare.ts'
import type { StageToRun } from '../../src/runners/manifest.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { runnerOn, stageToRun, workerNameOf } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

const start = new Date('2026-11-15T12:00:00Z')
const after = (minutes: number) => new Date(start.getTime() + minutes * 60_000)

/** A stage with two workers, and a babysitter that keeps what it is told to record. */
async function watched(t: TestContext) {
  const server = await startSmallApiServer(t, ['pawl'])
  const runner = await runnerOn(t, server.url)
  const stage = stageToRun({ parallelism: 2 })
  await runner.ensure([stage])
  const { pods } = await runner.inspect([undefined])
  const workers = pods.map((pod): HeldWorker => ({ worker: workerNameOf(pod as never), namespace: 'pawl' }))
  let missingSince: Date | null = null
  const compareAt = async (minutes: number): Promise<Findings> => {
    const stages: RunningStage[] = [{ ...stage, namespace: 'pawl', createdAt: start, missingSince }]
    const found = compare({ now: after(minutes), stages, workers, seen: await runner.inspect([undefined]) })
    if (found.missing.length > 0) missingSince ??= after(minutes)
    if (found.back.length > 0) missingSince = null
    return found
  }
  return { server, cluster: server.cluster, runner, stage, workers, compareAt, jobOf: () => jobOf(server, stage) }
}

function jobOf({ cluster }: Awaited<ReturnType<typeof startSmallApiServer>>, stage: StageToRun) {
  return cluster.find('jobs', 'pawl', jobNameOf(stage))!
}

test('when a Kubernetes job vanishes mysteriously, its workers are lost at once and its stage after 15 minutes', async t => {
  const { cluster, stage, workers, compareAt, jobOf } = await watched(t)
  cluster.removeJob(jobOf())
  const first = await compareAt(30)
  assert.deepEqual([first.missing, first.vanishedFor15Min], [[stage.stageId], []])
  assert.deepEqual(
    first.lostWorkers.map(({ worker, reason }) => [worker, reason]),
    workers.map(({ worker }) => [worker, 'worker pod disappeared']),
  )
  assert.deepEqual((await compareAt(44)).vanishedFor15Min, [])
  assert.deepEqual((await compareAt(45)).vanishedFor15Min, [stage.stageId])
})

test('a Kubernetes job that the API could not be asked about has not vanished, and one that is back neither', async t => {
  const { server, cluster, runner, stage, compareAt, jobOf } = await watched(t)
  server.meddle = () => ({ status: 500 })
  for (const minutes of [1, 20, 40]) {
    const { missing, vanishedFor15Min, lostWorkers } = await compareAt(minutes)
    assert.deepEqual([missing, vanishedFor15Min, lostWorkers], [[], [], []])
  }
  server.meddle = () => undefined
  cluster.removeJob(jobOf())
  assert.deepEqual((await compareAt(50)).missing, [stage.stageId])
  await runner.ensure([stage])
  assert.deepEqual((await compareAt(70)).back, [stage.stageId])
  cluster.removeJob(jobOf())
  assert.deepEqual((await compareAt(80)).vanishedFor15Min, [])
})

test('when a datum’s worker pod vanishes mysteriously, it alone is lost, and the stage goes on', async t => {
  for (const fate of ['vanishPod', 'evictPod', 'killPod', 'drainPod'] as const) {
    const { cluster, workers, compareAt } = await watched(t)
    assert.deepEqual((await compareAt(1)).lostWorkers, [])
    const pod = cluster.list('pods', 'pawl')[0]!
    cluster[fate](pod)
    const { lostWorkers, missing, ended } = await compareAt(2)
    const { worker } = workers.find(held => held.worker.endsWith(pod.metadata.name))!
    const detail = { vanishPod: null, evictPod: 'Evicted', killPod: 'OOMKilled', drainPod: 'Completed' }[fate]
    assert.deepEqual(lostWorkers, [{ worker, reason: 'worker pod disappeared', detail }])
    assert.deepEqual([missing, ended], [[], []])
  }
})

test('a Kubernetes job that ran into its deadline ends its stage with that reason, not as one that vanished', async t => {
  const { cluster, stage, compareAt, jobOf } = await watched(t)
  cluster.failJob(jobOf(), 'DeadlineExceeded', 'Job was active longer than specified deadline')
  const { missing, ended } = await compareAt(1)
  assert.deepEqual(missing, [])
  assert.equal(ended[0]?.stageId, stage.stageId)
  assert.match(ended[0]!.why, /^its Kubernetes job ran longer than activeDeadlineSeconds/)
})
