/**
 * Storage that fails in the middle of a job: the task names the step and the reason, and continues once it is repaired.
 */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { commandFleet, type Fleet, fill, hurried, textsIn } from '../harness/command-fleet.ts'
import { needsServer } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import type { Asked } from './small-s3.ts'

const bounded = { timeout: 600_000, ...needsServer() }
const copy = { command: ['sh', '-c', 'cp "$PAWL_IN"/doc/* "$PAWL_OUT"/'] }
const once = { retry: { attempts: 1 }, failFast: false }
const patient = { retry: { attempts: 50, delaySeconds: 0.2 } }

/** A job over the files in `in/`, with a server. The test decides which worker runs it. */
async function submit({ engine, startServer }: Fleet, stage: Partial<StageSpec>): Promise<string> {
  startServer()
  const inputs = { doc: { uri: 's3://bucket/in/' } }
  const whole = { name: 's', run: copy, inputs, outputs: 's3://bucket/out/', ...hurried, ...stage }
  return (await engine.submit({ name: 'bad place', stages: [whole] })).id
}

/** The first error of a task of the job. */
function failed({ engine }: Fleet, jobId: string) {
  return eventually(
    'a task failed',
    async () => {
      const { items } = await engine.tasks({ jobId })
      return items.find(({ error }) => error !== null)?.error
    },
    60,
  )
}

/** A file system of a few megabytes for the duration of the test; undefined if this user may not mount one. */
function smallDisk(t: TestContext): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-small-disk-'))
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', folder], { stdio: 'pipe' })
  } catch {
    rmdirSync(folder)
    return undefined
  }
  t.after(() => {
    execFileSync('umount', ['--lazy', folder])
    rmdirSync(folder)
  })
  return folder
}

/** The file system that is full, the step that notices, and the message of the task. */
const full: readonly [
  title: string,
  step: string,
  expected: RegExp,
  stage: (disk: string) => Partial<StageSpec>,
  bytes: number,
][] = [
  ['while inputs are fetched', 'fetch', /DISK_FULL.*doc\/a.*ENOSPC/, () => ({}), 3 << 20],
  [
    'while the command runs',
    'exec',
    /[Nn]o space left/,
    () => ({ run: { command: ['sh', '-c', 'head -c 4000000 /dev/zero > "$PAWL_OUT"/x'] } }),
    1,
  ],
  [
    'where outputs are kept',
    'output',
    /DISK_FULL|disk is full|ENOSPC/,
    disk => ({
      run: { command: ['sh', '-c', 'head -c 4000000 /dev/zero > "$PAWL_OUT"/x'] },
      outputs: `file://${disk}/out/`,
    }),
    1,
  ],
]

for (const [title, step, expected, stage, bytes] of full) {
  test(`a disk that is full ${title}: the task fails at the step ${step}, and says why`, bounded, async t => {
    const fleet = await commandFleet(t)
    const disk = smallDisk(t)
    if (disk === undefined) return t.skip('only root may mount a small disk')
    await fill(t, fleet.bucket, { 'in/a': 'x'.repeat(bytes) })
    const id = await submit(fleet, { ...stage(disk), ...once })
    fleet.startWorker('w1', step === 'output' ? {} : { args: ['--folder', join(disk, 'attempts')] })
    const { state } = await fleet.jobEnds(id)
    const { step: at, message } = await failed(fleet, id)
    assert.deepEqual([state, at], ['failed', step], message)
    assert.match(message, expected)
    assert.deepEqual(await textsIn(fleet.bucket, 'out/'), {})
  })
}

const isPut = ({ method, headers }: Asked) => method === 'PUT' && headers['x-amz-copy-source'] === undefined
const isCopy = ({ headers }: Asked) => headers['x-amz-copy-source'] !== undefined
const isGet = ({ method, key }: Asked) => method === 'GET' && key.startsWith('in/')

for (const [step, isTheMoment] of [
  ['fetch', isGet],
  ['output', isPut],
] as const) {
  test(
    `a bucket that vanishes at the step ${step}: the task fails and says so; when the bucket is back, a retry goes on`,
    bounded,
    async t => {
      const fleet = await commandFleet(t)
      const { s3, bucket } = fleet
      await fill(t, bucket, { 'in/a': 'A', 'in/b': 'B' })
      s3.fault = asked => {
        if (isTheMoment(asked)) s3.buckets.delete('bucket')
        return undefined
      }
      const id = await submit(fleet, patient)
      fleet.startWorker('w1')
      assert.equal((await fleet.jobEnds(id)).state, 'failed')
      const { step: at, message } = await failed(fleet, id)
      assert.equal(at, step, message)
      assert.match(message, /NoSuchBucket/)
      s3.fault = () => undefined
      s3.buckets.set('bucket', bucket)
      await fleet.engine.retryJob(id)
      assert.equal((await fleet.jobEnds(id)).state, 'succeeded')
      const texts = Object.entries(await textsIn(bucket, 'out/')).filter(([path]) => !path.startsWith('.pawl'))
      assert.deepEqual(Object.fromEntries(texts), { a: 'A', b: 'B' })
    },
  )
}

