/** The surroundings of a command in its pod: writable folders, variables, nodes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { V1Job } from '@kubernetes/client-node'
import { faultsInShape } from '../../test/kubernetes/client-shapes.ts'
import { stageToRun } from '../../test/kubernetes/runner-on.ts'
import type { KubernetesPlan, RunPlan } from '../kernel/datum.ts'
import { parseJobSpec } from '../spec/parse-job-spec.ts'
import { jobOfPipeline } from '../spec/pipeline.ts'
import { manifestOf } from './manifest.ts'
import { manifestsFor } from './render.ts'
import { settleKubernetes } from './settings.ts'

function jobOf(run: Partial<RunPlan>, runner: Partial<KubernetesPlan> = {}): V1Job {
  const stage = stageToRun()
  const job = manifestOf(
    { ...stage, run: { ...stage.run, ...run }, runner: { ...stage.runner, ...runner } },
    settleKubernetes({ keySecret: null }),
  )
  assert.deepEqual(faultsInShape(job, 'V1Job'), [])
  return job
}

/** The writable folders of a pod. Each is an empty volume that every user in the pod may write to. */
function writableFolders({ spec }: V1Job): string[] {
  const { volumes = [], containers } = spec!.template.spec!
  const empty = volumes.filter(({ emptyDir }) => emptyDir !== undefined).map(({ name }) => name)
  const mounts = containers[0]!.volumeMounts ?? []
  return mounts.filter(({ name, readOnly }) => empty.includes(name) && readOnly !== true).map(mount => mount.mountPath)
}

const variablesOf = ({ spec }: V1Job) =>
  Object.fromEntries(spec!.template.spec!.containers[0]!.env!.map(({ name, value }) => [name, value]))

const falconeri = {
  pipeline: { name: 'words' },
  transform: { cmd: ['sh'], image: 'debian:12', env: { AWS_REGION: 'eu-west-1' } },
  input: { atom: { URI: 's3://books/in', repo: 'books', glob: '/*' } },
  egress: { URI: 's3://books/out' },
}

test('a program that is not root can write to /scratch and to the folder that its files are mounted at', () => {
  assert.deepEqual(writableFolders(jobOf({ mount: '/pfs' })).sort(), ['/pfs', '/scratch'])
  assert.deepEqual(writableFolders(jobOf({ mount: null })), ['/scratch'])
  assert.deepEqual(writableFolders(jobOf({ mount: '/scratch/' })), ['/scratch'])
})

test('a folder of secrets stays where the stage has put it', () => {
  const job = jobOf({ mount: '/pfs' }, { secretFolders: { '/scratch': 'certs' } })
  assert.deepEqual(writableFolders(job), ['/pfs'])
  const mounts = job.spec!.template.spec!.containers[0]!.volumeMounts!.map(({ mountPath }) => mountPath)
  assert.equal(new Set(mounts).size, mounts.length)
})

test('variables of a command that say where its bucket is reach the worker that fetches its files', () => {
  const env = { AWS_REGION: 'eu-west-1', AWS_ENDPOINT_URL: 'http://s3$(X)', NODE_EXTRA_CA_CERTS: '/ca.pem' }
  const variables = variablesOf(jobOf({ env: { ...env, LD_LIBRARY_PATH: '/old', PAWL_KEY: 'mine', POD_NAME: 'p' } }))
  assert.deepEqual(
    [variables.AWS_REGION, variables.AWS_ENDPOINT_URL, variables.NODE_EXTRA_CA_CERTS],
    ['eu-west-1', 'http://s3$$(X)', '/ca.pem'],
  )
  assert.deepEqual(
    [variables.LD_LIBRARY_PATH, variables.PAWL_KEY, variables.POD_NAME],
    [undefined, undefined, undefined],
  )
})

test('a secret goes before a variable of the same name', () => {
  const secrets = { AWS_REGION: { secret: 'bucket', key: 'region' } }
  const { env } = jobOf({ env: { AWS_REGION: 'eu-west-1' }, secrets }).spec!.template.spec!.containers[0]!
  const named = env!.filter(({ name }) => name === 'AWS_REGION')
  assert.deepEqual(named, [{ name: 'AWS_REGION', valueFrom: { secretKeyRef: { name: 'bucket', key: 'region' } } }])
})

test('a stage may say which taints of nodes its pods tolerate', () => {
  const tolerations = [{ key: 'gpu', operator: 'Exists', effect: 'NoSchedule' }] as const
  const stages = [{ name: 's', run: { command: ['sh'] }, runner: { kubernetes: { image: 'i', tolerations } } }]
  const [job] = manifestsFor(parseJobSpec({ name: 'j', stages }), {})
  assert.deepEqual(job!.spec!.template.spec!.tolerations, tolerations)
  assert.deepEqual(faultsInShape(job, 'V1Job'), [])
})

test('a toleration that Kubernetes would refuse is refused with the spec', () => {
  for (const toleration of [{ key: 'gpu', operator: 'In' }, { effect: 'Never' }, { kee: 'gpu' }]) {
    const kubernetes = { image: 'i', tolerations: [toleration] } as object
    const stages = [{ name: 's', run: { command: ['sh'] }, runner: { kubernetes } }] as never
    assert.throws(() => parseJobSpec({ name: 'j', stages }), { code: 'SPEC_INVALID', message: /tolerations/ })
  }
})

test('a pipeline of Falconeri runs on nodes that are kept for Falconeri, with its folders and its region', () => {
  const [job] = manifestsFor(parseJobSpec(jobOfPipeline(falconeri)), { keySecret: null })
  assert.deepEqual(job!.spec!.template.spec!.tolerations, [
    { key: 'fdy.io/falconeri', operator: 'Equal', value: 'worker', effect: 'NoExecute' },
  ])
  assert.deepEqual(writableFolders(job!).sort(), ['/pfs', '/scratch'])
  assert.equal(variablesOf(job!).AWS_REGION, 'eu-west-1')
})
