/** Failures as people see them on the command line: in the log of a worker, and when a task is described. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineTask, startWorker } from '../../src/worker/index.ts'
import { cli } from '../harness/cli.ts'
import { ended } from '../harness/eventually.ts'
import { served } from '../harness/served.ts'

const bounded = { timeout: 600_000 }

const source = `import { defineTask } from 'pawl'

interface Rate {
  readonly percent: number
}

export const rates = defineTask({
  type: 'rates',
  retry: { attempts: 1 },
  handler: (rate: Rate) => {
    throw new Error('no rate today', { cause: new TypeError(\`not \${rate.percent}\`) })
  },
})
`

test(
  'pawl worker logs each failed attempt with the line of the TypeScript source, and its stack at debug',
  bounded,
  async t => {
    const { engine, server } = await served(t)
    const pawl = await cli(t, { PAWL_SERVER: server.url })
    await writeFile(join(pawl.folder, 'rates.ts'), source)
    const program = pawl.start(['worker', 'rates.ts', '--log', 'json', '--log-level', 'debug'])
    await program.printed('its start', line => line.startsWith('Worker '))
    const { id } = await engine.enqueue('rates', { percent: 3 })
    await ended(engine, id)
    program.signal('SIGTERM')
    await program.ended
    const logged = program
      .complaints()
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    const failed = logged.find(({ event }) => event === 'task.failed')
    const { level, type, attempt, attempts, message, next } = failed
    assert.deepEqual([failed.id, level, type, attempt, attempts], [id, 'warn', 'rates', 1, 1])
    assert.deepEqual([message, next], ['no rate today', 'dead_lettered'])
    assert.match(failed.at, /^rates\.ts:11:/)
    const stack = logged.find(({ event }) => event === 'task.stack')
    assert.equal(stack.level, 'debug')
    assert.match(stack.stack, /rates\.ts:11:[\s\S]*Caused by: TypeError: not 3\n/)
  },
)

test('pawl task describe shows the stack and the causes, and no control characters', bounded, async t => {
  const { engine, server } = await served(t)
  const pawl = await cli(t, { PAWL_SERVER: server.url })
  const work = defineTask({
    type: 'work',
    retry: { attempts: 1 },
    handler: () => {
      const cause = new AggregateError([new TypeError('no IPv6 \u001b[2J'), new Error('no IPv4')], 'refused')
      throw new RangeError('no rate', { cause })
    },
  })
  await using _worker = startWorker(engine, [work], { log: () => {} })
  const { id } = await engine.enqueue(work, null)
  await ended(engine, id)
  const { out } = await pawl.run(['task', 'describe', id])
  assert.match(out, /\n {2}RangeError: no rate\n {6}at .*failures\.test/)
  assert.match(out, /\n {4}Caused by: AggregateError: refused\n {8}at /)
  assert.match(out, /\n {6}Error 1 of 2: TypeError: no IPv6 \\x1b\[2J\n[\s\S]*\n {6}Error 2 of 2: Error: no IPv4\n/)
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not reach a terminal
  assert.doesNotMatch(out, /[\u0000-\u0009\u000b-\u001f]/)
})
