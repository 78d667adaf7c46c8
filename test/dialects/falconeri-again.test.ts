/** Repeated and contradicting reports on output files, and jobs that cannot be retried. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { falconeriRig, type Job } from '../harness/falconeri.ts'

test('an output file that is done stays done, and one in error stays in error', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const pod = f.pod('pod')
  const { datum } = await pod.take(id)
  const uris = [`${f.outbox.uri}x`, `${f.outbox.uri}y`]
  const [x, y] = await pod.files(datum.id, uris)
  const say = async (file: string, status: string) => (await pod.uploaded(datum.id, [{ id: file, status }])).status
  assert.deepEqual([await say(x!.id, 'done'), await say(y!.id, 'error')], [204, 204])
  assert.deepEqual([await say(x!.id, 'error'), await say(y!.id, 'done')], [409, 409])
  assert.deepEqual([await say(x!.id, 'done'), await say(y!.id, 'error')], [204, 204], 'said again, it is as it was')
  const files = await pod.files(datum.id, uris)
  assert.deepEqual(
    files.map(({ status }) => status),
    ['done', 'error'],
  )
})

test('a job in error none of whose datums is to be done again cannot be retried', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const { datum } = await f.pod('pod').take(id)
  const { epoch } = await f.engine.task(datum.id)
  await f.engine.succeed(datum.id, epoch, { partial: true })
  assert.equal((await f.job(id)).status, 'error')
  const { status, text } = await f.ask('POST', `/jobs/${id}/retry`)
  assert.equal(status, 409, text)
  assert.equal((await f.get<{ jobs: Job[] }>('/jobs/list')).jobs.length, 1)
})

test('a job whose inputs could not be found looks for them again when it is retried', async t => {
  const f = await falconeriRig(t)
  const input = { atom: { URI: `${f.inbox.uri}later/`, repo: 'texts', glob: '/*' } }
  const { id, status } = await f.run({ input })
  assert.equal(status, 'error')
  await f.inbox.write({ 'later/a': 'A' })
  const { job } = await f.post<{ job: Job }>(`/jobs/${id}/retry`)
  assert.equal((await f.pod('pod').take(job.id)).datum.status, 'running')
})
