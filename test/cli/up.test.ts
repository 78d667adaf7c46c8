/** `pawl up`, which `npm start` runs: the first impression, and data that is still there after a restart. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { connect } from '../../src/client/client.ts'
import type { JobView } from '../../src/protocol/jobs/jobs.ts'
import type { Page } from '../../src/protocol/tasks/tasks.ts'
import { type Cli, cli } from '../harness/cli.ts'
import { serverUrl } from '../harness/databases.ts'
import { eventually } from '../harness/eventually.ts'
import type { Program } from '../harness/program.ts'

/** The embedded store takes a second to open, and on a busy machine many. */
const bounded = { timeout: 590_000 }
// biome-ignore lint/suspicious/noControlCharactersInRegex: plain text must not contain these
const escapes = /\u001b/

/** Starts it on a free port. `url`: the address that it prints. */
async function up(pawl: Cli, args: readonly string[] = []): Promise<{ program: Program<string>; url: string }> {
  const program = pawl.start(['up', '--port', '0', ...args])
  const line = await program.printed('where it serves', printed => printed.startsWith('Pawl is running at http'))
  return { program, url: /http:\/\/[\d.:]+\d/.exec(line)![0] }
}

const isUp = (line: string) => line.startsWith('Press Ctrl-C')

async function jobsAt(pawl: Cli, server: string): Promise<readonly JobView[]> {
  const { code, err, json } = await pawl.run(['job', 'list', '--json', '--server', server])
  assert.equal(code, 0, err)
  return (json() as Page<JobView>).items
}

test('npm start is pawl up with its demonstration and all dialects', () => {
  const root = new URL('../../..', import.meta.url)
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'))
  assert.equal(scripts.start, 'node dist/cli/main.js up --demo --dialect all')
})

