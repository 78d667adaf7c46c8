/**
 * The stand-in must behave like Kubernetes: its responses have the shapes that the official client is generated from.
 */
import assert from 'node:assert/strict'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { manifestOf } from '../../src/runners/manifest.ts'
import { settleKubernetes } from '../../src/runners/settings.ts'
import { faultsInShape } from './client-shapes.ts'
import { stageToRun } from './runner-on.ts'
import { startSmallApiServer, token } from './small-api-server.ts'

interface Answer {
  readonly reason?: string
  readonly status?: string
  readonly metadata: { readonly name: string; readonly continue?: string }
  readonly items: readonly object[]
}

const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }

test('the small API server answers in Kubernetes’ shapes', async t => {
  const { url, cluster } = await startSmallApiServer(t, ['pawl'])
  const jobs = `${url}/apis/batch/v1/namespaces/pawl/jobs`
  const body = JSON.stringify(manifestOf(stageToRun({ parallelism: 2 }), settleKubernetes({})))
  const ask = async (address: string, init = {}) => {
    const answer = await fetch(address, { headers, ...init })
    return [answer.status, (await answer.json()) as Answer] as const
  }
  const [created, job] = await ask(jobs, { method: 'POST', body })
  assert.deepEqual([created, faultsInShape(job, 'V1Job')], [201, []])
  const [conflict, status] = await ask(jobs, { method: 'POST', body })
  assert.deepEqual([conflict, faultsInShape(status, 'V1Status'), status.reason], [409, [], 'AlreadyExists'])
  const pods = `${url}/api/v1/namespaces/pawl/pods`
  cluster.evictPod(cluster.list('pods', 'pawl')[0]!)
  cluster.killPod(cluster.list('pods', 'pawl')[1]!)
  const [, list] = await ask(pods)
  assert.deepEqual([faultsInShape(list, 'V1PodList'), list.items.length], [[], 4])
  const [, page] = await ask(`${pods}?limit=3`)
  assert.equal(page.items.length, 3)
  const { continue: next } = page.metadata
  const [, last] = await ask(`${pods}?limit=3&continue=${next}`)
  assert.deepEqual([last.items.length, last.metadata.continue], [1, undefined])
  const [gone, expired] = await ask(`${pods}?continue=stale`)
  assert.deepEqual([gone, faultsInShape(expired, 'V1Status'), expired.reason], [410, [], 'Expired'])
  cluster.failJob(
    cluster.list('jobs', 'pawl')[0]!,
    'BackoffLimitExceeded',
    'Job has reached the specified backoff limit',
  )
  assert.deepEqual(faultsInShape((await ask(jobs))[1], 'V1JobList'), [])
  const { name } = job.metadata
  const [deleted, success] = await ask(`${jobs}/${name}?propagationPolicy=Background`, { method: 'DELETE' })
  assert.deepEqual([deleted, faultsInShape(success, 'V1Status'), success.status], [200, [], 'Success'])
  assert.equal((await ask(`${jobs}/${name}`))[0], 404)
  assert.equal((await fetch(jobs)).status, 401)
})

test('a watch of the small API server tells what changed since a version, and what changes then', async t => {
  const { url, cluster } = await startSmallApiServer(t, ['pawl'])
  const since = cluster.version
  const job = cluster.createJob(manifestOf(stageToRun(), settleKubernetes({})) as never, 'pawl')
  const watched = await fetch(`${url}/api/v1/namespaces/pawl/pods?watch=true&resourceVersion=${since}`, { headers })
  const lines = createInterface({ input: Readable.fromWeb(watched.body as never) })[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value as string) as { type: string; object: object }
  const added = await next()
  assert.deepEqual([added.type, faultsInShape(added.object, 'V1Pod')], ['ADDED', []])
  cluster.removeJob(job)
  assert.equal((await next()).type, 'DELETED')
})
