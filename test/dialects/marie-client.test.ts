/**
 * A Marie client written from its documents alone, with their own curl commands, and executors behind the server. The
 * server is killed in the middle and restarted.
 */
import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { connect } from '../../src/client/client.ts'
import { defineTask } from '../../src/worker/define-task.ts'
import { Skip } from '../../src/worker/errors.ts'
import { startWorker } from '../../src/worker/worker.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually, latch } from '../harness/eventually.ts'
import { freePort } from '../harness/free-port.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import type { Answer, Job } from '../harness/marie.ts'
import { startProgram } from '../harness/program.ts'

const run = promisify(execFile)
const bounded = { timeout: 600_000 }

/** A server in a separate process that can be killed and restarted. */
async function killable(t: TestContext, { url, schema }: Fresh) {
  const port = await freePort()
  const start = async () => {
    const program = startProgram(t, 'faults/programs/server.js', { database: url!, schema, port }, line => line)
    await program.printed('it is there', () => true)
    return program
  }
  let program = await start()
  return {
    url: `http://127.0.0.1:${port}`,
    async kill() {
      program.signal('SIGKILL')
      await program.ended
    },
    async revive() {
      program = await start()
    },
  }
}

interface Request {
  readonly method?: string
  readonly body?: object
}

/** Runs curl, and repeats it while the server is unreachable. */
async function byCurl(url: string, token: string, { method, body }: Request): Promise<string> {
  const again = ['--retry', '60', '--retry-all-errors', '--retry-delay', '1', '--silent', '--show-error']
  const sent = body === undefined ? [] : ['-H', 'Content-Type: application/json', '-d', JSON.stringify(body)]
  const asked = [...(method === undefined ? [] : ['-X', method]), '-H', `Authorization: Bearer ${token}`, ...sent, url]
  return (await run('curl', [...again, ...asked])).stdout
}

/** The same request on a machine without curl. */
function byFetch(url: string, token: string, { method = 'GET', body }: Request): Promise<string> {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(body !== undefined && { 'content-type': 'application/json' }),
  }
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const answer = () =>
    fetch(url, init)
      .then(response => response.text())
      .catch(() => undefined)
  return eventually('it is answered', answer)
}

const send = spawnSync('curl', ['--version']).status === 0 ? byCurl : byFetch

/** `base`: the address of the gateway. */
const curlFor =
  (base: string, token: string) =>
  async <Result>(path: string, request: Request = {}): Promise<Answer<Result>> =>
    JSON.parse(await send(`${base}${path}`, token, request))

type Curl = ReturnType<typeof curlFor>

const invoke = (curl: Curl, body: object) => curl<Job>('/api/v1/invoke', { method: 'POST', body })

async function statesOf(curl: Curl, path: string): Promise<Record<string, string>> {
  const { status, result } = await curl<Job[]>(path)
  assert.equal(status, 'OK')
  return Object.fromEntries(result.map(({ id, state }) => [id, state]))
}

test('marie: curl calls drive a DAG with a branch and a plain job to their ends, though the server is killed twice', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const story = await fresh(t)
  const { secret } = await story.engine.createKey({ name: 'marie', role: 'operator' })
  const server = await killable(t, story)
  const curl = curlFor(`${server.url}/dialects/marie`, secret)
  const dag_id = 'doc-processing-12345'
  const job = (name: string, ...dependencies: string[]) => ({
    id: `job-${name}-001`,
    dag_id,
    name,
    priority: 10,
    data: { asset_key: 's3://bucket/document.pdf', page: 1 },
    state: 'CREATED',
    retry_limit: 2,
    retry_delay: 1,
    retry_backoff: true,
    expire_in_seconds: 3600,
    dependencies: dependencies.map(other => `job-${other}-001`),
  })

  // The server is killed between two submissions, while one is being sent.
  await invoke(curl, job('ocr'))
  const dying = server.kill()
  const sent = invoke(curl, job('classify', 'ocr'))
  await dying
  await server.revive()
  assert.equal((await sent).status, 'OK')
  for (const each of [job('extract', 'classify'), job('letter', 'classify'), job('stamp', 'letter')]) {
    assert.equal((await invoke(curl, each)).status, 'OK')
  }
  const parameters = { command: 'extract', asset_key: 's3://bucket/other.pdf', pages: [1, 2, 3] }
  const plain = (await invoke(curl, { parameters })).parameters.job_id
  const stopped = (await invoke(curl, { parameters: { ...parameters, command: 'nobody' } })).parameters.job_id
  assert.deepEqual(await curl(`/api/jobs/${stopped}/stop`), { status: 'OK', result: 'Job stopped' })

  // The server is killed while an executor holds a job.
  const inHand = latch()
  const goOn = latch()
  const done: string[] = []
  const task = (type: string, work: () => Promise<void> = async () => {}) =>
    defineTask({ type, handler: () => work().then(() => void done.push(type)) })
  const client = connect({ server: server.url, key: secret, patienceSeconds: 60 })
  const worker = startWorker(client, [
    task('ocr'),
    task('classify', async () => {
      inHand.open()
      await goOn.opened
    }),
    task('extract'),
    task('letter', async () => {
      throw new Skip('branch_not_taken')
    }),
    task('stamp'),
    task('store'),
  ])
  t.after(() => worker.stop(0))
  await inHand.opened
  assert.equal((await curl<Job>('/api/jobs/job-classify-001')).result.state, 'ACTIVE')
  await server.kill()
  goOn.open()
  await server.revive()
  assert.equal((await invoke(curl, job('store', 'extract', 'stamp'))).status, 'OK')

  const [completed, skipped] = ['COMPLETED', 'SKIPPED']
  const ended = {
    'job-ocr-001': completed,
    'job-classify-001': completed,
    'job-extract-001': completed,
    'job-letter-001': skipped,
    'job-stamp-001': skipped,
    'job-store-001': completed,
  }
  const isDone = async () => (await curl<Job>('/api/jobs/job-store-001')).result.state === completed
  await eventually('the last job of the DAG is COMPLETED', isDone)
  assert.deepEqual(await statesOf(curl, `/api/jobs?dag_id=${dag_id}`), ended)
  await eventually(
    'the plain job is too',
    async () => (await curl<Job>(`/api/jobs/${plain}`)).result.state === completed,
  )
  assert.deepEqual(await statesOf(curl, '/api/jobs/SKIPPED'), { 'job-letter-001': skipped, 'job-stamp-001': skipped })
  assert.deepEqual(await statesOf(curl, '/api/jobs/CANCELLED'), { [stopped]: 'CANCELLED' })
  assert.deepEqual(done.sort(), ['classify', 'extract', 'extract', 'ocr', 'store'], 'each was done once')
  assert.equal(Object.keys(await statesOf(curl, '/api/jobs')).length, 8, 'nothing was submitted twice')
  const [dag] = (await story.engine.jobs()).items
  assert.deepEqual([dag!.name, dag!.state, dag!.stages.length], [dag_id, 'succeeded', 6])

  assert.deepEqual(await curl(`/api/jobs/${plain}`, { method: 'DELETE' }), { status: 'OK', result: 'Job deleted' })
  assert.equal((await curl(`/api/jobs/${plain}`)).code, 'NOT_FOUND')
  const { slots } = (await curl<{ slots: { name: string; capacity: number }[] }>('/api/capacity')).result
  assert.equal(slots.find(({ name }) => name === 'ocr')!.capacity, 10)
  await worker.stop()
})