test(
  'one command shows a job go through and keeps serving; a second terminal sees it; after a SIGKILL all is there',
  bounded,
  async t => {
    const pawl = await cli(t)
    const first = await up(pawl, ['--demo'])
    await first.program.printed('that it goes on serving', isUp)
    const printed = first.program.lines.join('\n')
    assert.match(printed, /review {2}waiting for approval \(0 of 1\): Is it fit to print\?/)
    assert.match(printed, /translate {2}skipped: condition false/)
    assert.match(printed, /Retry: "clocks" failed once \(The pen ran dry/)
    assert.match(printed, /The demo job succeeded/)
    assert.doesNotMatch(printed, escapes)
    const [, link = ''] = /Demo job: (\S+)/.exec(printed) ?? []
    assert.match(await (await fetch(link)).text(), /<title>Pawl<\/title>/)

    const [job] = await jobsAt(pawl, first.url)
    assert.deepEqual([job?.name, job?.state, job?.id], ['demo', 'succeeded', link.split('/').at(-1)])

    first.program.signal('SIGKILL')
    await first.program.ended
    const second = await up(pawl)
    await second.program.printed('that it goes on serving', isUp)
    assert.deepEqual(await jobsAt(pawl, second.url), [job])

    second.program.signal('SIGTERM')
    await second.program.ended
    assert.equal(second.program.process.exitCode, 0)
    assert.match(second.program.lines.join('\n'), /Stopping/)
    await assert.rejects(connect({ server: second.url, patienceSeconds: 0 }).queues(), { code: 'SERVER_UNREACHABLE' })
  },
)

test('--jobnik-lease-seconds says how long a task stays with a Jobnik worker that says nothing', bounded, async t => {
  const pawl = await cli(t)
  const { url } = await up(pawl, ['--dialect', 'jobnik', '--jobnik-lease-seconds', '3600'])
  const ask = async (method: string, path: string, body?: object) => {
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(`${url}/dialects/jobnik/v1/${path}`, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return (await response.json()) as { id: string }
  }
  const job = await ask('POST', 'jobs', { name: 'images', data: {} })
  const stage = await ask('POST', `jobs/${job.id}/stage`, { type: 'resize', data: {} })
  await ask('POST', `stages/${stage.id}/tasks`, [{ data: {} }])
  const { id } = await ask('PATCH', 'stages/resize/tasks/dequeue')
  const { startedAt, leaseUntil } = await connect({ server: url }).task(id)
  assert.equal(Math.round((Date.parse(leaseUntil!) - Date.parse(startedAt!)) / 60_000), 60)
})

test('a port that is taken is told in plain words, with who chose it and what to do', bounded, async t => {
  const pawl = await cli(t)
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  t.after(() => other.close())
  const { port } = other.address() as { port: number }
  const { code, err } = await pawl.run(['up'], { env: { PORT: String(port) } })
  assert.equal(code, 1)
  assert.match(err, new RegExp(`The port is already in use. .*port: ${port}, chosenBy: PORT`))
  assert.match(err, /choose another port with --port/)
  assert.doesNotMatch(err, /^ +at /m)
})

test('a data folder that a living process has open is refused, whoever asks', bounded, async t => {
  const pawl = await cli(t)
  const { program } = await up(pawl)
  const second = await pawl.run(['up', '--port', '0'])
  assert.equal(second.code, 3)
  assert.match(second.err, new RegExp(`Another running process has this data folder open.*pid: ${program.process.pid}`))
  const list = await pawl.run(['job', 'list', '--data', 'pawl-data'])
  assert.equal(list.code, 3)
  assert.match(list.err, /leave out --data/)
})

test(
  'a data folder that cannot be written is a plain error, as in a container with a read-only root',
  bounded,
  async t => {
    const pawl = await cli(t)
    writeFileSync(join(pawl.folder, 'file'), '')
    const { code, err } = await pawl.run(['up', '--port', '0', '--data', 'file/data'])
    assert.equal(code, 2)
    assert.match(err, /data: the folder of the store must be writable .*choose another one with --data/)
    assert.doesNotMatch(err, /^ +at /m)
  },
)

test('a server that npm started stops when npm is ended; one in the background of a script stays', bounded, async t => {
  const main = fileURLToPath(new URL('../../src/cli/main.js', import.meta.url))
  const { PATH } = process.env
  const start = async (more: string, before = '') => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-npm-'))
    // As npm does. The shell does not replace itself by the command, and passes no signal on.
    const script = `${before} "${process.execPath}" "${main}" up --port 0 --json > out ${more}`
    const env = { PATH, HOME: folder, npm_lifecycle_script: script }
    const shell = spawn('sh', ['-c', script], { cwd: folder, env, stdio: 'ignore' })
    const over = once(shell, 'exit')
    const served = () => readJson(join(folder, 'out'))
    t.after(async () => {
      shell.kill('SIGKILL')
      const pid = served()?.pid
      if (pid !== undefined && isAlive(pid)) process.kill(pid, 'SIGKILL')
      await eventually('it has ended', () => pid === undefined || !isAlive(pid))
      rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
    })
    return { shell, over, ...(await eventually('it serves', served)) }
  }
  const detach = `require('child_process').spawn(process.argv[1], process.argv.slice(2), { stdio: 'inherit' })
    setInterval(() => require('fs').statSync('out').size > 0 && process.exit(), 20)`
  const stays = [
    await start('& sleep 1000'),
    // Started by a program of the script, which has ended.
    await start('; exit 0', `"${process.execPath}" -e "${detach}"`),
  ]
  const stops = [await start('; exit 0'), await start('2>&1 && echo "this & that"; exit 0')]
  for (const { shell, over } of [...stays, ...stops]) {
    shell.kill('SIGTERM')
    await over
  }
  for (const { pid } of stops) await eventually('it has ended', () => !isAlive(pid))
  for (const { url } of stays) assert.equal((await fetch(`${url}/readyz`)).status, 200)
})

function readJson(file: string): { readonly url: string; readonly pid: number } | undefined {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return text.endsWith('\n') ? JSON.parse(text) : undefined
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('an address that others can reach is refused without keys, and served with one', bounded, async t => {
  const pawl = await cli(t)
  const refused = await pawl.run(['up', '--host', '0.0.0.0', '--port', '0'])
  assert.equal(refused.code, 1)
  assert.match(refused.err, /requires API keys, and none exist/)
  const made = await pawl.run(['key', 'create', '--name', 'ann', '--role', 'admin', '--data', 'pawl-data'])
  assert.equal(made.code, 0, made.err)
  const [secret = ''] = made.out.split('\n')
  const { url } = await up(pawl, ['--host', '0.0.0.0'])
  const server = url.replace('0.0.0.0', '127.0.0.1')
  const without = await pawl.run(['job', 'list', '--server', server])
  assert.deepEqual([without.code, /no valid API key/.test(without.err)], [3, true])
  const withKey = await pawl.run(['job', 'list', '--server', server], { env: { PAWL_KEY: secret } })
  assert.deepEqual([withKey.code, withKey.out], [0, 'There are no jobs.\n'])
})

test('two servers on one PostgreSQL serve the same jobs', bounded, async t => {
  const pawl = await cli(t)
  const store = await onPostgres(t)
  const [one, other] = [await up(pawl, store), await up(pawl, store)]
  const spec = JSON.stringify({ name: 'shared', stages: [{ name: 'a', task: 'a' }] })
  const submitted = await pawl.runProcess(['job', 'run', '-', '--json', '--server', one.url], { input: spec })
  assert.equal(submitted.code, 0, submitted.err)
  assert.deepEqual(
    (await jobsAt(pawl, other.url)).map(({ id }) => id),
    [(submitted.json() as JobView).id],
  )
})

async function onPostgres(t: TestContext): Promise<string[]> {
  const database = await serverUrl(18)
  const schema = `t_${randomBytes(6).toString('hex')}`
  t.after(async () => {
    const { openEngine } = await import('../../src/engine/engine.ts')
    await using engine = await openEngine({ database, schema, migrate: false })
    await engine.context.sql.script(`drop schema if exists "${schema}" cascade`)
  })
  return ['--database', database, '--schema', schema]
}

test('what is served as JSON can be read by the program that started it', bounded, async t => {
  const pawl = await cli(t)
  const program = pawl.start(['up', '--port', '0', '--json', '--data', 'here'])
  const line = await program.printed('where it serves', printed => printed.startsWith('{'))
  const { url, store, pid } = JSON.parse(line)
  assert.deepEqual([store, pid], [join(pawl.folder, 'here'), program.process.pid])
  assert.equal((await fetch(`${url}/readyz`)).status, 200)
})

test('the demonstration runs as JSON too: a line says which job it is, and one how it ended', bounded, async t => {
  const pawl = await cli(t)
  const program = pawl.start(['up', '--port', '0', '--json', '--demo'])
  await program.printed('how it ended', printed => printed.includes('succeeded'))
  const [served, begun, ended, ...more] = program.lines.map(line => JSON.parse(line))
  assert.deepEqual(more, [])
  assert.deepEqual(ended, { demo: begun.demo, state: 'succeeded' })
  const job = (await (await fetch(begun.url)).json()) as JobView
  assert.deepEqual([job.id, job.state], [begun.demo, 'succeeded'])
  const [listed] = await jobsAt(pawl, served.url)
  assert.equal(listed?.id, begun.demo)
})
