/** Secrets in a pod: those of the stage, and the key of the worker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { V1Container } from '@kubernetes/client-node'
import { faultsInShape } from '../../test/kubernetes/client-shapes.ts'
import { stageToRun } from '../../test/kubernetes/runner-on.ts'
import { manifestOf } from './manifest.ts'
import { settleKubernetes } from './settings.ts'

const settings = settleKubernetes({})
const stage = stageToRun()
const { run } = stage

test('the key of a worker is neither a variable nor a mounted Secret of the container that commands run in', () => {
  for (const pawlImage of [undefined, null]) {
    const pod = manifestOf(stage, settleKubernetes(pawlImage === null ? { pawlImage } : {})).spec!.template.spec!
    const [worker] = pod.containers
    const ofKey = pod.volumes!.filter(({ secret }) => secret?.secretName === 'pawl-worker-key').map(({ name }) => name)
    assert.equal(ofKey.length, 1)
    assert.ok(!worker!.volumeMounts!.some(({ name }) => ofKey.includes(name)))
    assert.ok(!worker!.env!.some(({ valueFrom }) => valueFrom?.secretKeyRef?.name === 'pawl-worker-key'))
    assert.ok(worker!.args!.includes('--delete-key-file'))
  }
})

test('a secret cannot take the place of what the worker itself needs', () => {
  for (const name of ['PAWL_KEY', 'PAWL_SERVER', 'NODE_NAME']) {
    const taking = { ...stage, run: { ...run, secrets: { [name]: { secret: 'mine', key: 'k' } } } }
    assert.throws(() => manifestOf(taking, settings), { code: 'OPTION_INVALID', message: new RegExp(name) })
  }
})

test('secrets are mounted in the folders that the stage names, and optional ones may be missing', () => {
  const secrets = { TOKEN: { secret: 'bucket', key: 'token', optional: true } }
  const runner = { ...stage.runner, secretFolders: { '/ssl': 'certs', '/etc/keys': 'keys' } }
  const job = manifestOf({ ...stage, run: { ...run, secrets }, runner }, settings)
  const { volumes, containers } = job.spec!.template.spec!
  const [{ volumeMounts, env }] = containers as [V1Container]
  const seen = volumeMounts!.map(({ name, mountPath, readOnly }) => {
    const secret = volumes!.find(volume => volume.name === name)!.secret?.secretName
    return [mountPath, secret, readOnly]
  })
  assert.deepEqual(
    seen.filter(([, secret]) => secret !== undefined),
    [
      ['/ssl', 'certs', true],
      ['/etc/keys', 'keys', true],
    ],
  )
  assert.deepEqual(env!.find(({ name }) => name === 'TOKEN')!.valueFrom!.secretKeyRef, {
    name: 'bucket',
    key: 'token',
    optional: true,
  })
  assert.deepEqual(faultsInShape(job, 'V1Job'), [])
})
