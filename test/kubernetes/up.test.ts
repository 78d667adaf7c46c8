/** `pawl up` as a process, with a Kubernetes API: it starts workers there once it is configured to, in any way. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import type { KubernetesPlan } from '../../src/kernel/datum.ts'
import { jobNameOf } from '../../src/runners/names.ts'
import { cli } from '../harness/cli.ts'
import { eventually } from '../harness/eventually.ts'
import { kubeconfigFor } from './runner-on.ts'
import { startSmallApiServer } from './small-api-server.ts'

const bounded = { timeout: 600_000 }

async function upWith(t: TestContext, args: readonly string[], env: Record<string, string>) {
  const cluster = await startSmallApiServer(t, ['pawl'])
  const pawl = await cli(t, { KUBECONFIG: kubeconfigFor(t, cluster.url), ...env })
  const program = pawl.start(['up', '--port', '0', '--json', ...args])
  const line = await program.printed('where it serves', text => text.includes('"url"'))
  return { cluster, program, client: connect({ server: (JSON.parse(line) as { url: string }).url }) }
}

const jobIn = (kubernetes: KubernetesSpec, secrets = {}) => ({
  name: 'texts',
  stages: [{ name: 's', run: { command: ['true'], secrets }, runner: { kubernetes } }],
})
type KubernetesSpec = Omit<KubernetesPlan, 'kind'>

async function startsJobs(t: TestContext, args: readonly string[], env: Record<string, string>): Promise<void> {
  const { cluster, program, client } = await upWith(t, args, { PAWL_K8S_IMAGES: 'debian:*', ...env })
  const job = await client.submit(jobIn({ image: 'debian:12' }))
  const wanted = jobNameOf({ stageId: job.stages[0]!.id, round: 1 })
  await eventually('the stage has its Kubernetes Job', () => cluster.cluster.find('jobs', 'pawl', wanted))
  await client.close()
  program.signal('SIGTERM')
  await program.ended
}

test('pawl up --kubernetes starts the workers of stages as Kubernetes Jobs', bounded, t =>
  startsJobs(t, ['--kubernetes'], {}),
)

test('PAWL_KUBERNETES=true does what --kubernetes does', bounded, t => startsJobs(t, [], { PAWL_KUBERNETES: 'true' }))

test(
  'pawl up --kubernetes lets stages use only what its settings list, and by default nothing but its own image',
  bounded,
  async t => {
    const { program, client } = await upWith(t, ['--kubernetes', '--k8s-service-accounts', 'reader'], {
      PAWL_K8S_SECRETS: 'bucket, certs',
      PAWL_K8S_NAMESPACE: 'pawl',
    })
    const own = 'pawl:0.1.0'
    const theDatabase = { PASSWORD: { secret: 'pawl-database', key: 'password' } }
    const refusals = [
      [jobIn({ image: 'debian:12' }), 'PAWL_K8S_IMAGES'],
      [jobIn({ image: own }, theDatabase), 'PAWL_K8S_SECRETS'],
      [jobIn({ image: own, secretFolders: { '/all': 'pawl-database' } }), 'PAWL_K8S_SECRETS'],
      [jobIn({ image: own, serviceAccount: 'pawl' }), 'PAWL_K8S_SERVICE_ACCOUNTS'],
      [jobIn({ image: own, namespace: 'kube-system' }), 'PAWL_K8S_NAMESPACES'],
    ] as const
    for (const [job, setting] of refusals) {
      await assert.rejects(client.submit(job), { code: 'POD_NOT_ALLOWED', status: 403, message: new RegExp(setting) })
    }
    const bucket = { TOKEN: { secret: 'bucket', key: 'token' } }
    const asks = { serviceAccount: 'reader', secretFolders: { '/ssl': 'certs' }, namespace: 'pawl' }
    await client.submit(jobIn({ image: own, ...asks }, bucket))
    await client.close()
    program.signal('SIGTERM')
    await program.ended
  },
)
