/** `pawl worker --commands`: a worker that runs programs, and one that never does. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { defaultFolder } from '../../src/commands/attempt-folder.ts'
import { cli } from '../harness/cli.ts'
import { needsServer } from '../harness/databases.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { fresh } from '../harness/fresh.ts'

const bounded = { timeout: 600_000 }

test('a worker without --commands takes no command tasks, and says so if it is asked to', bounded, async t => {
  const pawl = await cli(t)
  writeFileSync(
    join(pawl.folder, 'own.mjs'),
    "export const own = { type: 'command', options: {}, schema: undefined, async run() {} }",
  )
  for (const [args, expected] of [
    [['worker', 'own.mjs', '--queue', 'command'], /queue "command" run programs.*use --commands/],
    [['worker', 'own.mjs'], /the task type "command" is reserved for command tasks/],
    [['worker'], /found no tasks in .* Name the module with the handlers, or use --commands/],
    [['worker', 'own.mjs', '--secrets', 'x'], /--secrets requires --commands/],
    [['worker', '--folder', 'x'], /--folder requires --commands/],
  ] as const) {
    const { code, err } = await pawl.run(args)
    assert.notEqual(code, 0)
    assert.match(err, expected)
  }
  writeFileSync(join(pawl.folder, 'file'), '')
  const { code, err } = await pawl.run(['worker', '--commands', '--folder', 'file'])
  assert.deepEqual(
    [code !== 0, /the folder cannot be created/.test(err), /^ +at /m.test(err)],
    [true, true, false],
    err,
  )
})

test('a worker with --commands needs no module: it fetches files, has secrets, and leaves nothing', {
  ...bounded,
  ...needsServer(),
}, async t => {
  const { engine, url, schema } = await fresh(t)
  const pawl = await cli(t, { NODE_NAME: 'node-1', POD_NAME: 'pod-2' })
  mkdirSync(join(pawl.folder, 'data'))
  writeFileSync(join(pawl.folder, 'data', 'näme x'), 'hello\n')
  mkdirSync(join(pawl.folder, 'vault', 'db'), { recursive: true })
  writeFileSync(join(pawl.folder, 'vault', 'db', 'key'), 'sesame-open')
  const store = ['--database', url!, '--schema', schema]
  const options = ['--commands', '--folder', 'work', '--secrets', 'vault', '--queue', 'special', '--queue', 'command']
  const worker = pawl.start(['worker', ...options, ...store])
  await worker.printed('what it is', line => /^Worker node-1\/pod-2 runs .* from special, command,/.test(line))
  assert.equal(statSync(join(pawl.folder, 'work')).mode & 0o777, 0o700)

  const uri = `${pathToFileURL(join(pawl.folder, 'data'))}/`
  const run = {
    command: ['sh', '-c', 'cat "$PAWL_IN"/d/*; echo "key: $KEY"'],
    secrets: { KEY: { secret: 'db', key: 'key' } },
  }
  const { id } = await engine.enqueue('command', { run, inputs: [{ name: 'd', uri, path: '' }] }, { queue: 'special' })
  const task = await ended(engine, id)
  assert.deepEqual([task.state, (task.output as { exitCode: number }).exitCode], ['succeeded', 0], task.error?.message)
  const [event] = (await engine.taskEvents(id)).items.filter(({ type }) => type === 'task.claimed')
  assert.equal(event!.actor, 'worker:node-1/pod-2')
  assert.deepEqual(
    (await engine.logs(id)).items.map(({ message }) => message),
    ['hello', 'key: ***'],
  )

  worker.signal('SIGTERM')
  await worker.ended
  assert.deepEqual(
    [readdirSync(join(pawl.folder, 'work')), existsSync(join(pawl.folder, 'data', 'näme x'))],
    [[], true],
  )
})

test('a worker that is called by its node and pod can speak to a server', bounded, async t => {
  const { served } = await import('../harness/served.ts')
  const { engine, server } = await served(t)
  const pawl = await cli(t, { NODE_NAME: 'node-1', POD_NAME: 'pod-2' })
  pawl.start(['worker', '--commands', '--server', server.url])
  const { id } = await engine.enqueue('command', { run: { command: ['true'] } })
  assert.equal((await ended(engine, id)).state, 'succeeded')
  assert.deepEqual(
    (await engine.workers()).items.map(({ worker }) => worker),
    ['node-1/pod-2'],
  )
})

test('a worker has a folder of its own as a user that the system has no name for, as in many containers', {
  skip: process.getuid?.() !== 0 && 'only root may become somebody else',
}, () => {
  process.seteuid!(54_321)
  try {
    assert.match(defaultFolder(), /pawl-54321$/)
  } finally {
    process.seteuid!(0)
  }
})

/** Two commands that end only if both run at once. They give up after half a minute. */
const meeting = (folder: string, mine: string, other: string) => {
  const wait = `i=0; while [ ! -e ${other} ]; do i=$((i + 1)); [ $i -gt 300 ] && exit 1; sleep 0.1; done`
  return { payload: { run: { command: ['sh', '-c', `cd '${folder}'; touch ${mine}; ${wait}`] } } }
}

test('a worker that is busy with a command leaves the next one to a worker that is free', bounded, async t => {
  const { served } = await import('../harness/served.ts')
  const { engine, server } = await served(t)
  const pawl = await cli(t)
  const [first, second] = await engine.enqueueMany([
    { type: 'command', ...meeting(pawl.folder, 'one', 'two') },
    { type: 'command', ...meeting(pawl.folder, 'two', 'one') },
  ])
  const args = ['worker', '--commands', '--concurrency', '1', '--server', server.url]
  pawl.start(args)
  await eventually('one of them runs', () => ['one', 'two'].some(name => existsSync(join(pawl.folder, name))))
  pawl.start(args)
  for (const { id } of [first!, second!]) assert.equal((await ended(engine, id)).state, 'succeeded')
})

test('--buffer says how many commands a worker claims ahead', bounded, async t => {
  const { served } = await import('../harness/served.ts')
  const { engine, server } = await served(t)
  const pawl = await cli(t)
  const waits = { type: 'command', ...meeting(pawl.folder, 'one', 'two') }
  const tasks = await engine.enqueueMany([waits, waits, waits, waits])
  pawl.start(['worker', '--commands', '--concurrency', '1', '--buffer', '2', '--server', server.url])
  await eventually('one runs and two wait for it', async () => (await engine.workers()).items[0]?.leases === 3)
  writeFileSync(join(pawl.folder, 'two'), '')
  for (const { id } of tasks) assert.equal((await ended(engine, id)).state, 'succeeded')
})
