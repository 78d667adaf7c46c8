/** Output about jobs with files: datums, their workers and their outputs. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import type { ClaimedTask } from '../../src/protocol/tasks/sync.ts'
import type { StageSpec } from '../../src/spec/job-spec.ts'
import { cli } from '../harness/cli.ts'
import { eventually } from '../harness/eventually.ts'
import { artifactOf, claimCommands, doFileChores, folder, putOut, succeed } from '../harness/files.ts'
import { served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }
const wide = { env: { COLUMNS: '220' } }
const copy = { command: ['cp', 'in', 'it’s out'] }

/** A job with a task for each of these files, on a server that the command line asks. */
async function copying(t: TestContext, names: readonly string[], more: Partial<StageSpec> = {}) {
  const f = await served(t)
  const pawl = await cli(t, { PAWL_SERVER: f.server.url })
  const [inbox, outbox] = [await folder(t), await folder(t)]
  await inbox.write(Object.fromEntries(names.map(name => [name, name])))
  const stage = { name: 'copy', run: copy, inputs: { doc: { uri: inbox.uri } }, outputs: outbox.uri, ...more }
  const submit = async () => {
    const { id } = await f.engine.submit({ name: 'copies', stages: [stage] })
    await doFileChores(f)
    return id
  }
  return { f, pawl, inbox, outbox, submit, id: await submit() }
}

const nameOf = (task: ClaimedTask & { payload: { inputs: readonly { path: string }[] } }) =>
  task.payload.inputs[0]!.path
const pod = 'pawl-0123456789abcdef0123456789abcdef-1-x7k2p'

test('job describe shows datums with their files, node, pod, attempts and last error', bounded, async t => {
  const names = ['a.txt', 'b.txt', 'c.txt']
  const { f, pawl, id } = await copying(t, names, { retry: { attempts: 2, delaySeconds: 0 }, failFast: false })
  for (const _ of [1, 2]) {
    const tasks = await claimCommands(f, 100, `node-1/${pod}`)
    const bad = tasks.find(task => nameOf(task) === 'b.txt')!
    await f.engine.fail(bad.id, bad.epoch, { error: { message: 'no paper left' } })
    const good = tasks.find(task => nameOf(task) === 'a.txt')
    if (good !== undefined) await succeed(f, good)
  }
  const { code, out } = await pawl.run(['job', 'describe', id], wide)
  assert.equal(code, 0)
  assert.match(out, /copy +running +1 \+ 0 \/ 3 +1 /)
  assert.match(out, new RegExp(`IN PROGRESS.* NODE +POD[^\\n]*\\n.*doc/c.txt +\\w+ +node-1 +${pod} +1\n`))
  assert.match(out, new RegExp(`FAILED OR RETRYING.*\\n.*doc/b.txt +dead_lettered +node-1 +${pod} +2 +no paper left`))
  const { inHand, inTrouble } = (await pawl.run(['job', 'describe', id, '--json'])).json() as Record<string, object[]>
  const facts = { node: 'node-1', pod, worker: `node-1/${pod}` }
  assert.deepEqual([inHand!.length, inTrouble!.length], [1, 1])
  assert.ok(contains(inHand![0]!, { ...facts, datum: 'doc/c.txt', attempts: 1 }))
  assert.ok(contains(inTrouble![0]!, { ...facts, datum: 'doc/b.txt', attempts: 2 }))
})

function contains(whole: object, part: object): boolean {
  return Object.entries(part).every(([name, value]) => (whole as Record<string, unknown>)[name] === value)
}

test(
  'datums that were done before are counted apart, and no columns of Kubernetes are shown elsewhere',
  bounded,
  async t => {
    const { f, pawl, inbox, submit } = await copying(t, ['a.txt', 'b.txt'], { reuse: true })
    const first = await claimCommands(f)
    for (const task of first) await putOut(f, task, { [nameOf(task)]: 'x' })
    await succeed(f, ...first)
    await doFileChores(f)
    await inbox.write({ 'c.txt': 'c' })
    const id = await submit()
    await claimCommands(f, 1, 'host-17')
    const { out } = await pawl.run(['job', 'describe', id], wide)
    assert.match(out, /copy +\w+ +0 \+ 2 \/ 3 +0 /)
    assert.match(out, /DATUM +STATE +WORKER/)
    assert.match(out, /doc\/c.txt +\w+ +host-17 +1\n/)
    assert.doesNotMatch(out, /NODE|POD/)
  },
)

test('job outputs lists files with state, size, place and task; --uris those that can be read', bounded, async t => {
  const { f, pawl, outbox, id } = await copying(t, ['a.txt', 'b.txt'])
  const [one, other] = await claimCommands(f)
  await putOut(f, one!, { 'a.txt': 'x'.repeat(1500) })
  await succeed(f, one!)
  await doFileChores(f)
  await f.engine.reportArtifacts(other!.id, other!.epoch, { artifacts: [artifactOf(other!, 'b c.txt', 'registered')] })
  const list = await pawl.run(['job', 'outputs', id.slice(-8)], wide)
  assert.match(list.out, new RegExp(`a.txt +stored +1.5 kB +${outbox.uri}a.txt +${one!.id}`))
  assert.match(list.out, /b c.txt +registered /)
  assert.equal((await pawl.run(['job', 'outputs', id, '--uris'])).out, `${outbox.uri}a.txt\n`)
  const registered = ['job', 'outputs', id, '--uris', '--state', 'registered']
  assert.equal((await pawl.run(registered)).out, `${outbox.uri}b%20c.txt\n`)
  const items = (await pawl.run(['job', 'outputs', id, '--json'])).json() as { name: string; taskId: string }[]
  assert.deepEqual(
    items.map(({ name, taskId }) => [name, taskId]),
    [
      ['a.txt', one!.id],
      ['b c.txt', other!.id],
    ],
  )
  const none = await pawl.run(['job', 'outputs', id, '--state', 'error'])
  assert.deepEqual([none.code, none.out], [0, 'There are no matching files.\n'])
})