test(
  'a bucket that vanishes before files are in their places: the stage fails, and each file says why',
  bounded,
  async t => {
    const fleet = await commandFleet(t)
    const { s3, bucket, engine } = fleet
    await fill(t, bucket, { 'in/a': 'A' })
    s3.fault = asked => {
      if (isCopy(asked)) s3.buckets.delete('bucket')
      return undefined
    }
    const id = await submit(fleet, patient)
    fleet.startWorker('w1')
    const { state, stages } = await fleet.jobEnds(id)
    assert.deepEqual([state, stages[0]!.cause], ['failed', 'output_lost'])
    const { items } = await engine.jobArtifacts(id)
    assert.match(items[0]!.error!, /NoSuchBucket|NotFound|404/)
  },
)

for (const [step, isTheMoment] of [
  ['fetch', isGet],
  ['output', isPut],
] as const) {
  test(
    `credentials that expire at the step ${step}: the task says so; when they are renewed in their file, the job succeeds`,
    bounded,
    async t => {
      const fleet = await commandFleet(t)
      const { s3, bucket } = fleet
      await fill(t, bucket, { 'in/a': 'A', 'in/b': 'B' })
      const file = join(mkdtempSync(join(tmpdir(), 'pawl-aws-')), 'credentials')
      const write = (key: string) =>
        writeFileSync(file, `[default]\naws_access_key_id = ${key}\naws_secret_access_key = x\n`)
      write('old')
      let isExpired = false
      s3.fault = asked => {
        isExpired ||= asked.signedBy === 'old' && isTheMoment(asked)
        return isExpired && asked.signedBy === 'old' ? { status: 400, code: 'ExpiredToken' } : undefined
      }
      const id = await submit(fleet, patient)
      fleet.startWorker('w1', { env: { AWS_SHARED_CREDENTIALS_FILE: file, AWS_ACCESS_KEY_ID: '' } })
      const { step: at, message } = await failed(fleet, id)
      assert.equal(at, step, message)
      assert.match(message, /ExpiredToken/)
      write('new')
      assert.equal((await fleet.jobEnds(id)).state, 'succeeded')
      assert.deepEqual((await textsIn(bucket, 'out/')).a, 'A')
    },
  )
}

/** To run it by hand: PAWL_SPARSE_MIB=5120 */
const mebibytes = Number(process.env.PAWL_SPARSE_MIB ?? 400)

test(`a file of ${mebibytes} MiB goes in and out, and the worker's memory stays as it was`, {
  timeout: 900_000,
  ...needsServer(),
}, async t => {
  const fleet = await commandFleet(t, { keepsBytes: false })
  const { bucket, engine } = fleet
  const size = mebibytes * 2 ** 20
  const zeros = { slices: [{ file: undefined, start: 0, size }], size, md5: '0', etag: '"0"', metadata: {} }
  const small = await submit(fleet, { inputs: { doc: { uri: 's3://bucket/none/' } }, ...once })
  const worker = fleet.startWorker('w1')
  assert.equal((await fleet.jobEnds(small)).state, 'succeeded')
  const before = peakMiB(worker.process.pid!)
  bucket.set('in/big', zeros)
  const text = 'stat -c %s "$PAWL_IN"/doc/big && rm "$PAWL_IN"/doc/big && truncate -s "$SIZE" "$PAWL_OUT"/big'
  const { id } = await engine.submit({
    name: 'big',
    stages: [
      {
        name: 's',
        run: { command: ['sh', '-c', text], env: { SIZE: String(size) } },
        inputs: { doc: { uri: 's3://bucket/in/' } },
        outputs: 's3://bucket/out/',
        ...once,
      },
    ],
  })
  const job = await fleet.jobEnds(id, 800)
  const [task] = (await engine.tasks({ jobId: id })).items
  assert.equal(job.state, 'succeeded', JSON.stringify(task!.error))
  assert.equal(bucket.get('out/big')!.size, size)
  const { items } = await engine.logs(task!.id)
  assert.ok(
    items.some(({ message }) => message === String(size)),
    'it came in whole',
  )
  const grown = peakMiB(worker.process.pid!) - before
  assert.ok(grown < 250, `the worker's memory grew by ${grown} MiB`)
})

function peakMiB(pid: number): number {
  return Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
}
