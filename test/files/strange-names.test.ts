/** Untrusted names in a bucket or a folder, through a whole job: each works or is rejected by name. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { findInputs, putInPlace } from '../../src/babysitter/chores.ts'
import { commandTask } from '../../src/commands/command-task.ts'
import { openFiles } from '../../src/files/files.ts'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import { startWorker } from '../../src/worker/index.ts'
import { fill, textsIn } from '../harness/command-fleet.ts'
import { eventually } from '../harness/eventually.ts'
import { folder } from '../harness/files.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import { startSmallS3 } from './small-s3.ts'

const bounded = { timeout: 600_000 }
const latin1 = (text: string) => Buffer.from(text).toString('latin1')

/** Copies every input under the same name. */
const run = { command: ['sh', '-c', 'cp -R "$PAWL_IN"/doc/. "$PAWL_OUT"/'] }
const options = { retry: { attempts: 1 }, failFast: false, heartbeatSeconds: null }

interface Copying extends Fresh {
  /** Resolves with the job when it has ended. */
  copy(from: string, to: string, glob?: string): Promise<JobView>
  /** The folder of the attempts. */
  readonly attempts: string
}

async function copying(t: TestContext, endpoint?: string): Promise<Copying> {
  const credentials = { accessKeyId: 'test', secretAccessKey: 'secret' }
  const s3 = endpoint === undefined ? {} : { s3: { endpoint, credentials, tries: 2 } }
  const attempts = join(await mkdtemp(join(tmpdir(), 'pawl-names-')), 'attempts')
  const f = await fresh(t, { files: s3 })
  const worker = startWorker(f.engine, [commandTask({ files: openFiles(s3), folder: attempts })], {
    waitSeconds: 0.2,
    drainSeconds: 1,
  })
  t.after(async () => {
    await worker.stop()
    await rm(join(attempts, '..'), { recursive: true })
  })
  return {
    ...f,
    attempts,
    async copy(from, to, glob = '/*') {
      const inputs = { doc: { uri: from, glob } }
      const { id } = await f.engine.submit({
        name: 'copy',
        stages: [{ name: 's', run, inputs, outputs: to, ...options }],
      })
      return eventually(
        'the job has ended',
        async () => {
          for (const chore of [findInputs, putInPlace]) await chore.run(f.engine.context)
          const job = await f.engine.job(id)
          return job.endedAt !== null && job
        },
        60,
      )
    },
  }
}

/** Names that are valid everywhere. */
const fine = [
  'new\nline',
  ' blanks ',
  'quote"\'`$(touch x)`;&|<>',
  '100%25?#[x]',
  '*',
  '-rf',
  '--help',
  '~',
  '...',
  'Case',
  'case',
  'CASE',
  'é',
  'e\u0301',
  '漢字\u{1f600}',
  '\u202etxt.exe',
  '\u0001\u001b[31m',
  `${'x'.repeat(255)}`,
  'a(1)!.txt',
  'a+b=c,d@e:f',
]

test('names in a bucket that are odd and harmless are copied as they are, each to its own', bounded, async t => {
  const s3 = await startSmallS3()
  t.after(() => s3.close())
  const bucket = s3.buckets.get('bucket')!
  await fill(t, bucket, Object.fromEntries(fine.map(name => [`in/${latin1(name)}`, name])))
  const { copy } = await copying(t, s3.endpoint)
  const job = await copy('s3://bucket/in/', 's3://bucket/out/')
  const shown = JSON.stringify(job.stages[0])
  assert.deepEqual([job.state, job.progress.total], ['succeeded', fine.length], shown)
  const expected = Object.fromEntries(fine.map(name => [latin1(name), name]).toSorted(([a], [b]) => (a! < b! ? -1 : 1)))
  assert.deepEqual(await textsIn(bucket, 'out/'), expected)
})

test('names in a folder that are odd and harmless are copied as they are, each to its own', bounded, async t => {
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write(Object.fromEntries(fine.map(name => [name, name])))
  const { copy } = await copying(t)
  const job = await copy(inbox.uri, outbox.uri)
  assert.deepEqual([job.state, job.progress.total], ['succeeded', fine.length], JSON.stringify(job.stages[0]))
  assert.deepEqual(await outbox.read(), await inbox.read())
})

/** Keys by their defect, with the expected message. None of them may become a file anywhere. */
const refused: Readonly<Record<string, [key: string, expected: RegExp]>> = {
  '../../x': ['../../x', /name: "\.\.\/.*folder: "s3:\/\/bucket\/in\/"/],
  'a part that is a dot': ['a/./x', /name: ".*\.\/.*folder: "s3:\/\/bucket\/in\//],
  'an absolute name': ['/etc/x', /name: "\/.*folder: "s3:\/\/bucket\/in\/"/],
  'an empty part': ['a//x', /name: ".*\/.*folder: "s3:\/\/bucket\/in\//],
  'bytes that are not UTF-8': ['\xff\xfex', /name: ".*\\\\xff\\\\xfex".*folder: "s3:\/\/bucket\/in\/"/],
  'a name of 1,000 characters': ['y'.repeat(1000), /yyyy.*255 bytes/],
}

for (const glob of ['/*', '/']) {
  for (const [what, [key, expected]] of Object.entries(refused)) {
    test(
      `${what} in a bucket, by the glob ${glob}: nothing leaves its folder, and it is refused by name`,
      bounded,
      async t => {
        const s3 = await startSmallS3()
        t.after(() => s3.close())
        const bucket = s3.buckets.get('bucket')!
        await fill(t, bucket, { [`in/${key}`]: 'bad', 'in/good': 'good' })
        const { copy, engine, attempts } = await copying(t, s3.endpoint)
        const { id, state, stages } = await copy('s3://bucket/in/', 's3://bucket/out/', glob)
        const tasks = (await engine.tasks({ jobId: id })).items
        const messages = [stages[0]!.error, ...tasks.map(({ error }) => error)]
          .map(error => error?.message ?? '')
          .join('\n')
        assert.equal(state, 'failed', messages)
        assert.match(messages, expected)
        const elsewhere = [...bucket.keys()].filter(at => at !== `in/${key}` && at !== 'in/good' && at !== 'out/good')
        assert.deepEqual(elsewhere, [])
        const left = await readdir(join(attempts, '..'), { recursive: true })
        assert.deepEqual(
          left.filter(name => name !== 'attempts'),
          [],
        )
      },
    )
  }
}

test(
  'a name in a folder that is not UTF-8 is refused by its bytes, and so is one that a command puts out',
  bounded,
  async t => {
    const [inbox, outbox, good] = [await folder(t), await folder(t), await folder(t)]
    await writeFile(Buffer.concat([Buffer.from(`${inbox.path}/`), Buffer.from([0xff, 0x78])]), 'bad')
    const { copy, engine } = await copying(t)
    const first = await copy(inbox.uri, outbox.uri)
    assert.equal(first.state, 'failed')
    assert.match(first.stages[0]!.error!.message, /\\\\xffx/)
    await good.write({ x: '' })
    const odd = { command: ['sh', '-c', `: > "$PAWL_OUT/$(printf '\\377')"`] }
    const { id } = await engine.submit({
      name: 'odd',
      stages: [{ name: 's', run: odd, outputs: outbox.uri, ...options }],
    })
    const failedTask = async () => (await engine.tasks({ jobId: id, state: ['failed', 'dead_lettered'] })).items[0]
    const { error } = await eventually('it has failed', failedTask)
    assert.match(error!.message, /not UTF-8/)
    assert.deepEqual(await outbox.read(), {})
  },
)