test('job outputs shows all files, however many there are', bounded, async t => {
  const { f, pawl, id } = await copying(t, ['a.txt'])
  const [task] = await claimCommands(f)
  const names = Array.from({ length: 1001 }, (_, n) => `${n}`)
  for (const part of [names.slice(0, 500), names.slice(500)]) {
    await f.engine.reportArtifacts(task!.id, task!.epoch, {
      artifacts: part.map(name => artifactOf(task!, name, 'registered')),
    })
  }
  const { out } = await pawl.run(['job', 'outputs', id, '--uris', '--state', 'registered'])
  assert.equal(new Set(out.trim().split('\n')).size, 1001)
})

test('lineage says which inputs made a file and what was made of it, by URI or by path', bounded, async t => {
  const { f, pawl, inbox, outbox, id } = await copying(t, ['a.txt'])
  const [task] = await claimCommands(f)
  await putOut(f, task!, { 'a.out': 'A' })
  await succeed(f, task!)
  await doFileChores(f)
  const made = await pawl.run(['lineage', `${outbox.uri}a.out`])
  assert.equal(made.out, `${outbox.uri}a.out\n  made by task ${task!.id} of job ${id}\n    from ${inbox.uri}a.txt\n`)
  const used = await pawl.run(['lineage', `${inbox.path}/a.txt`])
  assert.equal(used.out, `${inbox.uri}a.txt\n  used by task ${task!.id} of job ${id}\n    for ${outbox.uri}a.out\n`)
  const none = await pawl.run(['lineage', 'other.txt'])
  assert.match(none.out, /other\.txt\nNo known task created or used this file\.\n/)
})

test('task describe shows the command of a task, its inputs and its files', bounded, async t => {
  const { f, pawl, inbox, outbox } = await copying(t, ['a.txt'])
  const [task] = await claimCommands(f)
  await putOut(f, task!, { 'a.out': 'A' })
  const { out } = await pawl.run(['task', 'describe', task!.id], wide)
  assert.match(out, /command +cp in 'it’s out'/)
  assert.match(out, new RegExp(`INPUT +SIZE +URI *\\ndoc/a.txt +5 B +${inbox.uri}a.txt`))
  assert.match(out, new RegExp(`a.out +uploaded +1 B +${outbox.uri}a.out +1`))
  const { inputs, artifacts } = (await pawl.run(['task', 'describe', task!.id, '--json'])).json() as Record<
    string,
    object[]
  >
  assert.deepEqual([inputs!.length, artifacts!.length], [1, 1])
})

test('task logs -f shows what a command prints, while it runs and to its end', bounded, async t => {
  const script = 'echo first; until [ -e "$GO" ]; do sleep 0.1; done; echo last >&2'
  const go = await folder(t)
  const run = { command: ['sh', '-c', script], env: { GO: `${go.path}/go` } }
  const { f, pawl, id } = await copying(t, ['a.txt'], { run })
  pawl.start(['worker', '--commands', '--concurrency', '1'])
  const { items } = await f.engine.jobTasks(id)
  const logs = pawl.start(['task', 'logs', items[0]!.id, '-f'])
  await logs.printed('its first line', line => line.includes('first'))
  await go.write({ go: '' })
  await logs.ended
  assert.deepEqual(
    logs.lines.map(line => line.replace(/^\S+ /, '').replace(/ +/g, ' ')),
    ['1 info first {"stream":"stdout"}', '1 info last {"stream":"stderr"}'],
  )
  await eventually('the job ends', async () => {
    await doFileChores(f)
    return ((await f.engine.job(id)) as JobView).state === 'succeeded'
  })
})

test('job retry does only the datums again that did not succeed', bounded, async t => {
  const { f, pawl, id } = await copying(t, ['a.txt', 'b.txt'], { retry: { attempts: 1 }, failFast: false })
  const tasks = await claimCommands(f)
  const [good, bad] = tasks.toSorted((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1))
  await putOut(f, good!, { 'a.out': 'A' })
  await succeed(f, good!)
  await f.engine.fail(bad!.id, bad!.epoch, { error: { message: 'no' } })
  await doFileChores(f)
  assert.equal((await f.engine.job(id)).state, 'failed')
  assert.equal((await pawl.run(['job', 'retry', id])).code, 0)
  await doFileChores(f)
  assert.deepEqual((await claimCommands(f)).map(nameOf), ['b.txt'])
  const { out } = await pawl.run(['job', 'outputs', id, '--uris'])
  assert.match(out, /^\S+\/a\.out\n$/, 'what was put out before stays')
})
