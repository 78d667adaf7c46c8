/** The key of a worker that runs commands: commands run as the same user, and must not be able to read it. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { connect } from '../../src/client/client.ts'
import { type Cli, cli } from '../harness/cli.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

const onLinux = { timeout: 600_000, skip: process.platform === 'linux' ? false : 'only Linux has /proc' }

/** Prints the environment and the arguments of its parent process, and of every other process of its worker. */
const spy = `
  echo "own: $(env | tr '\\n' ' ')"
  for process in $PPID $(cat /proc/$PPID/task/*/children); do
    echo "environment: $(tr '\\0' ' ' < /proc/$process/environ)"
    echo "arguments: $(tr '\\0' ' ' < /proc/$process/cmdline)"
  done`

async function behindKeys(t: TestContext) {
  const { engine, server } = await served(t, { server: { keysOnly: true }, before: engine => admin(engine) })
  const { secret } = await engine.createKey({ name: 'workers', role: 'worker' })
  const pawl = await cli(t)
  const words = ['worker', '--commands', '--server', server.url, '--folder', join(pawl.folder, 'work')]
  /** Everything that the spying command has found out. */
  const spied = async () => {
    const { id } = await engine.enqueue('command', { run: { command: ['sh', '-c', spy] } })
    const task = await ended(engine, id)
    assert.equal(task.state, 'succeeded', task.error?.message)
    const lines = (await engine.logs(id)).items.map(({ message }) => message).join('\n')
    assert.match(lines, /environment: .*HOME=/)
    assert.match(lines, /arguments: .*worker --commands/)
    return lines
  }
  return { engine, secret, pawl, words, spied }
}

const admin = (engine: { createKey(key: { name: string; role: 'admin' }): Promise<unknown> }) =>
  engine.createKey({ name: 'ada', role: 'admin' })

function fileWith(pawl: Cli, text: string): string {
  const file = join(pawl.folder, 'key')
  writeFileSync(file, text)
  return file
}

test('a command does not find the key that its worker was given in PAWL_KEY', onLinux, async t => {
  const { secret, pawl, words, spied } = await behindKeys(t)
  pawl.start(words, { env: { PAWL_KEY: secret } })
  assert.ok(!(await spied()).includes(secret))
})

test('a command does not find the key that its worker was given with --key', onLinux, async t => {
  const { secret, pawl, words, spied } = await behindKeys(t)
  pawl.start([...words, '--key', secret])
  assert.ok(!(await spied()).includes(secret))
})

test('a command does not find the database URL of its worker either', onLinux, async t => {
  const { secret, pawl, words, spied } = await behindKeys(t)
  const password = 'sesame-of-the-store'
  const env = { DATABASE_URL: `postgres://pawl:${password}@nowhere/pawl`, PAWL_KEY: secret }
  pawl.start(words, { env })
  assert.ok(!(await spied()).includes(password))
})

test('a worker reads its key from a file, and deletes the file if it is told to', onLinux, async t => {
  const { secret, pawl, words, spied } = await behindKeys(t)
  const file = fileWith(pawl, `${secret}\n`)
  pawl.start([...words, '--key-file', file, '--delete-key-file'])
  assert.ok(!(await spied()).includes(secret))
  assert.ok(!existsSync(file))
})

test('a file that holds no key, or cannot be deleted, stops the worker before it takes a task', async t => {
  const pawl = await cli(t)
  const start = (...words: string[]) => pawl.run(['worker', '--commands', '--folder', 'work', ...words])
  for (const [words, why] of [
    [['--key-file', fileWith(pawl, '\n')], /it does not contain a key/],
    [['--key-file', join(pawl.folder, 'nowhere')], /ENOENT/],
    [['--delete-key-file'], /--delete-key-file requires --key-file/],
    [['--key-file', '-', '--delete-key-file'], /--delete-key-file requires --key-file/],
  ] as const) {
    const { code, err } = await start(...words)
    assert.notEqual(code, 0)
    assert.match(err, why)
  }
})

test('a command cannot open its worker to a debugger, which would tell it the key', onLinux, async t => {
  const { engine, secret, pawl, words } = await behindKeys(t)
  const program = pawl.start(words, { env: { PAWL_KEY: secret } })
  // While the second command runs, a debugger would have printed that it listens.
  for (const text of ['kill -USR1 $PPID', 'sleep 0.5']) {
    const { id } = await engine.enqueue('command', { run: { command: ['sh', '-c', text] } })
    assert.equal((await ended(engine, id)).state, 'succeeded')
  }
  assert.doesNotMatch(program.complaints(), /Debugger/)
})

test(
  'a command that a server runs finds neither the key of its worker nor the database URL of the server',
  onLinux,
  async t => {
    const pawl = await cli(t)
    const store = ['--data', join(pawl.folder, 'data')]
    assert.equal((await pawl.run(['migrate', ...store])).code, 0)
    const made = await pawl.run(['key', 'create', '--name', 'ada', '--role', 'admin', '--json', ...store])
    const { secret } = made.json() as { secret: string }
    const env = { DATABASE_URL: 'postgres://pawl:sesame-of-the-store@nowhere/pawl' }
    const program = pawl.start(['up', '--commands', '--keys-only', '--port', '0', '--json', ...store], { env })
    const line = await program.printed('where it serves', printed => printed.includes('"url"'))
    await using client = connect({ server: (JSON.parse(line) as { url: string }).url, key: secret })
    const up =
      'server=$(cut -d" " -f4 /proc/$PPID/stat); tr "\\0" " " < /proc/$server/environ; tr "\\0" " " < /proc/$server/cmdline'
    const job = await client.submit({
      name: 'spy',
      stages: [{ name: 's', run: { command: ['sh', '-c', `${spy}\n${up}`] } }],
    })
    await eventually('the command has run', async () => (await client.job(job.id)).state === 'succeeded')
    const [task] = (await client.jobTasks(job.id)).items
    const lines = (await client.logs(task!.id)).items.map(({ message }) => message).join('\n')
    assert.match(lines, /arguments: .*--key-file -/)
    assert.match(lines, /up --commands --keys-only/)
    assert.doesNotMatch(lines, /pawl_[A-Za-z0-9]|sesame-of-the-store/)
    program.signal('SIGTERM')
    await program.ended
  },
)
