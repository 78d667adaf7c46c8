/** Producers write stages. Their pods must not give them access to what belongs to the server or to other users. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import type { KubernetesPlan } from '../../src/kernel/datum.ts'
import type { PodRules } from '../../src/kernel/pod-rules.ts'
import { falconeriRig } from '../harness/falconeri.ts'
import { fresh } from '../harness/fresh.ts'
import { served } from '../harness/served.ts'
import { runnerOn } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

const podRules: PodRules = {
  images: ['debian:12'],
  namespaces: ['batch'],
  secrets: ['bucket'],
  serviceAccounts: ['reader'],
}

type Asks = Partial<Omit<KubernetesPlan, 'kind'>> & { readonly secret?: string }

const stageWith = ({ secret, ...kubernetes }: Asks) => ({
  name: 's',
  run: { command: ['true'], ...(secret !== undefined && { secrets: { TOKEN: { secret, key: 'token' } } }) },
  runner: { kubernetes: { image: 'debian:12', ...kubernetes } },
})
const jobWith = (asks: Asks) => ({ name: 'texts', stages: [stageWith(asks)] })

const attacks: readonly [what: string, asks: Asks, setting: string][] = [
  ['reads the server’s database password as a variable', { secret: 'pawl-database' }, 'PAWL_K8S_SECRETS'],
  ['mounts the server’s database Secret', { secretFolders: { '/x': 'pawl-database' } }, 'PAWL_K8S_SECRETS'],
  ['reads the key of all workers', { secret: 'pawl-worker-key' }, 'PAWL_K8S_SECRETS'],
  ['runs as the server’s service account', { serviceAccount: 'pawl' }, 'PAWL_K8S_SERVICE_ACCOUNTS'],
  ['runs in another namespace', { namespace: 'kube-system' }, 'PAWL_K8S_NAMESPACES'],
  ['runs in an image of its own', { image: 'evil.example.com/debian:12' }, 'PAWL_K8S_IMAGES'],
]

for (const [what, asks, setting] of attacks) {
  test(`a producer cannot submit a stage that ${what}`, async t => {
    const { engine, request } = await served(t, { engine: { podRules } })
    const { secret } = await engine.createKey({ name: 'ada', role: 'producer' })
    const headers = { authorization: `Bearer ${secret}` }
    const response = await request('/v1/jobs', { method: 'POST', json: jobWith(asks), headers })
    const problem = (await response.json()) as { code: string; details: { setting: string } }
    assert.deepEqual([response.status, problem.code], [403, 'POD_NOT_ALLOWED'])
    assert.equal(problem.details.setting, setting)
  })

  test(`a stage that ${what} gets no pod, though it was stored before the rules were set`, async t => {
    const { cluster, runChore, stageNow } = await stored(t, asks)
    await runChore(podRules)
    const { state, error } = await stageNow()
    assert.equal(state, 'pending')
    assert.match(error!.message, new RegExp(setting))
    assert.deepEqual(cluster.changes, [])
  })
}

/** A job that was stored by a server without rules. */
async function stored(t: TestContext, asks: Asks) {
  const { engine } = await fresh(t)
  const { id } = await engine.submit(jobWith(asks))
  const { cluster, url } = await startSmallApiServer(t, ['pawl', 'batch', 'kube-system'])
  const runChore = async (allow: PodRules) => runInKubernetes(await runnerOn(t, url, { allow })).run(engine.context)
  return { cluster, runChore, stageNow: async () => (await engine.job(id)).stages[0]! }
}

test('a stage that the rules refused starts once a server allows it', async t => {
  const { cluster, runChore, stageNow } = await stored(t, { serviceAccount: 'writer' })
  await runChore(podRules)
  assert.equal(cluster.list('jobs', 'pawl').length, 0)
  await runChore({ ...podRules, serviceAccounts: ['writer'] })
  assert.equal((await stageNow()).error, null)
  assert.equal(cluster.list('jobs', 'pawl').length, 1)
})

test('a stage that asks for what the rules list is taken and started', async t => {
  const asks = { secret: 'bucket', secretFolders: { '/x': 'bucket' }, serviceAccount: 'reader', namespace: 'batch' }
  const { engine } = await fresh(t, { podRules })
  await engine.submit(jobWith(asks))
  const { cluster, runChore } = await stored(t, asks)
  await runChore(podRules)
  assert.equal(cluster.list('jobs', 'batch').length, 1)
})

test('a stage that is added to an open job obeys the same rules', async t => {
  const { engine } = await fresh(t, { podRules })
  const { id } = await engine.submit({ ...jobWith({}), open: true })
  const late = { ...stageWith({ serviceAccount: 'pawl' }), name: 'late' }
  await assert.rejects(engine.addStages(id, [late]), { code: 'POD_NOT_ALLOWED' })
})

test('a pipeline of Falconeri obeys the same rules', async t => {
  const { ask, spec } = await falconeriRig(t, { engine: { podRules } })
  const transform = { cmd: ['sh'], image: 'debian:12' }
  const secrets = [{ name: 'pawl-database', mount_path: '/x' }]
  for (const more of [{ service_account: 'pawl' }, { secrets }, { image: 'evil.example.com/x' }]) {
    const { status, text } = await ask('POST', '/jobs', { job: spec({ transform: { ...transform, ...more } }) })
    assert.equal(status, 403)
    assert.match(text, /PAWL_K8S_/)
  }
})
