/** Tasks, dead letters, events, types, keys and workers from the command line. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openEngine } from '../../src/engine/engine.ts'
import type { Page, QueuedTask, TaskView } from '../../src/protocol/tasks/tasks.ts'
import { startServer } from '../../src/server/server.ts'
import { type Cli, cli } from '../harness/cli.ts'
import { serverUrl } from '../harness/databases.ts'
import { ended, eventually } from '../harness/eventually.ts'
import { type Served, served } from '../harness/served.ts'
import { taskIn } from '../harness/task-in.ts'

const bounded = { timeout: 600_000 }

async function place(t: TestContext): Promise<Served & { readonly pawl: Cli }> {
  const run = await served(t)
  return { ...run, pawl: await cli(t, { PAWL_SERVER: run.server.url }) }
}

test('a task is queued, listed, shown, called off and brought back', bounded, async t => {
  const { pawl, engine } = await place(t)
  const added = await pawl.run(['task', 'add', 'mail', '{"to":"ann"}', '--priority', '3', '--json'])
  const { id } = added.json() as QueuedTask
  assert.deepEqual([(await engine.task(id)).payload, (await engine.task(id)).priority], [{ to: 'ann' }, 3])
  const list = await pawl.run(['task', 'list', '--state', 'queued', '--type', 'mail', '--json'])
  assert.deepEqual(
    (list.json() as Page<TaskView>).items.map(task => task.id),
    [id],
  )
  const shown = await pawl.run(['task', 'describe', id.slice(-8)])
  assert.match(shown.out, /^mail {2}queued[\s\S]*payload +\{"to":"ann"\}/)
  assert.match((await pawl.run(['task', 'cancel', id])).out, /is cancelled/)
  assert.match((await pawl.run(['task', 'resume', id])).out, /is queued/)
  const set = await pawl.run(['task', 'dead-letter', id, '--code', 'parse_error', '--step', 'input'])
  assert.match(set.out, /is dead_lettered/)
  assert.match((await pawl.run(['task', 'delete', id])).out, /^Deleted /)
  assert.equal((await pawl.run(['task', 'describe', id])).code, 1)
})

test(
  'a payload that the schema of its type refuses is not queued, and the command names the field',
  bounded,
  async t => {
    const { pawl, engine } = await place(t)
    await engine.putTaskType('slow', { payloadSchema: { type: 'object', properties: { n: { type: 'number' } } } })
    const { code, out, err } = await pawl.run(['task', 'add', 'slow', '{"n":"x"}'])
    assert.deepEqual([code, out], [2, ''])
    assert.match(err, /does not match the schema of its task type[\s\S]*n: .*"string" is invalid/)
    await writeFile(join(pawl.folder, 'job.yaml'), 'name: j\nstages: [{ name: a, task: slow, payload: { n: x } }]')
    const job = await pawl.run(['job', 'run', 'job.yaml'])
    assert.equal(job.code, 2)
    assert.match(job.err, /stages\.a\.payload[\s\S]*n: /)
    assert.deepEqual([(await engine.tasks()).items, (await engine.jobs()).items], [[], []])
  },
)

test('dead letters are listed with their reasons, and redriven only as far as asked', bounded, async t => {
  const run = await place(t)
  const { pawl, engine } = run
  const letter = await taskIn(run, 'dead_lettered')
  const list = await pawl.run(['dlq', 'list'], { env: { COLUMNS: '120' } })
  assert.match(list.out, new RegExp(letter.id.slice(-8)))
  const nothing = await pawl.run(['dlq', 'redrive'])
  assert.deepEqual([nothing.code, /requires an ID, a filter .* or --all/.test(nothing.err)], [2, true])
  await pawl.run(['dlq', 'redrive', '--all', '--dry-run'])
  const other = await pawl.run(['dlq', 'redrive', '--message', 'something else', '--json'])
  assert.equal((other.json() as { total: number }).total, 0)
  assert.equal((await engine.task(letter.id)).state, 'dead_lettered')
  const done = await pawl.run(['dlq', 'redrive', letter.id.slice(-8), '--json'])
  assert.deepEqual([done.code, (done.json() as { redriven: string[] }).redriven], [0, [letter.id]])
  assert.equal((await engine.task(letter.id)).state, 'queued')
})

test('a type is set and shown, keys are made, listed and revoked, queues and workers are listed', bounded, async t => {
  const { pawl, engine, client } = await place(t)
  const set = await pawl.run(['type', 'set', 'mail', '{"retry":{"attempts":7}}'])
  assert.equal(set.code, 0, set.err)
  assert.deepEqual(await engine.taskType('mail'), { retry: { attempts: 7 } })
  const wrong = await pawl.run(['type', 'set', 'mail', '{"leaseSecond":7}'])
  assert.deepEqual([wrong.code, /Did you mean "leaseSeconds"\?/.test(wrong.err)], [2, true])
  const made = await pawl.run([
    'key',
    'create',
    '--name',
    'w',
    '--role',
    'worker',
    '--role',
    'producer',
    '--queue',
    'mail',
    '--json',
    '--as',
    'ann',
  ])
  const { id, secret } = made.json() as { id: string; secret: string }
  assert.deepEqual((await engine.internals.keyOf(secret))?.roles, ['worker', 'producer'])
  const listed = await pawl.run(['key', 'list'])
  assert.ok(listed.out.includes(id) && !listed.out.includes(secret))
  assert.equal((await pawl.run(['key', 'revoke', id, '--as', 'bob'])).code, 0)
  assert.match((await pawl.run(['key', 'list'])).out, / now +ann +now +bob\s|ago +ann .* bob\s/)
  assert.equal(await engine.internals.keyOf(secret), undefined)
  await engine.enqueue('mail', null)
  await client.sync({ worker: 'hand', session: crypto.randomUUID(), queues: ['mail'], claim: 1 })
  assert.match((await pawl.run(['queue', 'list'])).out, /mail +0 +0 +1/)
  assert.match((await pawl.run(['worker', 'list'])).out, /hand +mail/)
  await engine.putTaskType('letter', {})
  await engine.enqueue('letter', null)
  for (const [list, first, second] of [
    ['type', 'letter', 'mail'],
    ['queue', 'letter', 'mail'],
  ] as const) {
    const { out } = await pawl.run([list, 'list', '--limit', '1'])
    assert.ok(out.includes(first) && !out.includes(second), out)
    const [, cursor] = /--cursor (\S+)/.exec(out)!
    const next = (await pawl.run([list, 'list', '--cursor', cursor!])).out
    assert.ok(next.includes(second) && !next.includes(first), next)
  }
})

test(
  'a module of handlers in TypeScript is a worker; its errors mean what they say; SIGTERM drains it',
  bounded,
  async t => {
    const { pawl, engine } = await place(t)
    await writeFile(
      join(pawl.folder, 'handlers.ts'),
      `import { existsSync } from 'node:fs'
     import { DeadLetter, defineTask } from 'pawl'
     import { GiveUp } from 'pawl/worker'
     interface Person { readonly name: string }
     export const greet = defineTask({ type: 'greet', handler: payload => 'hello ' + (payload as Person).name })
     export const parse = defineTask({ type: 'parse', handler: () => { throw new DeadLetter('parse_error', 'no sense') } })
     export const stop = defineTask({ type: 'stop', handler: () => { throw new GiveUp('never') } })
     export const slow = defineTask({ type: 'slow', handler: async () => {
       while (!existsSync('go')) await new Promise(setImmediate)
       return 'finished'
     } })
     export const aside = 1`,
    )
    const program = pawl.start(['worker', 'handlers.ts', '--concurrency', '3'])
    const line = await program.printed('what it works on', text => text.startsWith('Worker '))
    assert.match(line, /runs up to 3 tasks at once from greet, parse, slow, stop, through http:/)
    const queue = async (type: string, payload: unknown = null) => (await engine.enqueue(type, payload)).id
    const [hello, letter, never] = [await queue('greet', { name: 'Ada' }), await queue('parse'), await queue('stop')]
    assert.equal((await ended(engine, hello)).output, 'hello Ada')
    assert.equal((await ended(engine, letter)).deadLetter?.reasonCode, 'parse_error')
    assert.equal((await ended(engine, never)).state, 'failed')
    const slow = await queue('slow')
    await eventually('it is at work', async () => (await engine.task(slow)).state === 'running')
    program.signal('SIGTERM')
    await program.printed('that it drains', text => text === 'Stopping. Tasks still running: 1 …')
    await writeFile(join(pawl.folder, 'go'), '')
    await program.ended
    assert.equal(program.process.exitCode, 0)
    const { state, output, losses } = await engine.task(slow)
    assert.deepEqual([state, output, losses], ['succeeded', 'finished', 0])
  },
)

test(
  'a handler that never ends does not keep its worker from ending: the task is given back, uncharged',
  bounded,
  async t => {
    const { pawl, engine } = await place(t)
    await writeFile(
      join(pawl.folder, 'hang.mjs'),
      `import { defineTask } from 'pawl'
     export const hang = defineTask({ type: 'hang', handler: () => new Promise(() => setInterval(() => {}, 1000)) })`,
    )
    const program = pawl.start(['worker', 'hang.mjs', '--drain-seconds', '0'])
    const { id } = await engine.enqueue('hang', null)
    await eventually('it is at work', async () => (await engine.task(id)).state === 'running')
    program.signal('SIGTERM')
    await program.ended
    assert.equal(program.process.exitCode, 0)
    const { state, failures, losses } = await engine.task(id)
    assert.deepEqual([state, failures, losses], ['retrying', 0, 0])
  },
)

test('a module without tasks, or that does not load, is told before anything is worked on', bounded, async t => {
  const { pawl } = await place(t)
  await writeFile(join(pawl.folder, 'empty.ts'), 'export const one = 1')
  await writeFile(join(pawl.folder, 'broken.mjs'), 'export const = 1')
  const empty = await pawl.run(['worker', 'empty.ts'])
  assert.deepEqual([empty.code, /it must export at least one task/.test(empty.err)], [2, true])
  const broken = await pawl.run(['worker', 'broken.mjs'])
  assert.deepEqual([broken.code, /broken\.mjs/.test(broken.err)], [2, true])
  const missing = await pawl.run(['worker', 'nowhere.ts'])
  assert.deepEqual([missing.code, /nowhere\.ts/.test(missing.err)], [2, true])
})

test('events tail -f goes on over a restart of the server, and misses and repeats nothing', bounded, async t => {
  const database = await serverUrl(18)
  const schema = `t_${randomBytes(6).toString('hex')}`
  const engine = await openEngine({ database, schema })
  t.after(async () => {
    await engine.context.sql.script(`drop schema "${schema}" cascade`)
    await engine.close()
  })
  const first = await startServer(engine, { port: 0 })
  const pawl = await cli(t, { PAWL_SERVER: first.url })
  const before = await engine.enqueue('a', null)
  const program = pawl.start(['events', 'tail', '-f', '--json'])
  const seen = () => program.lines.map(line => JSON.parse(line).entityId)
  await program.printed('what was there', line => line.includes(before.id))
  await first.close()
  const meanwhile = await engine.enqueue('a', null)
  const second = await startServer(engine, { port: Number(new URL(first.url).port) })
  t.after(() => second.close())
  await program.printed('what came meanwhile', line => line.includes(meanwhile.id))
  const after = await engine.enqueue('a', null)
  await program.printed('what came after', line => line.includes(after.id))
  assert.deepEqual(seen(), [before.id, meanwhile.id, after.id])
  program.signal('SIGTERM')
  await program.ended
  assert.equal(program.process.exitCode, 0)
})
