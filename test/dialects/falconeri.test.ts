/**
 * Falconeri's requests and answers, one by one. For its document see falconeri-seed.test.ts, for whole jobs
 * falconeri-worker.test.ts, for permissions of pods falconeri-holders.test.ts.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jobDeadlines } from '../../src/babysitter/job-chores.ts'
import { eventually } from '../harness/eventually.ts'
import { type Datum, falconeriRig, type InputFile, type Job } from '../harness/falconeri.ts'

const naive = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/

test('a pipeline runs as a job, whose name is found again and is not another’s', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const job = await f.run()
  assert.match(job.job_name, /^word-count-[0-9a-z]{10}$/)
  assert.deepEqual([job.status, job.command, job.egress_uri], ['running', ['wc', '-w'], f.outbox.uri])
  assert.deepEqual(job.pipeline_spec, f.spec())
  assert.match(job.created_at, naive)
  const other = await f.run()
  assert.notEqual(other.job_name, job.job_name)
  assert.deepEqual(await f.get(`/jobs?job_name=${job.job_name}`), { job })
  assert.deepEqual(await f.get(`/jobs/${job.id}`), { job })
  assert.deepEqual(await f.get('/jobs/list'), { jobs: [other, job] })
})

test('a job has its datums as soon as it is answered, each with its files at the paths that its command knows', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ 'a b.txt': 'A', 'sub/c.txt': 'C' })
  const datums = async (input: object) => {
    const { id } = await f.run({ input })
    const pod = f.pod('pod')
    const found: string[][] = []
    for (let got = await pod.reserve(id); got !== null; got = await pod.reserve(id)) {
      found.push(got.input_files.map(({ local_path, uri }) => `${local_path} ${uri.replace(f.inbox.uri, '')}`))
      await pod.done(got.datum.id)
    }
    assert.equal((await f.job(id)).status, 'done')
    return found.sort()
  }
  const atom = { URI: f.inbox.uri, repo: 'texts', glob: '/*' }
  const whole = { ...atom, repo: 'all', glob: '/' }
  const parts = [['/pfs/texts/a b.txt a%20b.txt'], ['/pfs/texts/sub/ sub/']]
  assert.deepEqual(await datums({ atom }), parts)
  assert.deepEqual(await datums({ pfs: whole }), [['/pfs/all/ ']])
  assert.deepEqual(await datums({ union: [{ atom }, { pfs: whole }] }), [['/pfs/all/ '], ...parts])
  assert.deepEqual(
    await datums({ cross: [{ pfs: whole }, { atom }] }),
    parts.map(([part]) => ['/pfs/all/ ', part]),
  )
})

test('a job without datums is done, and one whose folder is not there is in error', async t => {
  const f = await falconeriRig(t)
  assert.equal((await f.run()).status, 'done')
  const atom = { URI: `${f.inbox.uri}nowhere`, repo: 'texts', glob: '/*' }
  assert.equal((await f.run({ input: { atom } })).status, 'error')
})

test('while the inputs are being found there is no datum yet, and the job runs', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  await f.sql.script(`create function pawl.never() returns trigger language plpgsql as 'begin return null; end';
    create trigger never before update on pawl.listing for each row execute function pawl.never()`)
  const asking = f.run()
  const newest = async () => (await f.get<{ jobs: Job[] }>('/jobs/list')).jobs[0]
  const { id } = await eventually('the job is there', newest)
  assert.equal(await f.pod('pod').reserve(id), null)
  assert.equal((await f.job(id)).status, 'running')
  assert.deepEqual((await f.describe(id)).datum_status_counts, [])
  await f.sql.script('drop trigger never on pawl.listing')
  assert.equal((await asking).id, id)
  assert.notEqual(await f.pod('pod').reserve(id), null)
})

test('a job is described by its datums, counted by their status', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: '', b: '', c: '', d: '', e: '' })
  const { id } = await f.run({ datum_tries: 2 })
  const [one, two] = [f.pod('pod-1', 'node-1'), f.pod('pod-2', 'node-2')]
  const done = (await one.take(id)).datum
  await one.done(done.id)
  const [tried, held] = [(await one.take(id)).datum, (await two.take(id)).datum]
  const error = { message: 'not yet', output: 'reading…', retryInSeconds: 3600 }
  await f.engine.fail(tried.id, tried.attempted_run_count, { error })
  const { job, datum_status_counts, running_datums, error_datums } = await f.describe(id)
  assert.equal(job.id, id)
  assert.deepEqual(datum_status_counts, [
    { status: 'ready', count: 2, rerunable_count: 0 },
    { status: 'running', count: 1, rerunable_count: 0 },
    { status: 'done', count: 1, rerunable_count: 0 },
    { status: 'error', count: 1, rerunable_count: 1 },
  ])
  assert.deepEqual(
    running_datums.map(({ id, node_name, pod_name }) => [id, node_name, pod_name]),
    [[held.id, 'node-2', 'pod-2']],
  )
  assert.deepEqual(
    error_datums.map(({ id, status, output }) => [id, status, output]),
    [[tried.id, 'error', 'reading…']],
  )
})

test('a job in error is done again as a new one, of its own name, with just what did not succeed', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A', b: 'B', c: 'C' })
  const { id, job_name } = await f.run({ datum_tries: 2 })
  const pod = f.pod('pod')
  const paths: string[] = []
  const early = await f.ask('POST', `/jobs/${id}/retry`)
  assert.equal(early.status, 409, early.text)
  for (let got = await pod.reserve(id); got !== null; got = await pod.reserve(id)) {
    const [{ local_path }] = got.input_files as [InputFile]
    if (local_path.endsWith('/b')) paths.push(local_path)
    await (local_path.endsWith('/b') ? pod.error(got.datum.id) : pod.done(got.datum.id))
  }
  assert.deepEqual([(await f.job(id)).status, paths], ['error', ['/pfs/texts/b', '/pfs/texts/b']])
  assert.deepEqual((await f.engine.deadLetters()).items, [], 'it knows no dead letters')
  const { job } = await f.post<{ job: Job }>(`/jobs/${id}/retry`)
  assert.match(job.job_name, /^word-count-[0-9a-z]{10}$/)
  assert.notEqual(job.job_name, job_name)
  assert.deepEqual([job.status, job.pipeline_spec], ['running', f.spec({ datum_tries: 2 })])
  const again = await pod.take(job.id)
  assert.deepEqual([again.datum.attempted_run_count, again.datum.maximum_allowed_run_count], [1, 2])
  assert.equal(again.input_files[0]!.local_path, '/pfs/texts/b')
  await pod.done(again.datum.id)
  assert.deepEqual([(await f.job(job.id)).status, (await f.job(id)).status], ['done', 'error'])
  assert.equal((await f.ask('POST', `/jobs/${job.id}/retry`)).status, 409, 'nothing of it is in error')
})

test('a job that takes longer than it may is in error, and can be done again', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run({ job_timeout: '1h 30m' })
  const [task] = (await f.engine.jobTasks(id)).items
  await f.advance(5401)
  await jobDeadlines.run(f.engine.context)
  assert.equal((await f.job(id)).status, 'error')
  const { job } = await f.post<{ job: Job }>(`/jobs/${id}/retry`)
  assert.notEqual((await f.pod('pod').take(job.id)).datum.id, task!.id)
})

test('a lease lasts a day or as long as the server is told, however long the job may take', async t => {
  for (const leaseSeconds of [undefined, 600]) {
    const f = await falconeriRig(
      t,
      leaseSeconds === undefined ? {} : { server: { falconeriLeaseSeconds: leaseSeconds } },
    )
    await f.inbox.write({ a: 'A' })
    for (const job_timeout of [null, '1s', '2h', '2years']) {
      const { datum } = await f.pod('pod').take((await f.run({ job_timeout })).id)
      const { leaseUntil } = await f.engine.task(datum.id)
      const seconds = (Date.parse(leaseUntil!) - (await f.engine.internals.clock())) / 1000
      const expected = leaseSeconds ?? 86_400
      assert.ok(seconds <= expected && seconds > expected - 60, `${job_timeout}: ${seconds}`)
    }
  }
})

test('a held datum is Pawl’s task too: in hand of a worker that is named by its node and its pod', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const { datum } = await f.pod('pod-7', 'node-3').take(id)
  const { owner, state, leaseUntil } = await f.engine.task(datum.id)
  assert.deepEqual([owner, state, leaseUntil !== null], ['node-3/pod-7', 'running', true])
  const [worker] = (await f.engine.workers()).items
  assert.deepEqual([worker!.worker, worker!.leases], ['node-3/pod-7', 1])
  const long = await f.pod('p'.repeat(150), 'n'.repeat(300)).reserve(id)
  assert.equal(long, null)
})

test('more pods than a pipeline starts get a datum each: one that died holds none up', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: '', b: '', c: '' })
  const { id } = await f.run({ parallelism_spec: { constant: 1 } })
  const got = await Promise.all(['pod-1', 'pod-2', 'pod-3'].map(name => f.pod(name).take(id)))
  assert.equal(new Set(got.map(({ datum }) => datum.id)).size, 3)
})

test('a datum keeps what its command wrote: all of a little, the end of much, and whatever bytes it was', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: '', b: '' })
  const { id } = await f.run()
  const pod = f.pod('pod')
  const datum = (text: string) => JSON.parse(text).datum as Datum
  const much = `${'x'.repeat(3_000_000)} the end \0 \ud800`
  const first = datum((await pod.done((await pod.take(id)).datum.id, much)).text)
  assert.match(first.output!, /^\(the first \d+ characters are not kept\)\nx+ the end \uFFFD \uFFFD$/)
  assert.ok(first.output!.length < 66_000)
  const second = datum((await pod.error((await pod.take(id)).datum.id, `boom ${much}`)).text)
  assert.match(second.error_message!, /the end/)
  assert.equal(second.output, 'reading…\n')
})

test('files of any name are registered as their worker names them', async t => {
  const f = await falconeriRig(t)
  await f.inbox.write({ a: 'A' })
  const { id } = await f.run()
  const pod = f.pod('pod')
  const { datum } = await pod.take(id)
  const names = ['100%.txt', 'a b (1).txt', 'sub/ü#?.txt', 'x%20y']
  const uris = names.map(name => `${f.outbox.uri}${name}`)
  const files = await pod.files(datum.id, uris)
  assert.deepEqual(files.map(({ uri }) => uri).toSorted(), uris.toSorted())
  assert.deepEqual(await pod.files(datum.id, uris.toReversed()), files)
  await pod.uploaded(
    datum.id,
    files.map(({ id }) => ({ id, status: 'done' })),
  )
  await pod.done(datum.id)
  const { items } = await f.engine.jobArtifacts(id, { state: 'stored' })
  assert.deepEqual(items.map(({ name }) => name).toSorted(), names.toSorted())
})

test('what S3 calls its objects is told as it is, for whoever decodes nothing', async t => {
  const f = await falconeriRig(t)
  const atom = { URI: 's3://bucket/in put/', repo: 'texts', glob: '/' }
  const { id } = await f.run({ input: { atom }, egress: { URI: 's3://bucket/out' } })
  const pod = f.pod('pod')
  const { datum, input_files } = await pod.take(id)
  assert.deepEqual(
    input_files.map(({ uri, local_path }) => [uri, local_path]),
    [['s3://bucket/in put/', '/pfs/texts/']],
  )
  const [file] = await pod.files(datum.id, ['s3://bucket/out/a b'])
  assert.equal(file!.uri, 's3://bucket/out/a b')
})

test('other jobs can be seen; their tasks cannot be reserved or spoken of, nor the jobs retried', async t => {
  const f = await falconeriRig(t)
  const { id } = await f.engine.submit({ name: 'mails', stages: [{ name: 'send', task: 'mail', payloads: [1, 2] }] })
  const job = await f.job(id)
  assert.deepEqual([job.job_name, job.status, job.pipeline_spec, job.command], ['mails', 'running', null, []])
  assert.deepEqual((await f.describe(id)).datum_status_counts, [{ status: 'ready', count: 2, rerunable_count: 0 }])
  const [task] = (await f.engine.jobTasks(id)).items
  const { datum } = await f.get<{ datum: Datum }>(`/datums/${task!.id}/describe`)
  assert.deepEqual([datum.job_id, datum.status], [id, 'ready'])
  const asked = await f.ask('POST', `/jobs/${id}/reserve_next_datum`, { node_name: 'n', pod_name: 'p' })
  assert.equal(asked.status, 404)
  const [held] = await f.engine.claims({ worker: 'w', queues: ['mail'] })
  const answer = await f.pod('w').done(held!.id)
  assert.deepEqual([answer.status, (await f.engine.task(held!.id)).state], [403, 'assigned'])
  await f.engine.fail(held!.id, held!.epoch, { error: { message: 'no', permanent: true } })
  assert.equal((await f.job(id)).status, 'error')
  assert.equal((await f.ask('POST', `/jobs/${id}/retry`)).status, 404)
  const alone = await f.engine.enqueue('mail', {})
  assert.equal((await f.ask('GET', `/datums/${alone.id}/describe`)).status, 404)
})
