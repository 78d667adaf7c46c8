/** Jobs from the command line, against a real server: the output, and the exit codes for scripts. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import { defineTask, GiveUp, startWorker, type Task } from '../../src/worker/index.ts'
import { type Cli, cli } from '../harness/cli.ts'
import { eventually } from '../harness/eventually.ts'
import { type Served, served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }

const work = defineTask({ type: 'work', handler: payload => payload })
const fail = defineTask({
  type: 'fail',
  handler: () => {
    throw new GiveUp('the disk is full')
  },
})

interface Place extends Served {
  readonly pawl: Cli
  write(name: string, text: string): Promise<void>
}

async function place(t: TestContext, tasks: readonly Task[] = []): Promise<Place> {
  const run = await served(t)
  const pawl = await cli(t, { PAWL_SERVER: run.server.url })
  if (tasks.length > 0) {
    const worker = startWorker(run.engine, tasks, { waitSeconds: 1 })
    t.after(() => worker.stop())
  }
  return { ...run, pawl, write: (name, text) => writeFile(join(pawl.folder, name), text) }
}

test('a job that ends well is waited for, shown on the way, and ends the command with 0', bounded, async t => {
  const { pawl, write, engine } = await place(t, [work])
  await write(
    'two.yaml',
    'name: two\nstages:\n  - { name: a, task: work, forEach: input }\n  - { name: b, task: work }\n',
  )
  const { code, out, err } = await pawl.run(['job', 'run', 'two.yaml', '--wait', '--input', '[1, 2, 3]'])
  assert.deepEqual([code, err], [0, ''])
  assert.match(out, /✓ a {2}succeeded {2}3\/3/)
  assert.match(out, /✓ b {2}succeeded {2}1\/1/)
  assert.match(out, /^two succeeded \(4 good, 0 bad, in /m)
  const { items } = await engine.jobs()
  assert.deepEqual(
    items.map(({ input }) => input),
    [[1, 2, 3]],
  )
})

test(
  'a job that ends badly ends the command with 1 and names the cause; describe shows the last error',
  bounded,
  async t => {
    const { pawl, write } = await place(t, [fail])
    await write('bad.json', JSON.stringify({ name: 'bad', stages: [{ name: 'only', task: 'fail', payload: 7 }] }))
    const ended = await pawl.run(['job', 'run', 'bad.json', '--wait', '--json'])
    assert.equal(ended.code, 1)
    const { id, state } = ended.json() as JobView
    assert.equal(state, 'failed')
    const waited = await pawl.run(['job', 'wait', id.slice(-8), '--quiet'])
    assert.equal(waited.code, 1)
    assert.match(waited.out, /^bad failed: stage only failed \(0 good, 1 bad/)
    const { code, out } = await pawl.run(['job', 'describe', id], { env: { COLUMNS: '100' } })
    assert.equal(code, 0)
    assert.match(out, /only +failed +1\/1 +1/)
    assert.match(out, /FAILED OR RETRYING[\s\S]*fail +failed +\S+ +1 +the disk is full/)
  },
)

test('a job that could do only some of it ends with 0, and with 1 if --strict says so', bounded, async t => {
  const { pawl, write } = await place(t, [work, fail])
  const stages = [
    { name: 'a', task: 'work' },
    { name: 'b', task: 'fail', onFailure: 'continue' },
  ]
  await write('some.json', JSON.stringify({ name: 'some', stages }))
  const { code, json } = await pawl.run(['job', 'run', 'some.json', '--wait', '--json'])
  const job = json() as JobView
  assert.deepEqual([code, job.state], [0, 'partial'])
  assert.equal((await pawl.run(['job', 'wait', job.id, '--strict', '--quiet'])).code, 1)
})

test('all that is wrong with a spec is told at once, and nothing is submitted', bounded, async t => {
  const { pawl, write, engine } = await place(t)
  await write('bad.yaml', 'nme: x\nstages:\n  - { name: a, task: w, retry: { attemts: 3 } }\n')
  const { code, out, err } = await pawl.run(['job', 'run', 'bad.yaml'])
  assert.deepEqual([code, out], [2, ''])
  assert.match(err, /nme: unknown field; did you mean 'name'\?/)
  assert.match(err, /stages\[0\]\.retry\.attemts: .*did you mean 'attempts'\?/)
  assert.deepEqual((await engine.jobs()).items, [])
})

test('a spec may be a TypeScript module, and it may come from a pipe', bounded, async t => {
  const { pawl, write, engine } = await place(t)
  await write(
    'spec.ts',
    "import type { JobSpec } from 'pawl'\nexport const job: JobSpec = { name: 'typed', stages: [{ name: 'a', task: 'a' }] }\n",
  )
  assert.equal((await pawl.run(['job', 'run', 'spec.ts'])).code, 0)
  assert.equal(
    (await pawl.runProcess(['job', 'run', '-'], { input: 'name: piped\nstages: [{ name: a, task: a }]' })).code,
    0,
  )
  assert.deepEqual(
    (await engine.jobs()).items.map(({ name }) => name),
    ['piped', 'typed'],
  )
})

test(
  'whoever is not sure that a job was submitted types it again under the same key: there is one',
  bounded,
  async t => {
    const { pawl, engine } = await place(t)
    const input = 'name: one\nstages: [{ name: a, task: a }]'
    const submit = () => pawl.runProcess(['job', 'run', '-', '--json', '--idempotency-key', 'k1'], { input })
    const [first, second] = [(await submit()).json() as JobView, (await submit()).json() as JobView]
    assert.equal(second.id, first.id)
    const add = () => pawl.run(['task', 'add', 'mail', '--json', '--idempotency-key', 'k2'])
    assert.deepEqual((await add()).json(), (await add()).json())
    assert.deepEqual([(await engine.jobs()).items.length, (await engine.tasks({ type: 'mail' })).items.length], [1, 1])
  },
)

test(
  'an operator pauses, resumes, cancels, retries, clones and deletes a job by the end of its id',
  bounded,
  async t => {
    const { pawl, engine, sync } = await place(t)
    const { id } = await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
    const ask = async (...args: string[]) => {
      const { code, err, json } = await pawl.run(['job', args[0]!, id.slice(-10), '--json', ...args.slice(1)])
      assert.equal(code, 0, err)
      return json() as JobView
    }
    assert.equal((await ask('pause', '--reason', 'lunch', '--as', 'ann')).state, 'paused')
    assert.equal((await ask('resume')).state, 'pending')
    await sync({ queues: ['a'], claim: 1 })
    assert.equal((await ask('cancel')).state, 'stopping')
    assert.equal((await ask('cancel', '--hard')).state, 'cancelled')
    const again = await pawl.run(['job', 'pause', id])
    assert.deepEqual([again.code, /Cannot pause a cancelled job/.test(again.err)], [1, true])
    assert.equal((await ask('retry')).round, 2)
    await ask('cancel', '--hard')
    assert.equal((await ask('retry', '--clone')).clonedFrom, id)
    const { items } = await engine.jobEvents(id)
    assert.ok(items.some(({ actor, payload }) => actor === 'ann' && payload.reason === 'lunch'))
    await ask('delete')
    await assert.rejects(engine.job(id), { code: 'JOB_NOT_FOUND' })
  },
)

test('a stage that waits is found, and approved by the name of its job and its own', bounded, async t => {
  const { pawl, engine } = await place(t)
  const { id } = await engine.submit({
    name: 'gated',
    stages: [{ name: 'look', gate: { approvers: 2, ask: 'Good?' } }],
  })
  const list = await pawl.run(['stage', 'list'], { env: { COLUMNS: '120' } })
  assert.match(list.out, /look +waiting .*0 of 2 +Good\?/)
  const first = await pawl.run(['stage', 'approve', `${id.slice(-8)}/look`, '--as', 'ann', '--answer', '{"ok":true}'])
  assert.deepEqual([first.code, first.out], [0, 'look is waiting (1 of 2 approvals)\n'])
  const second = await pawl.run(['stage', 'approve', `${id}/look`, '--as', 'ben'])
  assert.deepEqual([second.code, second.out], [0, 'look is succeeded\n'])
  const missing = await pawl.run(['stage', 'approve', `${id}/lok`])
  assert.deepEqual([missing.code, /stages: \["look"\]/.test(missing.err)], [1, true])
})

test('whoever stops waiting does not stop the job, and is told how to wait again', bounded, async t => {
  const { pawl, engine } = await place(t)
  const { id } = await engine.submit({ name: 'long', stages: [{ name: 'a', task: 'a' }] })
  const program = pawl.start(['job', 'wait', id])
  await program.printed('how it stands', line => line.includes('long  pending'))
  program.signal('SIGINT')
  await program.ended
  assert.equal(program.process.exitCode, 130)
  assert.match(
    program.lines.join('\n'),
    new RegExp(`The job is still running\\. To wait for it again: pawl job wait ${id}`),
  )
  await eventually('the job is as it was', async () => (await engine.job(id)).state === 'pending')
})
