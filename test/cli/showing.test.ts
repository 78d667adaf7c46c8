/** Output on a terminal: it fits the width, has colours, and cannot contain escape sequences from outside. */
import assert from 'node:assert/strict'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands.ts'
import { run } from '../../src/cli/run.ts'
import { widthOf } from '../../src/cli/styled-line.ts'
import { defineTask, GiveUp, startWorker } from '../../src/worker/index.ts'
import { cli } from '../harness/cli.ts'
import { eventually } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }
// biome-ignore lint/suspicious/noControlCharactersInRegex: the output must not contain these
const raw = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/

/** Runs a command in this process on a terminal of that width. */
async function onTerminal(args: readonly string[], columns: number, env: Record<string, string> = {}) {
  const terminal = () => Object.assign(new PassThrough(), { isTTY: true, columns, rows: 40 })
  const [stdout, stderr] = [terminal(), terminal()]
  const stopSignal = () => new AbortController().signal
  const code = await run(commands, args, { stdout, stderr, env, folder: process.cwd(), stopSignal })
  stdout.end()
  return { code, out: await text(stdout) }
}

const hostile = 'x\u001b[2J\u001b]0;owned\u0007\n\u009b31m\u202egnp.exe\u0000'.replace('\u0000', '')
const blowUp = defineTask({
  type: 'blow-up',
  handler: payload => {
    throw new GiveUp(`${payload}`)
  },
})

test('names, payloads and errors that hold terminal escapes are shown, never obeyed', bounded, async t => {
  const { server, engine } = await served(t)
  await using _worker = startWorker(engine, [blowUp], { waitSeconds: 1 })
  const { id } = await engine.submit({
    name: hostile,
    stages: [{ name: `s${hostile}`, task: 'blow-up', payload: hostile }],
  })
  await eventually('it has failed', async () => (await engine.job(id)).state === 'failed')
  const [task] = (await engine.tasks({ jobId: id })).items
  const pawl = await cli(t, { PAWL_SERVER: server.url })
  const asks = [
    ['job', 'list'],
    ['job', 'describe', id],
    ['job', 'wait', id],
    ['job', 'events', id],
    ['task', 'list'],
    ['task', 'describe', task!.id],
    ['task', 'events', task!.id],
    ['events', 'tail'],
    ['job', 'pause', id],
    ['stage', 'list', '--state', 'failed'],
    ['job', 'describe', hostile],
    [hostile],
  ]
  for (const args of asks) {
    const { out, err } = await pawl.run(args)
    assert.doesNotMatch(out + err, raw, args.join(' '))
    const json = await pawl.run([...args, '--json'])
    assert.doesNotMatch(json.out + json.err, raw, `${args.join(' ')} --json`)
    JSON.parse(json.out === '' ? json.err : json.out)
  }
  assert.match((await pawl.run(['job', 'describe', id])).out, /x\\x1b\[2J\\x1b\]0;owned\\x07\\n\\x9b31m\\u202egnp\.exe/)
  const terminal = await onTerminal(['job', 'describe', id, '--server', server.url], 120)
  assert.ok(!terminal.out.includes('\u001b[2J') && !terminal.out.includes('\u001b]0'))
})

test('tables fit 40, 80 and 200 columns; what is cut shows it, and an id can still be used', bounded, async t => {
  const { server, engine } = await served(t)
  const long = 'a job with a name that goes on and on and on and would not fit into any terminal that is not very wide'
  const jobs = []
  for (const name of ['short', long, '名前が長いジョブの一覧はどう見えますか', '👩‍👩‍👧‍👦 family']) {
    jobs.push(
      await engine.submit({
        name,
        stages: [
          { name, task: long.slice(0, 90), payloads: [1, 2, 3] },
          { name: 'b', task: 'b' },
        ],
      }),
    )
  }
  const server_ = ['--server', server.url]
  for (const columns of [40, 80, 200]) {
    for (const args of [
      ['job', 'list'],
      ['task', 'list'],
      ['stage', 'list', '--state', 'pending'],
      ['job', 'describe', jobs[1]!.id],
      ['queue', 'list'],
    ]) {
      const { code, out } = await onTerminal([...args, ...server_], columns, { NO_COLOR: '1' })
      assert.equal(code, 0, args.join(' '))
      const tables = out.split('\n').filter(line => !/^ {2}\w|^a job/.test(line))
      for (const line of tables) assert.ok(widthOf(line) <= columns, `${args.join(' ')} at ${columns}: ${line}`)
      if (columns === 40 && args[0] === 'job') assert.match(out, /…/)
    }
  }
  const { out } = await onTerminal(['job', 'list', ...server_], 40, { NO_COLOR: '1' })
  const shown = out.split('\n')[1]!.split(' ')[0]!
  assert.match(shown, /^…[0-9a-f]{8}/)
  assert.equal((await onTerminal(['job', 'describe', shown, ...server_], 80)).code, 0)
  const wide = await onTerminal(['job', 'list', ...server_], 200, { NO_COLOR: '1' })
  assert.ok(wide.out.includes(jobs[0]!.id) && wide.out.includes(long.slice(0, 80)))
})

test('colours are for terminals, and not for those who do not want them', bounded, async t => {
  const { server, engine } = await served(t)
  await engine.submit({ name: 'j', stages: [{ name: 'a', task: 'a' }] })
  const args = ['job', 'list', '--server', server.url]
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the escape sequences of colours
  const colour = /\u001b\[\d+m/
  assert.match((await onTerminal(args, 80)).out, colour)
  assert.doesNotMatch((await onTerminal(args, 80, { NO_COLOR: '1' })).out, colour)
  assert.doesNotMatch((await onTerminal(args, 80, { TERM: 'dumb' })).out, colour)
  const pawl = await cli(t)
  assert.doesNotMatch((await pawl.run(args)).out, colour)
})
