/** Commands that wait for something, while servers come and go. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { run as operations } from '../../src/engine/operations.ts'
import { startServer } from '../../src/server/server.ts'
import { cli } from '../harness/cli.ts'
import { eventually } from '../harness/eventually.ts'
import { type Fresh, fresh } from '../harness/fresh.ts'
import type { Program } from '../harness/program.ts'

const bounded = { timeout: 600_000 }

/** A server that can be stopped for a while, and restarted at the same address. */
async function place(t: TestContext, run: Fresh) {
  let server = await startServer(run.engine, { port: 0 })
  t.after(() => server.close())
  const pawl = await cli(t, { PAWL_SERVER: server.url })
  const port = Number(new URL(server.url).port)
  return {
    pawl,
    async restart(program: Program<string>, meanwhile: () => Promise<unknown> = async () => {}) {
      await server.close()
      await eventually('that it is away was seen', () => program.complaints().includes('Retrying'))
      await meanwhile()
      server = await startServer(run.engine, { port })
    },
  }
}

async function succeed({ sync }: Fresh, queue: string) {
  const [task] = (await sync({ queues: [queue], claim: 1 })).claimed
  await sync({ settled: [{ id: task!.id, epoch: task!.epoch, outcome: 'succeeded', output: 'done' }] })
}

const waits = [
  { typed: ['task', 'add', 'a', '--wait'], outcome: /^a succeeded: "done"$/m },
  { typed: ['job', 'run', 'job.yaml', '--wait'], outcome: /^one succeeded \(1 good/m },
]

for (const { typed, outcome } of waits) {
  test(`pawl ${typed.join(' ')} goes on over a restart of the server, and says how it ended`, bounded, async t => {
    const run = await fresh(t)
    const { pawl, restart } = await place(t, run)
    await writeFile(join(pawl.folder, 'job.yaml'), 'name: one\nstages: [{ name: s, task: a }]\n')
    const program = pawl.start(typed)
    await eventually('it is queued', async () => (await run.engine.tasks()).items.length > 0)
    await restart(program)
    await succeed(run, 'a')
    await program.ended
    assert.deepEqual([program.process.exitCode, program.complaints().split('\n').length], [0, 2])
    assert.match(program.lines.join('\n'), outcome)
  })
}

test('task logs -f reads each line once, and goes on over a restart of the server', bounded, async t => {
  const run = await fresh(t)
  const read: number[] = []
  const { logs } = operations
  t.mock.method(operations, 'logs', async (...ask: Parameters<typeof logs>) => {
    const page = await logs(...ask)
    read.push(...page.items.map(({ n }) => n))
    return page
  })
  const { pawl, restart } = await place(t, run)
  const { id } = await run.engine.enqueue('a', null)
  const { epoch } = (await run.sync({ queues: ['a'], claim: 1 })).claimed[0]!
  const log = (...ns: number[]) =>
    run.sync({ beats: [{ id, epoch, logs: ns.map(n => ({ n, message: `line ${n}` })) }] })
  await log(1, 2)
  const program = pawl.start(['task', 'logs', id, '-f'])
  await program.printed('the second line', line => line.endsWith('line 2'))
  await restart(program, () => log(3))
  await program.printed('the third line', line => line.endsWith('line 3'))
  const logged = [{ n: 4, message: 'line 4' }]
  await run.sync({ settled: [{ id, epoch, outcome: 'succeeded', logs: logged }] })
  await program.ended
  assert.deepEqual(
    program.lines.map(line => line.slice(-6)),
    ['line 1', 'line 2', 'line 3', 'line 4'],
  )
  assert.deepEqual(read, [1, 2, 3, 4])
})

test('events tail -n begins with so many of the latest, whatever lies before, and reads no more', bounded, async t => {
  const run = await fresh(t)
  const [old] = await run.engine.enqueueMany([{ type: 'old' }, { type: 'old' }])
  await run.engine.cancel(old!.id)
  const ids = (await run.engine.enqueueMany(Array.from({ length: 5 }, () => ({ type: 'a' })))).map(({ id }) => id)
  const read: number[] = []
  const engineEvents = () => run.engine.context.feed.read({})
  const { events } = operations
  t.mock.method(operations, 'events', async (...ask: Parameters<typeof events>) => {
    const page = await events(...ask)
    read.push(page.items.length)
    return page
  })
  await eventually('the feed has come so far', async () => (await engineEvents()).items.length === 8)
  const { pawl } = await place(t, run)
  const tail = async (...more: string[]) => {
    const { code, err, json } = await pawl.run(['events', 'tail', '--json', ...more])
    assert.equal(code, 0, err)
    return (json() as { entityId: string }[]).map(({ entityId }) => entityId)
  }
  assert.deepEqual(await tail('-n', '3'), ids.slice(2))
  assert.deepEqual(read, [3])
  assert.deepEqual(await tail('-n', '0'), [])
  assert.deepEqual(await tail('-n', '1', '--type', 'task.cancelled'), [old!.id])
  assert.deepEqual(await tail('-n', '5000', '--type', 'task.cancelled'), [old!.id])
  assert.equal((await tail()).length, 8)
})

test('events tail -n 0 -f shows what is committed from then on, and misses none of it', bounded, async t => {
  const run = await fresh(t)
  await run.engine.enqueue('before', null)
  const asked: unknown[] = []
  const engineEvents = () => run.engine.context.feed.read({})
  const { events } = operations
  t.mock.method(operations, 'events', async (...ask: Parameters<typeof events>) => {
    const page = await events(...ask)
    // Committed right after the check for the end, before its answer is sent.
    if (asked.push(ask) === 1) await run.engine.enqueue('right behind', null)
    return page
  })
  await eventually('the feed has come so far', async () => (await engineEvents()).items.length === 1)
  const { pawl } = await place(t, run)
  const program = pawl.start(['events', 'tail', '-n', '0', '-f', '--json'])
  await program.printed('what was committed then', line => line.includes('"task.queued"'))
  const { id } = await run.engine.enqueue('later', null)
  await program.printed('what was committed later', line => line.includes(id))
  const types = await Promise.all(
    program.lines.map(async line => (await run.engine.task(JSON.parse(line).entityId)).type),
  )
  assert.deepEqual(types, ['right behind', 'later'])
})
