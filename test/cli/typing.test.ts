/** Error messages for invalid command lines, and exit codes for scripts. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { flagsOf } from '../../src/cli/command.ts'
import { commands } from '../../src/cli/commands.ts'
import { cli } from '../harness/cli.ts'
import { served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }

const mistakes: readonly (readonly [typed: string, message: RegExp])[] = [
  ['jbo list', /There is no command "pawl jbo list"\. Did you mean "pawl job"\?/],
  ['job', /pawl job requires a subcommand\. Commands: pawl job run, pawl job list, pawl job describe/],
  ['job lst', /There is no command "pawl job lst"\. Did you mean "pawl job list"\?/],
  ['job list --stat x', /pawl job list has no flag --stat\. Did you mean --state\?/],
  ['job list --state faild', /--state must be one of .*Did you mean failed\?/],
  ['job list --limit many', /--limit must be a number, not "many"/],
  ['job list --limit', /--limit requires a value/],
  ['job list --json=yes', /--json does not take a value/],
  ['job list extra', /Unexpected argument "extra"\. See pawl job list --help/],
  ['job describe', /pawl job describe requires ID/],
  ['job run none.yaml', /none\.yaml: .*no such file/],
  ['task add mail {', /PAYLOAD must be JSON/],
  ['job list --data nowhere', /nowhere: there is no store/],
  ['job list --data here --server http://127.0.0.1:1', /--server cannot be combined/],
  ['up --data here --database postgres://x', /--database cannot be combined with --data/],
]

test('every mistake in what is typed ends with 2 and says what was meant', bounded, async t => {
  const pawl = await cli(t)
  for (const [typed, message] of mistakes) {
    const { code, out, err } = await pawl.run(typed.split(' '))
    assert.deepEqual([typed, code, out], [typed, 2, ''])
    assert.match(err, message)
    assert.doesNotMatch(err, /\n {4}at /, `${typed}: no stack`)
  }
})

test('a server that is not there ends every command with 3 at once, with --json as JSON', bounded, async t => {
  const gone = createServer().listen(0, '127.0.0.1')
  await once(gone, 'listening')
  const { port } = gone.address() as { port: number }
  await new Promise(resolve => gone.close(resolve))
  const pawl = await cli(t, { PAWL_SERVER: `http://127.0.0.1:${port}` })
  const { code, out, err } = await pawl.run(['job', 'list'])
  assert.deepEqual([code, out], [3, ''])
  assert.match(err, /The server cannot be reached.*ECONNREFUSED[\s\S]*`pawl up` starts one/)
  const asked = await pawl.run(['job', 'wait', crypto.randomUUID(), '--json'])
  assert.deepEqual([asked.code, JSON.parse(asked.err).code], [3, 'SERVER_UNREACHABLE'])
})

test('help is there for all of it and for every command', bounded, async t => {
  const pawl = await cli(t)
  const { code, out } = await pawl.run(['--help'])
  assert.equal(code, 0)
  for (const { name, hidden } of commands) assert.equal(out.includes(`\n  ${name} `), hidden !== true, name)
  const jobs = await pawl.run(['job', '--help'])
  assert.equal(jobs.code, 0)
  for (const { name } of commands) assert.equal(jobs.out.includes(`  ${name} `), name.startsWith('job '), name)
  const wait = await pawl.run(['job', 'wait', '--help'])
  assert.equal(wait.code, 0)
  assert.match(wait.out, /^pawl job wait ID \[flags\]/)
  assert.match(wait.out, /--strict {2,}exit with 1 if the job ends as partial/)
  assert.equal((await pawl.run([])).code, 2)
})

test('help groups the commands, and every way to ask for it works', bounded, async t => {
  const pawl = await cli(t)
  const printed = async (typed: string) => {
    const { code, out, err } = await pawl.run(typed.split(' '))
    assert.deepEqual([typed, code, err], [typed, 0, ''])
    return out
  }
  const all = await printed('help')
  assert.match(all, /\n\nStart\n {2}\S[\s\S]*\n\nJobs\n {2}job run[\s\S]*\n\nTasks\n {2}task add/)
  assert.deepEqual([await printed('--help'), await printed('-h')], [all, all])
  assert.deepEqual(
    [await printed('help job wait'), await printed('job wait -h')].map(text => text.slice(0, 13)),
    ['pawl job wait', 'pawl job wait'],
  )
  assert.equal(await printed('help task'), await printed('task --help'))
  assert.match(
    await printed('worker --help'),
    /^pawl worker \[MODULE\][\s\S]*See also: pawl worker list, pawl worker lost/,
  )
  const { code, err } = await pawl.run(['help', 'jbo'])
  assert.deepEqual([code, /no command "pawl jbo"\. Did you mean "pawl job"/.test(err)], [2, true])
})

test('--version prints the version of the package', bounded, async t => {
  const pawl = await cli(t)
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'))
  for (const typed of ['--version', '-v', 'version']) {
    const { code, out } = await pawl.run([typed])
    assert.deepEqual([code, out], [0, `${version}\n`])
  }
})

test('a refusal names the commands that are possible, and they can be typed as they are', bounded, async t => {
  const { engine, server } = await served(t)
  const pawl = await cli(t, { PAWL_SERVER: server.url })
  const refused = async (...typed: string[]) => {
    const { code, err } = await pawl.run(typed)
    assert.equal(code, 1)
    const [first, ...rest] = err.trimEnd().split('\n')
    return [first, ...rest.map(line => line.trim())]
  }
  const { id } = await engine.enqueue('mail', null)
  await engine.deadLetter(id, { reasonCode: 'policy_violation' })
  assert.deepEqual(await refused('task', 'cancel', id), [
    'pawl: Cannot cancel a dead-lettered task.',
    'Possible now:',
    `pawl dlq redrive ${id}`,
  ])
  const job = await engine.submit({ name: 'letters', stages: [{ name: 'write', task: 'write' }] })
  await engine.cancelJob(job.id)
  const [, , ...possible] = await refused('job', 'pause', job.id)
  assert.deepEqual(possible, [`pawl job retry ${job.id}`, `pawl job resume ${job.id}`])
  const [, , retryStage] = await refused('stage', 'hold', `${job.id}/write`)
  assert.equal(retryStage, `pawl stage retry ${job.stages[0]!.id}`)
  for (const line of [`pawl dlq redrive ${id}`, ...possible.slice(0, 1)]) {
    const { code, err } = await pawl.run(line.split(' ').slice(1))
    assert.deepEqual([line, code], [line, 0], err)
  }
})

test('counts of one are in the singular', bounded, async t => {
  const { engine, server } = await served(t)
  const pawl = await cli(t, { PAWL_SERVER: server.url })
  const { id } = await engine.enqueue('mail', null)
  const [claimed] = await engine.claims({ worker: 'w', queues: ['mail'], start: true })
  await engine.fail(id, claimed!.epoch, { error: { message: 'no stamp' } })
  assert.match((await pawl.run(['task', 'describe', id])).out, /charged +1 failure, 0 losses/)
})

test('no command has two flags of one name', () => {
  for (const command of commands) {
    const own = Object.keys(command.flags)
    const common = Object.keys(flagsOf({ ...command, flags: {} }))
    assert.deepEqual(
      own.filter(name => common.includes(name)),
      [],
      command.name,
    )
  }
})
