/** Jobs with files from the command line: the base of relative URIs, and pipeline specs of other systems. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import type { CommandPayload } from '../../src/kernel/datum.ts'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import { type Cli, cli } from '../harness/cli.ts'
import { claimCommands, doFileChores } from '../harness/files.ts'
import { type Served, served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }

interface Place extends Served {
  readonly pawl: Cli
  write(files: Record<string, string>): Promise<void>
}

async function place(t: TestContext): Promise<Place> {
  const run = await served(t)
  const pawl = await cli(t, { PAWL_SERVER: run.server.url })
  const write = async (files: Record<string, string>) => {
    for (const [name, text] of Object.entries(files)) {
      await mkdir(join(pawl.folder, name, '..'), { recursive: true })
      await writeFile(join(pawl.folder, name), text)
    }
  }
  return { ...run, pawl, write }
}

const spec = {
  name: 'copies',
  stages: [
    { name: 'copy', run: { command: ['true'] }, inputs: { doc: { uri: 'file://./docs' } }, outputs: 'file://./out' },
  ],
}

test(
  'file://./ means the folder of the spec’s file, of a module too, and from a pipe the working folder',
  bounded,
  async t => {
    const { pawl, write, engine } = await place(t)
    const module = `export const job = ${JSON.stringify({ ...spec, name: 'module' })}\n`
    await write({
      'docs/a.txt': 'A',
      'jobs/docs/b.txt': 'B',
      'jobs/spec.json': JSON.stringify(spec),
      'jobs/spec.ts': module,
    })
    const ways: [string[], string, string?][] = [
      [['job', 'run', 'jobs/spec.json'], 'jobs/'],
      [['job', 'run', 'jobs/spec.ts'], 'jobs/'],
      [['job', 'run', '-'], '', JSON.stringify(spec)],
    ]
    for (const [words, from, input = ''] of ways) {
      const { code, err, json } = await pawl.runProcess([...words, '--json'], { input })
      assert.deepEqual([code, err], [0, ''])
      await doFileChores({ engine })
      const { items } = await engine.tasks({ jobId: (json() as JobView).id })
      const { inputs, outputs } = items[0]!.payload as CommandPayload
      const folder = `file://${pawl.folder}/${from}`
      const name = from === '' ? 'a.txt' : 'b.txt'
      assert.deepEqual([inputs[0]!.uri, outputs], [`${folder}docs/${name}`, `${folder}out/`])
    }
  },
)

test('a relative URI that is sent to the server itself is refused, and it is said why', bounded, async t => {
  const { request } = await place(t)
  const answer = await request('/v1/jobs', { method: 'POST', json: spec })
  assert.equal(answer.status, 422)
  assert.match(await answer.text(), /must be absolute: file:\/\/\.\/out is meant from the file of a spec/)
})

const pipeline = {
  pipeline: { name: 'book_words' },
  transform: { cmd: ['sh', '-c', 'wc -w /pfs/books/* > /pfs/out/count'], image: 'alpine:3', env: { LANG: 'C' } },
  parallelism_spec: { constant: 3 },
  resource_requests: { memory: '64Mi', cpu: 0.5 },
  datum_tries: 2,
  job_timeout: '1h30m',
  input: { atom: { URI: 'file://./books', repo: 'books', glob: '/*' } },
  egress: { URI: 'file://./words' },
}

test('a pipeline of Falconeri’s is taken as it is: in Kubernetes, and with --local by any worker', bounded, async t => {
  const run = await place(t)
  const { pawl, write, engine } = run
  await write({ 'pipeline.json': JSON.stringify(pipeline), 'books/moby.txt': 'Call me Ishmael.' })
  const cluster = await pawl.run(['job', 'run', 'pipeline.json'])
  assert.equal(cluster.code, 0, cluster.err)
  assert.match(cluster.err, /run in Kubernetes.*--local/)
  const [job] = (await engine.jobs()).items
  const [stage] = job!.stages
  assert.deepEqual([job!.name, stage!.queue, stage!.files?.runner], ['book-words', `k8s-${stage!.id}`, 'kubernetes'])

  const local = await pawl.run(['job', 'run', 'pipeline.json', '--local', '--json'])
  assert.deepEqual([local.code, local.err], [0, ''])
  const { deadlineAt, createdAt, stages } = local.json() as JobView
  assert.deepEqual([stages[0]!.queue, stages[0]!.files?.runner], ['command', null])
  assert.equal(Math.round((Date.parse(deadlineAt!) - Date.parse(createdAt)) / 60_000), 90)
  await doFileChores(run)
  const [task] = await claimCommands(run)
  assert.deepEqual(task!.payload.run.command, pipeline.transform.cmd)
  assert.deepEqual([task!.payload.run.mount, task!.payload.run.env], ['/pfs', { LANG: 'C' }])
  assert.equal(task!.payload.inputs[0]!.uri, `file://${pawl.folder}/books/moby.txt`)
})

test('what job convert prints can be kept and run: YAML, or JSON; nothing is submitted', bounded, async t => {
  const { pawl, write, engine } = await place(t)
  await write({ 'pipeline.json': JSON.stringify(pipeline) })
  const yaml = await pawl.run(['job', 'convert', 'pipeline.json'])
  assert.deepEqual([yaml.code, yaml.err], [0, ''])
  const { name, stages } = parse(yaml.out)
  assert.deepEqual([name, stages[0].outputs], ['book-words', `file://${pawl.folder}/words`])
  assert.deepEqual((await pawl.run(['job', 'convert', 'pipeline.json', '--json'])).json(), parse(yaml.out))
  const local = await pawl.run(['job', 'convert', 'pipeline.json', '--local'])
  assert.ok(stages[0].runner.kubernetes && !('runner' in parse(local.out).stages[0]))
  assert.deepEqual((await engine.jobs()).items, [])
  assert.equal((await pawl.runProcess(['job', 'run', '-'], { input: yaml.out })).code, 0)
  assert.equal((await engine.jobs()).items[0]?.name, 'book-words')
})

test(
  'all that is wrong with a pipeline is told at once, in its own words, and nothing is submitted',
  bounded,
  async t => {
    const { pawl, write, engine } = await place(t)
    const transform = { ...pipeline.transform, secrets: [{ name: 'ssl', mount_path: 'ssl' }], imge: 'x' }
    await write({ 'bad.json': JSON.stringify({ ...pipeline, transform, job_timeout: 'soon' }) })
    for (const word of ['run', 'convert']) {
      const { code, err } = await pawl.run(['job', word, 'bad.json'])
      assert.equal(code, 2)
      assert.match(err, /transform\.imge: unknown field; did you mean 'image'\?/)
      assert.match(err, /transform\.secrets\[0\]\.mount_path: must be an absolute path/)
      assert.match(err, /job_timeout: must be a time/)
    }
    assert.deepEqual((await engine.jobs()).items, [])
  },
)

test('k8s render shows the Job of a pipeline', bounded, async t => {
  const pawl = await cli(t)
  await writeFile(join(pawl.folder, 'pipeline.json'), JSON.stringify(pipeline))
  const { code, err, out } = await pawl.run(['k8s', 'render', 'pipeline.json'])
  assert.equal(code, 0, err)
  const { kind, spec } = parse(out)
  const [worker] = spec.template.spec.containers
  assert.deepEqual([kind, spec.parallelism, worker.image], ['Job', 3, 'alpine:3'])
  assert.deepEqual(worker.resources.requests, { cpu: '500m', memory: '64Mi' })
})

test('the help of job run says that nothing is uploaded', bounded, async t => {
  const { out } = await (await cli(t)).run(['job', 'run', '--help'])
  assert.match(out, /Input files are not uploaded: workers read them from where they are/)
})
