/** Errors of a whole job. Falconeri has no place for them, but `falconeri job describe` prints the errors of datums. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { endGraces } from '../../src/babysitter/chores.ts'
import { jobDeadlines } from '../../src/babysitter/job-chores.ts'
import { runInKubernetes } from '../../src/babysitter/run-in-kubernetes.ts'
import { withSmallS3 } from '../files/places.ts'
import { credentials } from '../files/s3rver.ts'
import { type FalconeriRig, falconeriRig } from '../harness/falconeri.ts'
import { runnerOn } from '../kubernetes/runner-on.ts'
import { startSmallApiServer } from '../kubernetes/small-api-server.ts'

const errorsOf = async ({ describe }: FalconeriRig, id: string) =>
  (await describe(id)).error_datums.map(({ error_message }) => error_message)

test('a job whose bucket does not exist is in error, and its description names the bucket', t =>
  withSmallS3(async ({ s3 }) => {
    s3.buckets.clear()
    const f = await falconeriRig(t, { engine: { files: { s3: { endpoint: s3.endpoint, credentials } } } })
    const { id, status } = await f.run({ input: { atom: { URI: 's3://nowhere/in', repo: 'in', glob: '/*' } } })
    assert.equal(status, 'error')
    const [reason, ...others] = await errorsOf(f, id)
    assert.match(reason!, /s3:\/\/nowhere\/in\/.*NoSuchBucket/)
    assert.deepEqual([others, (await f.describe(id)).datum_status_counts], [[], []])
  }))

test('a job that ran into job_timeout says so', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run({ job_timeout: '5m' })
  await f.advance(301)
  await jobDeadlines.run(f.engine.context)
  assert.deepEqual(
    [(await f.job(id)).status, await errorsOf(f, id)],
    ['error', ['The job ran longer than job_timeout.']],
  )
})

test('a job that runs into job_timeout ends, though a silent pod holds a datum', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run({ job_timeout: '5m' })
  const { datum } = await f.pod('silent').take(id)
  await f.advance(301)
  await jobDeadlines.run(f.engine.context)
  // The datum may still finish within its grace period.
  await f.advance(301 + 31)
  await endGraces.run(f.engine.context)
  assert.equal((await f.job(id)).status, 'error')
  assert.equal((await f.pod('silent').done(datum.id)).status, 403)
})

test('a job whose pods Kubernetes does not allow runs on, and its description says why nothing happens', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const cluster = await startSmallApiServer(t, ['pawl'])
  cluster.allows = ({ verb }) => verb !== 'create'
  await runInKubernetes(await runnerOn(t, cluster.url)).run(f.engine.context)
  assert.equal((await f.job(id)).status, 'running')
  assert.match((await errorsOf(f, id))[0]!, /cannot create resource/)
})

test('a job that is done, and one whose datums alone are in error, have no reason of their own', async t => {
  const f = await falconeriRig(t)
  assert.deepEqual(await errorsOf(f, (await f.run()).id), [])
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const { datum } = await f.pod('pod').take(id)
  await f.pod('pod').error(datum.id, 'exit status: 1')
  assert.deepEqual([(await f.job(id)).status, await errorsOf(f, id)], ['error', ['exit status: 1']])
})
