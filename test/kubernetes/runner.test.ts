/** The runner against an API server that behaves like Kubernetes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isHopeless, openKubernetesRunner } from '../../src/runners/kubernetes.ts'
import { loadClient } from '../../src/runners/kubernetes-api.ts'
import type { StageToRun } from '../../src/runners/manifest.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { freePort } from '../harness/free-port.ts'
import { kubeconfigFor, runnerOn, stageToRun } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

async function set(t: TestContext, settings = {}) {
  const server = await startSmallApiServer(t, ['pawl', 'other'])
  const runner = await runnerOn(t, server.url, settings)
  const jobOf = (stage: StageToRun) => server.cluster.find('jobs', 'pawl', jobNameOf(stage))!
  return { server, cluster: server.cluster, runner, jobOf }
}

test('a stage gets a Job, and as many pods as it may have tasks at once', async t => {
  const { runner } = await set(t)
  const stage = stageToRun({ parallelism: 3 })
  assert.deepEqual(await runner.ensure([stage]), [{ stageId: stage.stageId }])
  const { namespaces, blind, jobs, pods } = await runner.inspect([undefined])
  assert.deepEqual([namespaces, blind], [['pawl'], []])
  assert.deepEqual(jobs, [
    {
      namespace: 'pawl',
      name: jobNameOf(stage),
      stageId: stage.stageId,
      round: 1,
      state: 'active',
      reason: null,
      message: null,
    },
  ])
  assert.deepEqual(
    pods.map(({ stageId, phase, reason }) => [stageId, phase, reason]),
    Array.from({ length: 3 }, () => [stage.stageId, 'Running', null]),
  )
  assert.ok(pods.every(({ node, name }) => node?.startsWith('node-') && name.startsWith(`${jobNameOf(stage)}-`)))
})

test('two servers that start the same stage at once start it once', async t => {
  const { runner, server } = await set(t)
  const other = await runnerOn(t, server.url)
  const stage = stageToRun()
  const answers = await Promise.all([runner.ensure([stage]), other.ensure([stage]), runner.ensure([stage])])
  assert.deepEqual(
    answers.flat(),
    answers.map(() => ({ stageId: stage.stageId })),
  )
  assert.equal(server.cluster.list('jobs', 'pawl').length, 1)
  assert.equal(server.cluster.list('pods', 'pawl').length, 1)
})

test('a Job that was made though its answer was lost is there at the next try, once', async t => {
  const { runner, server, cluster } = await set(t)
  const stage = stageToRun()
  server.meddle = () => 'lost'
  assert.equal((await runner.ensure([stage]))[0]?.problem?.code, 'KUBERNETES_UNREACHABLE')
  server.meddle = () => undefined
  assert.deepEqual(await runner.ensure([stage]), [{ stageId: stage.stageId }])
  assert.equal(cluster.list('jobs', 'pawl').length, 1)
})

test('a stage that has ended is let go with its pods, once or again', async t => {
  const { runner, cluster } = await set(t)
  const [one, other] = [stageToRun(), stageToRun()]
  await runner.ensure([one, other])
  await runner.stop(one)
  await runner.stop(one)
  const { jobs, pods } = await runner.inspect([undefined])
  assert.deepEqual(
    [jobs.map(({ stageId }) => stageId), pods.map(({ stageId }) => stageId)],
    [[other.stageId], [other.stageId]],
  )
  assert.equal(cluster.list('pods', 'pawl').length, 1)
})

test('a late stop of one round leaves the workers of the next alone', async t => {
  const { runner } = await set(t)
  const stage = stageToRun()
  await runner.ensure([stage, { ...stage, round: 2 }])
  await runner.stop(stage)
  assert.deepEqual(
    (await runner.inspect([undefined])).jobs.map(({ round }) => round),
    [2],
  )
})

test('a worker that ends well because its node is emptied is replaced', async t => {
  const { runner, cluster } = await set(t)
  await runner.ensure([stageToRun()])
  cluster.drainPod(cluster.list('pods', 'pawl')[0]!)
  const { jobs, pods } = await runner.inspect([undefined])
  assert.equal(jobs[0]?.state, 'active')
  assert.deepEqual(pods.map(({ phase }) => phase).sort(), ['Running', 'Succeeded'])
})

test('what ended a pod, and what ended a Job, is said in Kubernetes’ words', async t => {
  const { runner, cluster, jobOf } = await set(t)
  const [evicted, killed, late] = [stageToRun(), stageToRun(), stageToRun()]
  await runner.ensure([evicted, killed, late])
  const podOf = (stage: StageToRun) =>
    cluster.list('pods', 'pawl').find(({ metadata }) => metadata.name.startsWith(jobNameOf(stage)))!
  cluster.evictPod(podOf(evicted))
  cluster.killPod(podOf(killed))
  cluster.failJob(jobOf(late), 'DeadlineExceeded', 'Job was active longer than specified deadline')
  const { jobs, pods } = await runner.inspect([undefined])
  const failed = pods.filter(({ phase }) => phase === 'Failed')
  assert.deepEqual(
    new Map(failed.map(({ stageId, reason }) => [stageId, reason])),
    new Map([
      [evicted.stageId, 'Evicted'],
      [killed.stageId, 'OOMKilled'],
    ]),
  )
  const { state, reason, message } = jobs.find(({ stageId }) => stageId === late.stageId)!
  assert.deepEqual(
    [state, reason, message],
    ['failed', 'DeadlineExceeded', 'Job was active longer than specified deadline'],
  )
})

test('what lies in more pages than one is seen whole', async t => {
  const { runner, server } = await set(t, { pageSize: 3 })
  const stages = Array.from({ length: 10 }, () => stageToRun())
  await runner.ensure(stages)
  const { jobs, pods } = await runner.inspect([undefined])
  assert.deepEqual(jobs.map(({ stageId }) => stageId).sort(), stages.map(({ stageId }) => stageId).sort())
  assert.equal(pods.length, 10)
  assert.equal(server.asked.filter(({ verb, resource }) => verb === 'list' && resource === 'jobs').length, 4)
})

test('a list that grows too old on the way is read again from the start', async t => {
  const { runner, server, cluster } = await set(t, { pageSize: 3 })
  await runner.ensure(Array.from({ length: 7 }, () => stageToRun()))
  const gone = cluster.list('jobs', 'pawl')[0]!
  let pages = 0
  server.meddle = ({ verb, resource }) => {
    if (verb === 'list' && resource === 'jobs' && ++pages === 2) {
      server.expirePages()
      cluster.removeJob(gone)
    }
    return undefined
  }
  const { jobs, blind } = await runner.inspect([undefined])
  assert.deepEqual(blind, [])
  assert.deepEqual(
    jobs.map(({ name }) => name),
    cluster.list('jobs', 'pawl').map(({ metadata }) => metadata.name),
  )
})

for (const [what, fault] of Object.entries({
  'answers with an error': { status: 500 },
  'is too busy': { status: 429 },
  'does not answer': 'silence',
  'breaks off': 'cut',
  'is no Kubernetes': { body: '{}' },
  'is not even JSON': { body: '<html>' },
} as const)) {
  test(`nothing is known of a namespace if the API ${what} on the way`, async t => {
    const { runner, server } = await set(t, { requestSeconds: 0.3, pageSize: 1 })
    await runner.ensure([stageToRun(), stageToRun()])
    for (const resource of ['jobs', 'pods']) {
      server.meddle = asked => (asked.resource === resource && asked.query.has('continue') ? fault : undefined)
      const { namespaces, blind, jobs, pods } = await runner.inspect([undefined])
      assert.deepEqual([namespaces, jobs, pods], [[], [], []])
      assert.deepEqual(
        blind.map(({ namespace, problem }) => [namespace, problem.code]),
        [['pawl', 'KUBERNETES_UNREACHABLE']],
      )
    }
  })
}

test('an API that is not there is tried once, not once for every stage', async t => {
  const runner = await runnerOn(t, `http://127.0.0.1:${await freePort()}`)
  const answers = await runner.ensure([stageToRun(), stageToRun(), stageToRun()])
  assert.deepEqual(
    answers.map(({ problem }) => problem?.code),
    Array.from({ length: 3 }, () => 'KUBERNETES_UNREACHABLE'),
  )
  assert.equal(new Set(answers.map(({ problem }) => problem)).size, 1)
  assert.deepEqual((await runner.inspect([undefined, 'other'])).namespaces, [])
})

test('a stage that Kubernetes refuses is told why, and holds up no other', async t => {
  const { runner } = await set(t)
  const bad = stageToRun({ parallelism: -1 })
  const lost = stageToRun({ runner: { kind: 'kubernetes', image: 'x', namespace: 'nowhere' } })
  const good = stageToRun()
  const answers = await runner.ensure([bad, lost, good])
  assert.deepEqual(
    answers.map(({ stageId, problem }) => [stageId, problem?.code, problem?.details.status]),
    [
      [bad.stageId, 'KUBERNETES_REFUSED', 422],
      [lost.stageId, 'KUBERNETES_REFUSED', 404],
      [good.stageId, undefined, undefined],
    ],
  )
  assert.deepEqual(
    answers.slice(0, 2).map(({ problem }) => isHopeless(problem!)),
    [true, false],
  )
  assert.match(answers[0]!.problem!.message, /parallelism: Invalid value/)
  assert.match(answers[1]!.problem!.message, /namespaces \\"nowhere\\" not found/)
})

test('a stage that Kubernetes answers with an error, time and again, holds up no other', async t => {
  const { runner, server } = await set(t)
  let first = true
  server.meddle = () => {
    const fault = first ? { status: 500 } : undefined
    first = false
    return fault
  }
  assert.deepEqual(
    (await runner.ensure([stageToRun(), stageToRun()])).map(({ problem }) => problem?.code),
    ['KUBERNETES_UNREACHABLE', undefined],
  )
})

test('a stage whose secret has a name of the worker’s own is refused, and holds up no other', async t => {
  const { runner } = await set(t)
  const bad = stageToRun()
  const run = { ...bad.run, secrets: { PAWL_KEY: { secret: 'mine', key: 'k' } } }
  const answers = await runner.ensure([{ ...bad, run }, stageToRun()])
  assert.deepEqual(
    answers.map(({ problem }) => problem?.code),
    ['OPTION_INVALID', undefined],
  )
  assert.ok(isHopeless(answers[0]!.problem!))
})

test('a namespace that may not be looked into does not hide the others', async t => {
  const { runner, server } = await set(t)
  const away = stageToRun({ runner: { kind: 'kubernetes', image: 'x', namespace: 'other' } })
  await runner.ensure([stageToRun(), away])
  server.allows = ({ namespace }) => namespace !== 'other'
  const { namespaces, blind, jobs } = await runner.inspect(['other', undefined])
  assert.deepEqual([namespaces, jobs.length], [['pawl'], 1])
  assert.equal(blind[0]?.problem.code, 'KUBERNETES_REFUSED')
  assert.match(blind[0]!.problem.message, /cannot list resource/)
})

test('an installation sees its own Jobs, and none of another in the same namespace', async t => {
  const { runner, server } = await set(t)
  const staging = await runnerOn(t, server.url, { instance: 'staging' })
  const [mine, theirs] = [stageToRun(), stageToRun()]
  await runner.ensure([mine])
  await staging.ensure([theirs])
  assert.deepEqual(
    (await runner.inspect([undefined])).jobs.map(({ stageId }) => stageId),
    [mine.stageId],
  )
  assert.deepEqual(
    (await staging.inspect([undefined])).pods.map(({ stageId }) => stageId),
    [theirs.stageId],
  )
})

test('a key that Kubernetes does not know is told as a refusal', async t => {
  const { server } = await set(t)
  const runner = await runnerOn(t, server.url, { kubeconfig: kubeconfigFor(t, server.url, 'stale') })
  const { problem } = (await runner.ensure([stageToRun()]))[0]!
  assert.deepEqual([problem?.code, problem?.details.status], ['KUBERNETES_REFUSED', 401])
  assert.deepEqual((await runner.inspect([undefined])).namespaces, [])
})

test('a missing client is told with the command that installs it', async () => {
  await assert.rejects(loadClient('@kubernetes/client-that-is-not-there'), {
    code: 'KUBERNETES_CLIENT_MISSING',
    message: /npm install @kubernetes\/client-node/,
  })
})

test('a kubeconfig that is not there, or names no cluster, is told as such', async t => {
  await assert.rejects(runnerOn(t, '', { kubeconfig: '/nowhere/config' }), { code: 'FILE_INVALID' })
  await assert.rejects(runnerOn(t, '', { kubeconfig: '/dev/null' }), { code: 'FILE_INVALID' })
})

test('where nothing names a cluster, none is made up', async t => {
  const { HOME, KUBECONFIG } = process.env
  t.after(() => Object.assign(process.env, { HOME, ...(KUBECONFIG !== undefined && { KUBECONFIG }) }))
  delete process.env.KUBECONFIG
  process.env.HOME = '/nowhere'
  await assert.rejects(openKubernetesRunner(), { code: 'FILE_INVALID', message: /does not name a cluster/ })
})
